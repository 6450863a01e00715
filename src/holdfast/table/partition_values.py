"""Convert the values of partition columns to the texts in directory names, and back; infer their types.

The types are those whose texts all readers understand alike: whole numbers, decimals, strings, booleans and dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.dates import check_years


def format_partition_values(values: Any, column: str = "") -> list[str | None]:
    """Convert each value of an array to a string. Pass distinct values only: this is a Python loop over them.

    Guarantee: `parse_partition_values` restores the values from the strings.

    Args:
        values: the values; `partition.resolve_partition_columns` must accept their type.
        column: the name of the column, for errors.

    Raises:
        InvalidRequestError: a string is not valid Unicode, or a date is not in the years 1 to 9999.
    """
    if pat.is_null(values.type):
        return [None] * len(values)
    if pat.is_decimal(values.type):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    check_years("a reader of directory names", pa.record_batch([values], names=[column]))
    try:
        texts: list[str | None] = values.cast(pa.string()).to_pylist()
    except UnicodeDecodeError:
        raise InvalidRequestError("a partition value is not valid Unicode: clean it", column=column) from None
    return texts


def parse_partition_values(texts: Sequence[str | None], kind: pa.DataType, column: str) -> Any:
    """Parse strings that `format_partition_values` or other writers produced into an array of the type.

    Args:
        texts: the unescaped values of directories; None for null.
        kind: the column's type.
        column: the name of the column, for errors.

    Raises:
        InvalidRequestError: a text is not a value of the type.
    """
    try:
        if pat.is_timestamp(kind) or pat.is_floating(kind):
            raise pa.ArrowInvalid("Spark reads such values differently, according to its settings")
        return pa.array(texts, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            "a partition directory's value does not fit the column's type: give the right schema, or use spark.read",
            column=column,
            type=str(kind),
        ) from error


# --- inference --------------------------------------------------------------------------------------------------------
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# What else Spark takes for a number, a date or a timestamp.
_NUMBER = r"NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|0[xX].*"
_OTHER = re.compile(rf"[\x00-\x20]*[+-]?(?:{_NUMBER}|\d{{4,7}}-\d\d-\d\d.*)[\x00-\x20]*", re.DOTALL)


def infer_partition_type(texts: Sequence[str | None]) -> pa.DataType:
    """Return the type that Spark infers for a partition column: int, long, date or string; null for only nulls.

    Args:
        texts: the values as they are in directory names, escaped; None for null.

    Raises:
        InvalidRequestError: Spark might infer another type.
    """
    found = [text for text in texts if text is not None]
    if not found:
        return pa.null()
    for kind, pattern in ((pa.int32(), _WHOLE), (pa.int64(), _WHOLE), (pa.date32(), _DATE)):
        if all(pattern.fullmatch(text) for text in found):
            try:
                pa.array(found, pa.string()).cast(kind)
            except pa.ArrowInvalid:
                continue
            return kind
    if all(_OTHER.fullmatch(text) for text in found):
        raise InvalidRequestError(
            "the type of a partition column is not clear from its directories: give a schema, or use spark.read",
            value=found[0],
        )
    return pa.string()
