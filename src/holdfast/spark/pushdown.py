"""Apply a query's own conditions before rows reach Spark. Opt-in.

This is only safe for a DataFrame that is used once, in one query: Spark reuses the scan that the conditions restricted
(observed with PySpark 4.1.1 and 4.3.0, for any Python source), so a later query over the same DataFrame would get only
the restricted rows. That is why a read must request it with ``pushFilters=true``; see docs/decisions/0018.

A pushed condition never excludes rows that Spark would keep. Conditions on floating-point columns may let too many rows
pass, because NaN is the greatest value and equal to itself in Spark but not in Arrow; Spark applies these conditions
again.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StringType, StructType

from holdfast.formats import RowFilter
from holdfast.options.read import ReadOptions
from holdfast.spark.filters import is_in
from holdfast.spark.reader import HoldfastReader
from holdfast.spark.types import arrow_schema


class PushingReader(HoldfastReader):
    """A scan that Spark may restrict by the conditions of one query.

    Args:
        options: the options of the read.
        schema: the columns that Spark requests, in its order.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._spark_schema = schema

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # PySpark's name
        """Apply the filters that Arrow can express; return those that Spark must still apply."""
        taken, left = translate_filters(filters, self._spark_schema)
        self.narrow(taken)
        return left


# --- translation ------------------------------------------------------------------------------------------------------
class _Unsupported(Exception):
    """A condition for which Arrow has no expression with the same meaning as in Spark."""


def translate_filters(filters: Sequence[Filter], schema: StructType) -> tuple[list[RowFilter], list[Filter]]:
    """Split filters into those that Arrow can apply, and those that Spark must still apply.

    Args:
        filters: rows must meet all of them.
        schema: contains the columns that the filters use.
    """
    columns = {field.name: field for field in schema.fields}
    ours: list[RowFilter] = []
    left: list[Filter] = []
    for one in filters:
        try:
            name = _column(one)
            field = columns[name]
            if isinstance(field.dataType, StringType) and field.dataType != StringType():
                raise _Unsupported  # other collations compare differently
            kind = arrow_schema(StructType([field])).field(0).type
            if pat.is_nested(kind):
                raise _Unsupported
            ours.append(RowFilter(_expression(one, pc.field(name), kind), frozenset((name,))))
            if pat.is_floating(kind):
                left.append(one)
        except (_Unsupported, KeyError):
            left.append(one)
    return ours, left


def _column(one: Filter) -> str:
    inner = one.child if isinstance(one, Not) else one
    attribute: tuple[str, ...] = getattr(inner, "attribute", ())
    if len(attribute) != 1:
        raise _Unsupported
    return attribute[0]


def _expression(one: Filter, field: Any, kind: pa.DataType) -> Any:
    if not isinstance(one, Not):
        return _positive(one, field, kind)
    inner = one.child
    if pat.is_floating(kind) and not isinstance(inner, IsNull | IsNotNull):
        raise _Unsupported  # if a condition lets too many rows pass, its negation lets too few pass
    if isinstance(inner, In):
        return ~_positive(inner, field, kind) & field.is_valid()  # is_in returns false for null, SQL returns null
    return ~_positive(inner, field, kind)


def _positive(one: Filter, field: Any, kind: pa.DataType) -> Any:
    if isinstance(one, IsNull):
        return field.is_null()
    if isinstance(one, IsNotNull):
        return field.is_valid()
    if isinstance(one, In):
        return is_in(field, pa.array([_literal(value, kind).as_py() for value in one.value], kind))
    if isinstance(one, StringStartsWith | StringEndsWith | StringContains):
        return _text_match(one, field, kind)
    if isinstance(one, EqualNullSafe) and one.value is None:
        return field.is_null()
    return _comparison(one, field, kind)


def _text_match(one: Any, field: Any, kind: pa.DataType) -> Any:
    if not pat.is_string(kind) or not isinstance(one.value, str):
        raise _Unsupported
    if isinstance(one, StringStartsWith):
        return pc.starts_with(field, one.value)
    if isinstance(one, StringEndsWith):
        return pc.ends_with(field, one.value)
    return pc.match_substring(field, one.value)


def _comparison(one: Any, field: Any, kind: pa.DataType) -> Any:
    if not isinstance(one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        raise _Unsupported
    value = _literal(one.value, kind)
    if isinstance(one, EqualTo):
        return field == value
    if isinstance(one, EqualNullSafe):
        return (field == value) & field.is_valid()
    if isinstance(one, LessThan):
        return field < value
    if isinstance(one, LessThanOrEqual):
        return field <= value
    greater = field > value if isinstance(one, GreaterThan) else field >= value
    return greater | pc.is_nan(field) if pat.is_floating(kind) else greater


def _literal(value: Any, kind: pa.DataType) -> Any:
    """Return the value as a scalar of the column's type."""
    if value is None or value != value:  # null or NaN
        raise _Unsupported
    if isinstance(value, bool) != pat.is_boolean(kind):
        raise _Unsupported
    if isinstance(value, datetime.datetime) and (not pat.is_timestamp(kind) or bool(value.tzinfo) != bool(kind.tz)):
        raise _Unsupported
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        raise _Unsupported from None
