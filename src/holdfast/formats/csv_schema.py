"""Names and types of CSV columns, as Spark's ``inferSchema=true`` has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.formats.spark_text import date_days, double_value, timestamp_micros

__all__ = ["column_type", "safe_names"]

_INSTANT = pa.timestamp("us", "UTC")
_LARGEST_PRECISION = 38


def safe_names(header: Sequence[str | None], null_value: str) -> list[str]:
    """The names of columns from a header: those without one, and those that come twice, are numbered."""
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


def column_type(texts: Any, null_value: str) -> pa.DataType:
    """The type of a column, a string array; null, nothing and the text of a null do not count."""
    texts = texts.filter(pc.and_(pc.is_valid(texts), pc.not_equal(texts, "")))
    texts = texts.filter(pc.not_equal(texts, null_value)) if null_value else texts
    if len(texts) == 0:
        return pa.string()
    if pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,9}$")).as_py():
        return pa.int32()
    if (
        pc.all(pc.match_substring_regex(texts, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")).as_py()
        and pc.any(pc.match_substring_regex(texts, r"\.[0-9]|[eE]")).as_py()
    ):
        return pa.float64()
    found: pa.DataType | None = None
    for text in pc.unique(texts).to_pylist():
        found = _merged(found, _type_of(text, found))
        if pat.is_string(found):
            break
    assert found is not None, "there is a text"
    return found


# --- one text after the other -----------------------------------------------------------------------------------------
def _rank(kind: pa.DataType | None) -> int:
    """Where in the order of attempts a column is that has this type so far."""
    if kind is None or pat.is_int32(kind):
        return 0
    for rank, is_kind in enumerate((pat.is_int64, pat.is_decimal, pat.is_floating, pat.is_date, pat.is_timestamp), 1):
        if is_kind(kind):
            return rank
    return 6


def _type_of(text: str, so_far: pa.DataType | None) -> pa.DataType:
    """The first type that the text is of, beginning with the column's so far: a double is not tried as an integer."""
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


_TIME_ONLY = re.compile(r"T?(\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?.*)", re.ASCII)


def _is_timestamp(text: str) -> bool:
    """Also with digits beyond microseconds and without a date: Spark infers timestamps from these, too."""
    bare = re.sub(r"(\.\d{6})\d+", r"\1", text.strip())
    time = _TIME_ONLY.fullmatch(bare)
    if time is not None:
        bare = "1970-01-01T" + time[1]
    return _is(lambda one: timestamp_micros(one, "UTC"), bare)


def _merged(first: pa.DataType | None, second: pa.DataType) -> pa.DataType:
    if first is None or first.equals(second):
        return second
    low, high = sorted((first, second), key=_rank)
    if _rank(high) <= 3:
        if not pat.is_decimal(high):
            return high
        precision = low.precision if pat.is_decimal(low) else 10 if pat.is_int32(low) else 20
        return pa.decimal128(max(precision, high.precision), 0)
    if pat.is_date(low) and pat.is_timestamp(high):
        return high
    return pa.string()
