"""Parse JSON lines into Python values like Spark's parser; numbers keep their text.

Each line contains one value and ends in a line feed, a carriage return or both. Python's own parser does nearly all of
the work. `scan` handles syntax that Spark accepts and Python rejects (strings in single quotes, ``+Infinity``), and
preserves what Python's parser drops (the text of an object that becomes a string).
"""

from __future__ import annotations

import json
import re
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


class SourceObject(dict[str, Any]):
    """An object, together with the text from which it was parsed."""

    text = ""
    pairs: list[tuple[str, Any]] = []  # noqa: RUF012  # replaced, never changed


class SourceArray(list[Any]):
    """An array, together with the text from which it was parsed."""

    text = ""


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
        try:
            value = decoder.decode(line)
        except ValueError:
            value = scan(line)
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
    kept = SourceObject(found)
    kept.pairs = pairs
    return kept


# --- what Python's parser does not support ----------------------------------------------------------------------------
_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"true|false|null|NaN|[+-]?Infinity|[+-]INF")
_STRING = re.compile(r""""((?:[^"\\\x00-\x1f]|\\.)*)"|'((?:[^'\\\x00-\x1f]|\\.)*)'""")
_ESCAPED_QUOTE = re.compile(r"\\(.)|\"")


def scan(text: str) -> Any:
    """Parse one value; objects and arrays keep their own text.

    Raises:
        ValueError: the text is not exactly one value.
    """
    value, end = _value(text, _blanks(text, 0))
    if _blanks(text, end) != len(text):
        raise ValueError("something follows the value")
    return value


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None, "the pattern also matches the empty string"
    return match.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    char = text[at : at + 1]
    if char == "{":
        return _object(text, at)
    if char == "[":
        return _array(text, at)
    if char in ("'", '"'):
        return _string(text, at)
    word = _WORDS.match(text, at)
    if word is not None:
        known = {"true": True, "false": False, "null": None}
        return known.get(word[0], Constant(word[0])) if word[0] not in known else known[word[0]], word.end()
    number = _NUMBER.match(text, at)
    if number is None:
        raise ValueError("expected a value")
    return (Fraction if number[1] or number[2] else Whole)(number[0]), number.end()


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise ValueError("expected a string")
    if match[1] is not None:
        return json.loads(match[0]), match.end()
    # Within single quotes a double quote is literal, and only there may a single quote be escaped.
    inner = _ESCAPED_QUOTE.sub(lambda one: '\\"' if one[0] == '"' else "'" if one[1] == "'" else one[0], match[2])
    return json.loads(f'"{inner}"'), match.end()


def _object(text: str, begin: int) -> tuple[SourceObject, int]:
    pairs: list[tuple[str, Any]] = []
    at = _blanks(text, begin + 1)
    while text[at : at + 1] != "}" or pairs:
        name, at = _string(text, at)
        at = _blanks(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("expected a colon")
        value, at = _value(text, _blanks(text, at + 1))
        pairs.append((name, value))
        at = _blanks(text, at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise ValueError("no comma")
        at = _blanks(text, at + 1)
    found = SourceObject(pairs)
    found.pairs = pairs
    found.text = text[begin : at + 1]
    return found, at + 1


def _array(text: str, begin: int) -> tuple[SourceArray, int]:
    found = SourceArray()
    at = _blanks(text, begin + 1)
    while text[at : at + 1] != "]" or found:
        value, at = _value(text, at)
        found.append(value)
        at = _blanks(text, at)
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise ValueError("no comma")
        at = _blanks(text, at + 1)
    found.text = text[begin : at + 1]
    return found, at + 1
