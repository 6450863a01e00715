"""Apply the conditions of a read before rows reach Spark. Only the Python reader takes conditions.

Spark can push a query's conditions down to a Python source, but that is unsafe: Spark reuses the scan that the
conditions restricted, so the next query over the same DataFrame, with other conditions or none, gets only the
restricted rows (observed with PySpark 4.1.1 and 4.3.0, for any Python source). So `HoldfastReader` does not implement
`pushFilters`, and the caller states the conditions of a read.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter
from holdfast.options.values import Condition
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": lambda field, value: field == value,
    "!=": lambda field, value: field != value,
    "<": lambda field, value: field < value,
    "<=": lambda field, value: field <= value,
    ">": lambda field, value: field > value,
    ">=": lambda field, value: field >= value,
    "in": lambda field, values: _equals_any(field, values),
}


def require_comparable_strings(conditions: Sequence[Condition], schema: StructType) -> None:
    """Refuse conditions on strings that Spark does not compare byte by byte.

    Raises:
        InvalidRequestError: a condition's column has a collation.
    """
    from pyspark.sql.types import StringType  # deferred: the command line uses this module without PySpark

    collated = {f.name for f in schema if isinstance(f.dataType, StringType) and f.dataType != StringType()}
    for one in conditions:
        if one.column in collated:
            raise InvalidRequestError(
                "the column has a collation, which conditions of a read do not support: filter the DataFrame instead",
                column=one.column,
            )


def build_row_filters(conditions: Sequence[Condition], schema: pa.Schema) -> list[RowFilter]:
    """Return the conditions as Arrow filters over the columns that are read.

    Raises:
        InvalidRequestError: a column is not read, or a value does not have the column's type.
    """
    found = []
    for one in conditions:
        if one.column not in schema.names:
            raise InvalidRequestError(
                f"a condition's column is not read: {suggest_nearest(one.column, schema.names)}", column=one.column
            )
        kind = schema.field(one.column).type
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        typed = _convert_values(values, kind, one)
        expression = _OPERATORS[one.operator](pc.field(one.column), typed if one.operator == "in" else typed[0])
        found.append(RowFilter(expression, frozenset((one.column,))))
    return found


def _convert_values(values: Sequence[object], kind: pa.DataType, condition: Condition) -> Any:
    """Convert a condition's values to an array of the column's type; dates, timestamps and decimals are given as text.

    Raises:
        InvalidRequestError: a value does not have the type.
    """
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    quoted = [isinstance(value, str) for value in values]
    takes_text = pat.is_string(kind) or pat.is_temporal(kind) or pat.is_decimal(kind)
    wrong = (any(quoted) and not takes_text) or (pat.is_string(kind) and not all(quoted))
    try:
        wrong = wrong or any(value != value for value in values)  # NaN
        if wrong or None in values or pat.is_nested(kind):
            raise pa.ArrowInvalid("not comparable")
        return pa.array(texts, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if pat.is_timestamp(kind) and kind.tz is not None and not wrong and _has_local_timestamp(texts):
            raise InvalidRequestError(
                "a timestamp in a condition needs a time zone: write an offset such as '2026-01-01 08:00:00Z', or give "
                "the datetime a tzinfo",
                column=condition.column,
                value=condition.value,
            ) from error
        raise InvalidRequestError(
            "a condition's value does not have its column's type: write a value of that type",
            column=condition.column,
            type=str(kind),
            value=condition.value,
        ) from error


def _equals_any(field: Any, values: pa.Array) -> Any:
    """Return an expression that is true if the field equals one of the values.

    Arrow compares bits, even in statistics, so 0.0 and -0.0 are both searched for.
    """
    found = field.isin(values)
    if pat.is_floating(values.type) and 0 in values.to_pylist():
        return found | (field == pa.scalar(0, values.type))
    return found


def _has_local_timestamp(texts: Sequence[str]) -> bool:
    """Check whether any of the strings is a timestamp without a time zone."""
    for text in texts:
        try:
            if datetime.datetime.fromisoformat(text).tzinfo is None:
                return True
        except ValueError:
            continue
    return False
