"""Infer the names and types of CSV columns like Spark with ``inferSchema=true``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.lines.values import date_days, double_value, timestamp_micros

_INSTANT = pa.timestamp("us", "UTC")
_PLAIN_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?$"
_LARGEST_PRECISION = 38
_RANK_OF_DOUBLES = 3


def safe_names(header: Sequence[str | None], null_value: str) -> list[str]:
    """Return the column names for a header; missing and repeated names are numbered."""
    folded = Counter(name.lower() for name in header if name is not None)
    names = []
    for index, name in enumerate(header):
        if not name or name == null_value:
            names.append(f"_c{index}")
        elif folded[name.lower()] > 1:
            names.append(f"{name}{index}")
        else:
            names.append(name)
    return names


@dataclass(frozen=True)
class SeenColumns:
    """The names and types of columns seen so far.

    Attributes:
        types: the columns' types by name; None for a column with only nulls.
        by_name: whether the names come from a header; if not, columns match by position.
    """

    types: Mapping[str, pa.DataType | None]
    by_name: bool

    @classmethod
    def of(cls, names: Sequence[str], types: Sequence[pa.DataType | None], *, by_name: bool) -> SeenColumns:
        """Return the columns of one file.

        Raises:
            InvalidRequestError: a column's name equals the generated name of another column.
        """
        if len({name.lower() for name in names}) < len(names):
            raise InvalidRequestError(
                "a name in the header equals the generated name of another column: rename one, or give a schema",
                header=names,
            )
        return cls(dict(zip(names, types, strict=True)), by_name)


def merge_columns(first: SeenColumns, second: SeenColumns) -> SeenColumns:
    """Merge the columns of two files. Without headers, the first file determines the number of columns, as in Spark."""
    if not first.types:
        return second
    types = dict(first.types)
    folded = {name.lower(): name for name in types}
    for name, kind in second.types.items():
        known = folded.get(name.lower())
        if known is not None:
            types[known] = types[known] if kind is None else _merged(types[known], kind)
        elif first.by_name:
            types[name] = kind
    return SeenColumns(types, first.by_name)


def schema_of(seen: SeenColumns) -> pa.Schema:
    """Return the schema; a column in which only nulls were seen becomes a string column."""
    return pa.schema([(name, pa.string() if kind is None else kind) for name, kind in seen.types.items()])


def column_type(texts: Any, null_value: str, so_far: pa.DataType | None = None) -> pa.DataType | None:
    """Infer the type of a column from its values. Nulls, empty strings and strings that mean null are ignored.

    Args:
        texts: the values, as a string array.
        null_value: the string that means null; empty if there is none.
        so_far: the type inferred from the preceding values; None if there were none.
    """
    if so_far is not None and pat.is_string(so_far):
        return so_far
    texts = texts.filter(pc.and_(pc.is_valid(texts), pc.not_equal(texts, "")))
    texts = texts.filter(pc.not_equal(texts, null_value)) if null_value else texts
    if len(texts) == 0:
        return so_far
    kind = _number_type(texts, so_far) if _rank(so_far) <= _RANK_OF_DOUBLES else None
    kind = kind or _timestamp_type(texts)
    if kind is not None:
        return _merged(so_far, kind)
    found = so_far
    for text in pc.unique(texts).to_pylist():
        found = _merged(found, _type_of(text, found))
        if pat.is_string(found):
            break
    return found


def _number_type(texts: Any, so_far: pa.DataType | None) -> pa.DataType | None:
    """Return the type if all values are integers, or all are numbers and some have a fraction; else None.

    This is a fast path for the most frequent types.
    """
    if pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,18}$")).as_py():
        if so_far is not None and pat.is_decimal(so_far):  # after a decimal, no text is tried as an integer
            return pa.decimal128(max(pc.max(pc.utf8_length(pc.utf8_ltrim(texts, "+-0"))).as_py(), 1), 0)
        ends = pc.min_max(pc.utf8_ltrim(texts, "+").cast(pa.int64())).as_py()
        return pa.int32() if ends["min"] >= -(2**31) and ends["max"] < 2**31 else pa.int64()
    if (
        pc.all(pc.match_substring_regex(texts, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")).as_py()
        and pc.any(pc.match_substring_regex(texts, r"\.[0-9]|[eE]")).as_py()
    ):
        return pa.float64()
    return None


def _timestamp_type(texts: Any) -> pa.DataType | None:
    """Return the timestamp type if all values are plain timestamps, else None: another fast path."""
    if not pc.all(pc.match_substring_regex(texts, _PLAIN_TIMESTAMP)).as_py():
        return None
    try:
        pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # e.g. a date that does not exist
        return None
    return _INSTANT


# --- one text at a time -----------------------------------------------------------------------------------------------
def _rank(kind: pa.DataType | None) -> int:
    """Return the position of a type in the order in which Spark tries types."""
    if kind is None or pat.is_int32(kind):
        return 0
    for rank, is_kind in enumerate((pat.is_int64, pat.is_decimal, pat.is_floating, pat.is_date, pat.is_timestamp), 1):
        if is_kind(kind):
            return rank
    return 6


def _type_of(text: str, so_far: pa.DataType | None) -> pa.DataType:
    """Return the first type that the text matches; skip the types that precede the column's type so far.

    For example, after a double no text is tried as an integer.
    """
    rank = _rank(so_far)
    if rank <= 1 and re.fullmatch(r"[+-]?[0-9]+", text):
        number = int(text)
        if rank == 0 and -(2**31) <= number < 2**31:
            return pa.int32()
        if -(2**63) <= number < 2**63:
            return pa.int64()
    if rank <= 2 and re.fullmatch(r"[+-]?[0-9]+\.?", text):
        precision = max(len(text.strip("+-.").lstrip("0")), 1)
        if precision <= _LARGEST_PRECISION:
            return pa.decimal128(precision, 0)
    if rank <= 3 and _is(double_value, text):
        return pa.float64()
    if rank <= 4 and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and _is(date_days, text):
        return pa.date32()
    if rank <= 5 and _is_timestamp(text):
        return _INSTANT
    return pa.bool_() if text.lower() in ("true", "false") else pa.string()


def _is(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    """Check whether Spark infers a timestamp from the text; digits beyond microseconds are allowed.

    A time without a date, which Spark reads as a time of today, is not a timestamp here.
    """
    bare = re.sub(r"(\.\d{6})\d+", r"\1", text.strip())
    return _is(lambda one: timestamp_micros(one, "UTC"), bare)


def _merged(first: pa.DataType | None, second: pa.DataType) -> pa.DataType:
    if first is None or first.equals(second):
        return second
    low, high = sorted((first, second), key=_rank)
    if _rank(high) <= _RANK_OF_DOUBLES:
        if not pat.is_decimal(high):
            return high
        precision = low.precision if pat.is_decimal(low) else 10 if pat.is_int32(low) else 20
        return pa.decimal128(max(precision, high.precision), 0)
    if pat.is_date(low) and pat.is_timestamp(high):
        return high
    return pa.string()
