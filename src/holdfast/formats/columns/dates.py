"""Refuse dates and timestamps that a reader, or this package itself, would change.

Spark's dates and timestamps have a wider range of years than Python's, and so do most formats. Spark before 3.0, and
Spark's ORC files to this day, count dates before 1582-10-15 in the Julian calendar, and timestamps before 1900 with
offsets of their own. Only Spark's own reader converts such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.formats.columns.arrow_types import contains_type
from holdfast.formats.columns.conversion import leaf_columns

GREGORIAN_DAY = -141_427
"""1582-10-15, in days since 1970-01-01: from then on all calendars agree."""
FIRST_INSTANT_US = -2_208_988_800_000_000
"""1900-01-01T00:00:00Z: from then on all readers agree on the offsets of time zones."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_MICROS = 86_400_000_000


def iter_dates_and_timestamps(batch: pa.RecordBatch | pa.Table) -> Iterator[tuple[str, pa.DataType, Any]]:
    """Yield (path, type, values) of each date or timestamp column, even nested, as days or microseconds."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not contains_type(field.type, lambda kind: bool(pat.is_date32(kind) or pat.is_timestamp(kind))):
            continue
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for path, leaf in leaf_columns(field.name, chunk):
                if pat.is_date32(leaf.type):
                    yield path, leaf.type, leaf.cast(pa.int32())
                elif pat.is_timestamp(leaf.type):
                    yield path, leaf.type, leaf.cast(pa.timestamp("us", leaf.type.tz), safe=False).cast(pa.int64())


def check_years(reader: str, batch: pa.RecordBatch) -> None:
    """Reject dates and timestamps outside the years 1 to 9999, even in nested columns.

    Args:
        reader: the reader that cannot read values outside this range, for the error message. One such value would make
            the whole file unreadable for it.
        batch: the rows to check.

    Raises:
        InvalidRequestError: a value is out of range.
    """
    for path, kind, numbers in iter_dates_and_timestamps(batch):
        day = 1 if pat.is_date32(kind) else _DAY_MICROS
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is not None and not _FIRST_DAY * day <= bounds["min"] <= bounds["max"] < (_LAST_DAY + 1) * day:
            raise InvalidRequestError(
                f"{reader} supports only the years 1 to 9999: use parquet, or another value", column=path
            )


def has_old_calendar(notes: Mapping[bytes, bytes]) -> bool:
    """Check whether a file's metadata says that Spark wrote some of its values in the calendar of Spark before 3.0."""
    version = notes.get(b"org.apache.spark.version")
    return version is not None and (  # Spark compares versions as text, too
        version < b"3.1.0" or b"org.apache.spark.legacyDateTime" in notes or b"org.apache.spark.legacyINT96" in notes
    )


def refuse_old_calendar_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a file that uses the Julian calendar, after checking that this changes none of their values.

    Raises:
        UnsupportedError: a value may change.
    """
    for path, kind, numbers in iter_dates_and_timestamps(batch):
        first = GREGORIAN_DAY if pat.is_date32(kind) else FIRST_INSTANT_US
        least = pc.min(numbers).as_py()
        if least is not None and least < first and not (pat.is_timestamp(kind) and kind.tz is None):
            raise UnsupportedError(
                "dates before 1582-10-15 and timestamps before 1900 in Spark's old calendar are read by Spark only: "
                "use spark.read, or leave the column out",
                column=path,
            )
    return batch
