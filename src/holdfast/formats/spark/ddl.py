"""Parse types and schemas in the syntax of Spark SQL (``id bigint, tags array<string>``) into Arrow, without Spark.

Accepts what `StructType.fromDDL` accepts. Every column is nullable, as when Spark reads files: ``NOT NULL`` and
``COMMENT '…'`` are accepted and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

import pyarrow as pa

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

_TOKEN = re.compile(r"""`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|\w+|\S""", re.DOTALL)

_VARIANT = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
"""A variant as PySpark passes it to Python."""

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
    "string": pa.string(),
    "binary": pa.binary(),
    "variant": _VARIANT,
}
_OTHERS = ("array", "char", "decimal", "interval", "map", "numeric", "struct", "time", "varchar")
_UNITS = ("day", "hour", "minute", "second")


def parse_ddl(text: str) -> pa.Schema:
    """Parse the columns of ``name type, …``; each name may end with a colon, and ``struct<…>`` may enclose them all.

    Raises:
        InvalidRequestError: the text does not parse, names a column twice, or uses a type that only Spark can read.
    """
    parser = _Parser(text)
    if parser.peek_is("struct") and parser.peek_is("<", 1):
        kind = parser.take_type()
        parser.require_end()
        fields = [kind.field(index) for index in range(kind.num_fields)]
    else:
        fields = parser.take_fields("")
        parser.require_end()
    if not fields:
        raise InvalidRequestError("the schema has no columns: write name type, e.g. id bigint, name string")
    return pa.schema(fields)


def parse_type(text: str) -> pa.DataType:
    """Parse a type, e.g. ``decimal(10,2)`` or ``array<int>``.

    Raises:
        InvalidRequestError: see `parse_ddl`.
    """
    parser = _Parser(text)
    kind = parser.take_type()
    parser.require_end()
    return kind


class _Parser:
    """A recursive descent parser with one method per grammar rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    # --- tokens -------------------------------------------------------------------------------------------------------
    def peek_is(self, word: str, ahead: int = 0) -> bool:
        at = self._next + ahead
        return at < len(self._tokens) and self._tokens[at].lower() == word

    def _take_if(self, *words: str) -> bool:
        """Consume these words if all of them come next; otherwise consume nothing."""
        if all(self.peek_is(word, ahead) for ahead, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def _take(self, wanted: str) -> str:
        if self._next >= len(self._tokens):
            self._fail(wanted)
        self._next += 1
        return str(self._tokens[self._next - 1])

    def _require(self, word: str) -> None:
        if not self._take_if(word):
            self._fail(word)

    def require_end(self) -> None:
        if self._next < len(self._tokens):
            self._fail("a comma or the end")

    def _fail(self, wanted: str) -> NoReturn:
        found = self._tokens[self._next] if self._next < len(self._tokens) else "the end"
        raise InvalidRequestError(
            "the schema does not parse: write name type, … as in CREATE TABLE, and put names with characters other "
            "than letters, digits and _ in backquotes",
            schema=self._text,
            expected=wanted,
            found=found,
        )

    # --- rules --------------------------------------------------------------------------------------------------------
    def take_fields(self, end: str) -> list[pa.Field]:
        """Parse ``name [:] type [not null] [comment '…'], …`` up to `end`, or to the text's end if `end` is empty."""
        fields: list[pa.Field] = []
        while not (self.peek_is(end) if end else self._next >= len(self._tokens)):
            if fields:
                self._require(",")
            name = self._take_name()
            self._take_if(":")
            fields.append(pa.field(name, self.take_type()))
            self._take_if("not", "null")
            if self._take_if("comment") and self._take("a comment in quotes")[0] not in "'\"":
                self._next -= 1
                self._fail("a comment in quotes")
        folded: dict[str, str] = {}
        for field in fields:
            if field.name.lower() in folded:
                raise InvalidRequestError(
                    "the schema names a column twice: remove one",
                    first=folded[field.name.lower()],
                    second=field.name,
                )
            folded[field.name.lower()] = field.name
        return fields

    def _take_name(self) -> str:
        token = self._take("a name")
        if len(token) > 2 and token[0] == "`":
            return token[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", token):
            self._next -= 1
            self._fail("a name")
        return token

    def take_type(self) -> pa.DataType:
        word = self._take("a type").lower()
        if not re.fullmatch(r"\w+", word):
            self._next -= 1
            self._fail("a type")
        if word in ("array", "map", "struct"):
            return self._take_nested(word)
        if word in ("decimal", "dec", "numeric"):
            return self._take_decimal()
        if word in ("char", "character", "varchar"):
            self._require("(")
            self._take_number(1, 2**31 - 1)
            self._require(")")
            return pa.string()
        if word == "interval":
            return self._take_interval()
        if word == "time":
            if self._take_if("("):
                self._take_number(0, 6)
                self._require(")")
            return pa.time64("us")
        if word == "string" and self._take_if("collate"):
            self._take_name()
        if word not in _SIMPLE:
            raise InvalidRequestError(f"no such type: {nearest(word, (*_SIMPLE, *_OTHERS))}", type=word)
        return _SIMPLE[word]

    def _take_nested(self, word: str) -> pa.DataType:
        self._require("<")
        if word == "struct":
            fields = self.take_fields(">")
            self._require(">")
            return pa.struct(fields)
        first = self.take_type()
        if word == "array":
            self._require(">")
            return pa.list_(pa.field("element", first))
        self._require(",")
        value = self.take_type()
        self._require(">")
        return pa.map_(first, value)

    def _take_decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._take_if("("):
            precision = self._take_number(1, 38)
            if self._take_if(","):
                scale = self._take_number(0, precision)
            self._require(")")
        return pa.decimal128(precision, scale)

    def _take_interval(self) -> pa.DataType:
        start = self._take("day to second").lower()
        end = self._take("day to second").lower() if self._take_if("to") else start
        if start not in _UNITS or end not in _UNITS or _UNITS.index(start) > _UNITS.index(end):
            raise InvalidRequestError(
                "only day-time intervals can be read without Spark: leave the column out, or read with Spark",
                type=f"interval {start}" + ("" if start == end else f" to {end}"),
            )
        return pa.duration("us")

    def _take_number(self, least: int, most: int) -> int:
        token = self._take("a number")
        if not token.isdecimal() or not least <= int(token) <= most:
            self._next -= 1
            self._fail(f"a number from {least} to {most}")
        return int(token)
