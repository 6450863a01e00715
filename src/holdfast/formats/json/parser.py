"""JSON lines into Python values, as Spark's parser takes them; numbers stay the text that they are.

One value per line, ended by a line feed, a carriage return or both. Python's own parser does nearly all of the work.
What it does not know but Spark allows (strings in single quotes, ``+Infinity``) and what it forgets (the text of an
object that goes into a string column) is left to `scan`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from holdfast.errors import CorruptDataError
from holdfast.formats.lines.blocks import behind_last_line, read_blocks

__all__ = [
    "Constant",
    "Fraction",
    "SourceArray",
    "SourceObject",
    "Whole",
    "decoder",
    "json_rows",
    "read_lines",
    "repeated_keys",
    "scan",
]


class Whole(str):
    """The text of a number without a fraction or an exponent."""

    __slots__ = ()


class Fraction(str):
    """The text of another number."""

    __slots__ = ()


class Constant(str):
    """NaN or an infinity that is no string."""

    __slots__ = ()


class SourceObject(dict[str, Any]):
    """An object with its text."""

    text = ""
    pairs: list[tuple[str, Any]] = []  # noqa: RUF012  # replaced, never changed


class SourceArray(list[Any]):
    """An array with its text."""

    text = ""


# --- lines ------------------------------------------------------------------------------------------------------------
def read_lines(source: BinaryIO, codec: str) -> Iterator[list[str]]:
    """The lines of a file that are not blank, block by block.

    Raises:
        CorruptDataError: the file does not decompress, or is not UTF-8.
    """
    for block in read_blocks(source, codec, behind_last_line):
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise CorruptDataError("a JSON file is not UTF-8: convert it") from error
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = (line.lstrip("\ufeff") for line in text.split("\n"))
        yield [line for line in lines if line and not line.isspace()]


def json_rows(line: str, decoder: json.JSONDecoder) -> list[dict[str, Any]]:
    """The objects in a line: one, or those in an array.

    Raises:
        CorruptDataError: the line is neither.
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
    """Python's parser, with numbers as text."""
    return json.JSONDecoder(parse_int=Whole, parse_float=Fraction, parse_constant=Constant)


def repeated_keys() -> json.JSONDecoder:
    """Likewise; objects remember keys that come twice, which maps keep."""
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


# --- what Python's parser cannot do -----------------------------------------------------------------------------------
_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"true|false|null|NaN|[+-]?Infinity|[+-]INF")
_STRING = re.compile(r""""((?:[^"\\\x00-\x1f]|\\.)*)"|'((?:[^'\\\x00-\x1f]|\\.)*)'""")
_ESCAPED_QUOTE = re.compile(r"\\(.)|\"")


def scan(text: str) -> Any:
    """The value that a text is; objects and arrays know their own text.

    Raises:
        ValueError: it is none, or more than one.
    """
    value, end = _value(text, _blanks(text, 0))
    if _blanks(text, end) != len(text):
        raise ValueError("something follows the value")
    return value


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None, "the pattern matches nothing, too"
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
        raise ValueError("no value")
    return (Fraction if number[1] or number[2] else Whole)(number[0]), number.end()


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise ValueError("no string")
    if match[1] is not None:
        return json.loads(match[0]), match.end()
    # Between single quotes a double quote is itself, and only there may a single one be escaped.
    inner = _ESCAPED_QUOTE.sub(lambda one: '\\"' if one[0] == '"' else "'" if one[1] == "'" else one[0], match[2])
    return json.loads(f'"{inner}"'), match.end()


def _object(text: str, begin: int) -> tuple[SourceObject, int]:
    pairs: list[tuple[str, Any]] = []
    at = _blanks(text, begin + 1)
    while text[at : at + 1] != "}" or pairs:
        name, at = _string(text, at)
        at = _blanks(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no colon")
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
