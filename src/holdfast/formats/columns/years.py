"""The years that Python has, 1 to 9999: Spark's dates and timestamps go further, as most formats do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.conversion import leaves

__all__ = ["check_years"]

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_MICROS = 86_400_000_000


def check_years(reader: str, batch: pa.RecordBatch) -> None:
    """Refuse dates and timestamps in other years, wherever they are.

    Args:
        reader: which cannot take them back, for the error: one such value would spoil the file.

    Raises:
        InvalidRequestError: there is one.
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
                    f"{reader} knows the years 1 to 9999: use parquet, or another value", column=path
                )
