"""Parse JSON lines into Python values like Spark's parser; numbers keep their text.

Each line contains one value and ends in a line feed, a carriage return or both. Refused is what only Spark's parser
accepts: strings in single quotes and ``+Infinity``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from holdfast.errors import CorruptDataError
from holdfast.formats.lines.blocks import after_last_line, decode_lines, read_blocks


class Whole(str):
    """A number without a fraction or an exponent, as its text."""

    __slots__ = ()


class Fraction(str):
    """A number with a fraction or an exponent, as its text."""

    __slots__ = ()


class Constant(str):
    """NaN or an infinity that is not in quotes."""

    __slots__ = ()


class RepeatedKeys(dict[str, Any]):
    """An object with a key that occurs several times, together with all its pairs."""

    pairs: list[tuple[str, Any]] = []  # noqa: RUF012  # replaced, never changed


# --- lines ------------------------------------------------------------------------------------------------------------
def read_lines(source: BinaryIO, codec: str) -> Iterator[list[str]]:
    """Yield the non-blank lines of a file, in blocks.

    Raises:
        CorruptDataError: the file cannot be decompressed or is not UTF-8.
    """
    for block in read_blocks(source, codec, after_last_line):
        lines = (line.lstrip("\ufeff") for line in decode_lines(block, "JSON"))
        yield [line for line in lines if line and not line.isspace()]


def json_rows(line: str, decoder: json.JSONDecoder) -> list[dict[str, Any]]:
    """Return the objects in a line, which contains either one object or an array of objects.

    Raises:
        CorruptDataError: the line contains anything else.
    """
    try:
        value = decoder.decode(line)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError("a line is not JSON: check the file", line=line[:80]) from error
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise CorruptDataError("a line is not a JSON object: check the file", line=line[:80])
    return rows


def decoder() -> json.JSONDecoder:
    """Return Python's parser, configured to keep numbers as text."""
    return json.JSONDecoder(parse_int=Whole, parse_float=Fraction, parse_constant=Constant)


def repeated_keys() -> json.JSONDecoder:
    """Return a parser like `decoder` that does not merge repeated keys of an object, because maps preserve them."""
    return json.JSONDecoder(
        parse_int=Whole, parse_float=Fraction, parse_constant=Constant, object_pairs_hook=_with_pairs
    )


def _with_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    kept = RepeatedKeys(found)
    kept.pairs = pairs
    return kept
