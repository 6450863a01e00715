"""Infer the type of a partition column from the names of its directories, like Spark.

Source: ``PartitioningUtils.inferPartitionColumnValue`` and ``findWiderTypeForPartitionColumn`` of Spark 4.3; this
module reproduces results observed in Spark.
"""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

from holdfast.formats.columns.types import is_string
from holdfast.table.civil import is_date, is_timestamp
from holdfast.table.values import parse_float

_MOST_DIGITS = 38
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?")
# The number of digits of each integer type, for widening it to a decimal.
_DIGITS = {pa.int32(): 10, pa.int64(): 20}
_INSTANT = pa.timestamp("us", "UTC")


def infer_type(texts: Sequence[str | None], *, enabled: bool = True, timestamp: pa.DataType = _INSTANT) -> pa.DataType:
    """Return the type that Spark infers for a partition column: the narrowest that fits all values, or string.

    Args:
        texts: the values as they are in directory names, escaped; None for null.
        enabled: Spark's ``spark.sql.sources.partitionColumnTypeInference.enabled``; if False, the type is always
            string.
        timestamp: the type of timestamps, which Spark takes from ``spark.sql.timestampType``.

    Returns:
        The type; the null type if there are only nulls.
    """
    kinds = {_infer_one(text, timestamp) if enabled else pa.string() for text in texts if text is not None}
    return functools.reduce(_wider, sorted(kinds, key=str)) if kinds else pa.null()


def _infer_one(text: str, timestamp: pa.DataType) -> pa.DataType:
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return pa.int32()
        if -(2**63) <= number < 2**63:
            return pa.int64()
    digits = _whole_digits(text)
    if digits is not None and digits <= _MOST_DIGITS:
        return pa.decimal128(digits, 0)
    if parse_float(text) is not None:
        return pa.float64()
    if is_timestamp(_plain(text)):
        return timestamp
    return pa.date32() if is_date(text) else pa.string()


def _plain(text: str) -> str:
    """Unescape colons, the only characters in a timestamp that directory names escape."""
    return text.replace("%3A", ":").replace("%3a", ":")


def _whole_digits(text: str) -> int | None:
    """Count the digits of a number without a fraction, as Java's BigDecimal does; None for any other text."""
    if not _DECIMAL.fullmatch(text):
        return None
    _, digits, exponent = decimal.Decimal(text).as_tuple()
    if not isinstance(exponent, int) or exponent < 0:
        return None
    return len(digits) + exponent


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    pair = {one, other}
    if pair == {pa.int32(), pa.float64()}:
        return pa.float64()
    if pa.float64() not in pair and all(kind in _DIGITS or pat.is_decimal(kind) for kind in pair):
        if pair == {pa.int32(), pa.int64()}:
            return pa.int64()
        return pa.decimal128(max(_DIGITS.get(kind) or kind.precision for kind in pair), 0)
    if all(pat.is_date32(kind) or pat.is_timestamp(kind) for kind in pair):
        return one if pat.is_timestamp(one) else other
    assert not is_string(one) or not is_string(other), "equal types are handled above"
    return pa.string()
