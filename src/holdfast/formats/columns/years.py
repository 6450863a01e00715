"""Check that dates and timestamps are in the years 1 to 9999, the range of Python.

Spark's dates and timestamps have a wider range, and so do most formats.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.conversion import leaves

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_MICROS = 86_400_000_000


def check_years(reader: str, batch: pa.RecordBatch) -> None:
    """Reject dates and timestamps outside the years 1 to 9999, even in nested columns.

    Args:
        reader: the reader that cannot read values outside this range, for the error message. One such value would make
            the whole file unreadable for it.
        batch: the rows to check.

    Raises:
        InvalidRequestError: a value is out of range.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        for path, leaf in leaves(field.name, column):
            if not (pat.is_date32(leaf.type) or pat.is_timestamp(leaf.type)):
                continue
            is_date = pat.is_date32(leaf.type)
            numbers = leaf.cast(pa.int32()) if is_date else leaf.cast(pa.timestamp("us")).cast(pa.int64())
            day = 1 if is_date else _DAY_MICROS
            bounds = pc.min_max(numbers).as_py()
            if bounds["min"] is None:
                continue
            if bounds["min"] < _FIRST_DAY * day or bounds["max"] >= (_LAST_DAY + 1) * day:
                raise InvalidRequestError(
                    f"{reader} supports only the years 1 to 9999: use parquet, or another value", column=path
                )
