"""Select the columns and rows that a read requests with Spark's own expressions, as the Python reader would."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, isnan, lit
from pyspark.sql.types import DataType, DateType, DoubleType, FloatType, TimestampNTZType, TimestampType

from holdfast.errors import InvalidRequestError
from holdfast.options.conditions import Condition
from holdfast.options.read import ReadOptions
from holdfast.spark.filters import require_comparable, row_filters, typed_values
from holdfast.spark.types import arrow_schema
from holdfast.wording import nearest


def narrowed(frame: DataFrame, options: ReadOptions, names: Sequence[str]) -> DataFrame:
    """Return the frame with only the columns and rows that the read requests.

    Args:
        frame: a DataFrame with all columns and rows.
        options: the options of the read.
        names: the names of all columns, in the table's order.

    Raises:
        InvalidRequestError: a column does not exist, or a condition does not fit its column.
    """
    if options.columns is not None:
        folded = {name.lower(): name for name in names}
        for name in options.columns:
            if name.lower() not in folded:
                raise InvalidRequestError(f"no such column: {nearest(name, names)}", column=name)
        names = [folded[name.lower()] for name in options.columns]
    chosen = frame.select([_column(name) for name in names])
    if not options.conditions:
        return chosen
    arrow = arrow_schema(chosen.schema)
    require_comparable(options.conditions, chosen.schema)
    row_filters(options.conditions, arrow)  # refuses invalid conditions
    types = {field.name: field.dataType for field in chosen.schema.fields}
    met = [_condition(one, types[one.column], arrow.field(one.column).type) for one in options.conditions]
    return chosen.filter(reduce(Column.__and__, met))


def _column(name: str) -> Column:
    return col("`" + name.replace("`", "``") + "`")


def _condition(condition: Condition, kind: DataType, arrow: object) -> Column:
    """Translate a condition to Spark, meaning what the Python reader means: null never matches, and NaN only ``!=``."""
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    typed = typed_values(values, arrow, condition).to_pylist()
    literals = [_literal(value, kind) for value in typed]
    column = _column(condition.column)
    if 0 in values and isinstance(kind, FloatType | DoubleType):
        column = column + lit(0.0).cast(kind)  # Spark overlooks negative zeros in Parquet's statistics
    if isinstance(kind, DateType | TimestampType | TimestampNTZType) and any(map(_in_the_gap, typed)):
        column = coalesce(column, column)  # prevent pushdown: Spark would compare a file's statistics with another day
    if condition.operator == "in":
        met = column.isin(*literals)
    else:
        met = {
            "=": column == literals[0],
            "!=": column != literals[0],
            "<": column < literals[0],
            "<=": column <= literals[0],
            ">": column > literals[0],
            ">=": column >= literals[0],
        }[condition.operator]
    if isinstance(kind, FloatType | DoubleType) and condition.operator != "!=":
        met = met & ~isnan(column)
    return met


def _in_the_gap(value: date) -> bool:
    """Check whether `java.sql.Date` lacks this day; because of time zones, its neighbors count as well."""
    return (1582, 10, 4) <= (value.year, value.month, value.day) <= (1582, 10, 15)


def _literal(value: object, kind: DataType) -> Column:
    """Convert a value to a Spark literal; times become text with a zone, so that the session's zone does not matter."""
    plain = value if isinstance(value, bool | int | float | str | bytes) else _iso(value)
    return lit(plain).cast(kind)


def _iso(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
