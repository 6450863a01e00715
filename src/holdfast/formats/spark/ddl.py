"""Parse types and schemas in the syntax of Spark SQL (``id bigint, tags array<string>``) into Arrow, without Spark.

Accepts what `StructType.fromDDL` accepts. Every column is nullable, as when Spark reads files: ``NOT NULL`` and
``COMMENT '…'`` are accepted and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

_QUOTED = r"""`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
_TOKEN = re.compile(rf"{_QUOTED}|.", re.DOTALL)
_FIELD = re.compile(
    rf"\s*(`(?:[^`]|``)+`|\w+)\s*:?\s*(.*?)(?:\s+not\s+null)?(?:\s+comment\s+(?:{_QUOTED}))?\s*", re.DOTALL | re.I
)
_TYPE = re.compile(r"\s*(\w+)\s*(?:<(.*)>|\(([\d\s,]+)\)|((?:\s+\w+)+))?\s*", re.DOTALL)

_SIMPLE: Mapping[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    # As PySpark passes it to Python.
    "variant": pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]),
}
_DECIMALS, _TEXTS = ("decimal", "dec", "numeric"), ("char", "character", "varchar")
_UNITS = ("day", "hour", "minute", "second")


def parse_ddl(text: str) -> pa.Schema:
    """Parse the columns of ``name type, …``; each name may end with a colon, and ``struct<…>`` may enclose them all.

    Raises:
        InvalidRequestError: the text does not parse, names a column twice, or uses a type that only Spark can read.
    """
    whole = re.fullmatch(r"\s*struct\s*<(.*)>\s*", text, re.DOTALL | re.I)
    fields = _fields(whole[1] if whole else text)
    if not fields:
        raise InvalidRequestError("the schema has no columns: write name type, e.g. id bigint, name string")
    return pa.schema(fields)


def parse_type(text: str) -> pa.DataType:
    """Parse a type, e.g. ``decimal(10,2)`` or ``array<int>``.

    Raises:
        InvalidRequestError: see `parse_ddl`.
    """
    found = _TYPE.fullmatch(text)
    if found is None:
        raise _error(text)
    word, inner, numbers, words = found[1].lower(), found[2], found[3], (found[4] or "").lower().split()
    sizes = [int(one) for one in (numbers or "").split(",") if one.strip()]
    parts = [] if inner is None else _split(inner)
    if word == "array" and len(parts) == 1:
        return pa.list_(pa.field("element", parse_type(parts[0])))
    if word == "map" and len(parts) == 2:
        return pa.map_(parse_type(parts[0]), parse_type(parts[1]))
    if word == "struct" and inner is not None:
        return pa.struct(_fields(inner))
    if word in _DECIMALS and inner is None and not words:
        precision, scale = [*sizes, *(10, 0)[len(sizes) :]][:2]
        if len(sizes) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise _error(text, "a decimal has 1 to 38 digits, and no more of them behind the point")
        return pa.decimal128(precision, scale)
    if word in _TEXTS and len(sizes) == 1:
        return pa.string()
    if word == "interval" and words:
        return _interval(words)
    plain = inner is None and not words and (numbers is None or (word == "time" and len(sizes) == 1 and sizes[0] <= 6))
    if word in _SIMPLE and (plain or (word == "string" and words[:1] == ["collate"] and len(words) == 2)):
        return _SIMPLE[word]
    if word in (*_SIMPLE, *_DECIMALS, *_TEXTS, "array", "map", "struct", "interval"):
        raise _error(text)
    known = (*_SIMPLE, "array", "char", "decimal", "interval", "map", "numeric", "struct", "varchar")
    raise InvalidRequestError(f"no such type: {nearest(word, known)}", type=word)


def _interval(words: list[str]) -> pa.DataType:
    start, end = words[0], words[-1]
    known = start in _UNITS and end in _UNITS and words in ([start], [start, "to", end])
    if not known or _UNITS.index(start) > _UNITS.index(end):
        raise InvalidRequestError(
            "only day-time intervals can be read without Spark: leave the column out, or read with Spark",
            type=f"interval {' '.join(words)}",
        )
    return pa.duration("us")


def _fields(text: str) -> list[pa.Field]:
    fields: dict[str, pa.Field] = {}
    for part in _split(text) if text.strip() else []:
        found = _FIELD.fullmatch(part)
        if found is None or not found[2]:
            raise _error(part)
        name = found[1] if found[1][0] != "`" else found[1][1:-1].replace("``", "`")
        if (first := fields.get(name.lower())) is not None:
            raise InvalidRequestError("the schema names a column twice: remove one", first=first.name, second=name)
        fields[name.lower()] = pa.field(name, parse_type(found[2]))
    return list(fields.values())


def _split(text: str) -> list[str]:
    """Split a text at the commas that are in no brackets and no quotes."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in "<(") - (token in ">)")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _error(found: str, reason: str = "") -> InvalidRequestError:
    return InvalidRequestError(
        "the schema does not parse: write name type, … as in CREATE TABLE, and put names with characters other than "
        "letters, digits and _ in backquotes",
        found=found.strip(),
        **({"reason": reason} if reason else {}),
    )
