"""Conditions of a read, given by the caller and applied before rows reach Spark.

Spark can hand a query's conditions to a Python source by itself, but must not be let: it keeps the narrowed scan for
the DataFrame, and the next query over the same DataFrame, with other conditions or none, gets the narrowed rows (seen
with PySpark 4.1.1 and 4.3.0, for any Python source). So `pushFilters` is not there, and conditions are said once.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter, nearest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "Condition",
    "conditions_text",
    "is_in",
    "parse_conditions",
    "require_comparable",
    "row_filters",
    "typed_values",
]

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": lambda field, value: field == value,
    "!=": lambda field, value: field != value,
    "<": lambda field, value: field < value,
    "<=": lambda field, value: field <= value,
    ">": lambda field, value: field > value,
    ">=": lambda field, value: field >= value,
    "in": lambda field, values: is_in(field, values),
}


@dataclass(frozen=True)
class Condition:
    """``column operator value``; a row with null in the column does not meet it, nor does NaN except for ``!=``."""

    column: str
    operator: str
    value: object


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Conditions from the option ``filters``: JSON such as ``[["month", "=", 1], ["day", "in", [1, 2]]]``.

    Raises:
        InvalidRequestError: it is not that; says what to write.
    """
    try:
        triples = json.loads(text)
        return tuple(_condition(*triple) for triple in triples)
    except (ValueError, TypeError) as error:
        if isinstance(error, InvalidRequestError):
            raise
        raise InvalidRequestError(
            'not a list of conditions: write [["month", "=", 1], ["day", "in", [1, 2]]]'
        ) from error


def _condition(column: object, operator: object, value: object) -> Condition:
    if operator not in _OPERATORS:
        raise InvalidRequestError(f"no such operator: use one of {' '.join(_OPERATORS)}")
    if isinstance(value, list) != (operator == "in"):
        raise InvalidRequestError("a list of values goes with the operator in, a single value with the others")
    return Condition(str(column), str(operator), tuple(value) if isinstance(value, list) else value)


def conditions_text(conditions: Sequence[object]) -> str:
    """Conditions in Python values as the option ``filters``; dates, timestamps and decimals become text.

    Raises:
        InvalidRequestError: a condition or value is none.
    """
    triples = [list(one) if isinstance(one, tuple | list) else [] for one in conditions]
    if not all(triples):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]')
    return json.dumps(triples, default=_plain)


def _plain(value: object) -> object:
    """A value that JSON has no word for; the text of anything else would be compared as if it were one."""
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, datetime.date | datetime.time | Decimal):
        return str(value)
    if callable(item := getattr(value, "item", None)):  # a number of numpy's
        return item()
    raise InvalidRequestError(
        "conditions compare with strings, numbers, booleans, dates, times and decimals: write one of those",
        type=type(value).__name__,
    )


def require_comparable(conditions: Sequence[Condition], schema: StructType) -> None:
    """Refuse to compare texts byte by byte that Spark compares otherwise.

    Raises:
        InvalidRequestError: a condition's column has a collation.
    """
    from pyspark.sql.types import StringType  # the command line reads conditions without PySpark

    collated = {f.name for f in schema if isinstance(f.dataType, StringType) and f.dataType != StringType()}
    for one in conditions:
        if one.column in collated:
            raise InvalidRequestError(
                "the column has a collation, which conditions of a read do not heed: filter the DataFrame instead",
                column=one.column,
            )


def row_filters(conditions: Sequence[Condition], schema: pa.Schema) -> list[RowFilter]:
    """The conditions over the columns that are read.

    Raises:
        InvalidRequestError: a column is not among them, or a value is not of its type.
    """
    found = []
    for one in conditions:
        if one.column not in schema.names:
            raise InvalidRequestError(
                f"conditions speak of columns that are read: {nearest(one.column, schema.names)}", column=one.column
            )
        kind = schema.field(one.column).type
        values = one.value if isinstance(one.value, tuple) else (one.value,)
        typed = typed_values(values, kind, one)
        expression = _OPERATORS[one.operator](pc.field(one.column), typed if one.operator == "in" else typed[0])
        found.append(RowFilter(expression, frozenset((one.column,))))
    return found


def typed_values(values: Sequence[object], kind: pa.DataType, condition: Condition) -> Any:
    """The values as an array of the column's type; text stands for dates, timestamps and decimals.

    Raises:
        InvalidRequestError: a value is not of the type.
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
        if pat.is_timestamp(kind) and kind.tz is not None and not wrong and _are_local(texts):
            raise InvalidRequestError(
                "a condition on a timestamp needs the time zone of its value: write an offset such as "
                "'2026-01-01 08:00:00Z', or give the datetime a tzinfo",
                column=condition.column,
                value=condition.value,
            ) from error
        raise InvalidRequestError(
            "a condition's value is not of its column's type: write a value of that type",
            column=condition.column,
            type=str(kind),
            value=condition.value,
        ) from error


def is_in(field: Any, values: pa.Array) -> Any:
    """Whether a field is one of the values. Arrow looks them up by their bits, in statistics too: a zero has two."""
    found = field.isin(values)
    if pat.is_floating(values.type) and 0 in values.to_pylist():
        return found | (field == pa.scalar(0, values.type))
    return found


def _are_local(texts: Sequence[str]) -> bool:
    """Whether some of them are timestamps without a zone."""
    for text in texts:
        try:
            if datetime.datetime.fromisoformat(text).tzinfo is None:
                return True
        except ValueError:
            continue
    return False
