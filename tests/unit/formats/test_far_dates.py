"""Test dates and instants outside the years 1 to 9999, which Python does not have and pyarrow does not print."""

from __future__ import annotations

import datetime
import io

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import get_format
from holdfast.formats.lines import format_scalars


def test_usual_values_are_left_alone() -> None:
    days = [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]
    assert format_scalars(pa.array(days)).to_pylist() == ["0001-01-01", None, "9999-12-31"]
    assert format_scalars(pa.array([], pa.date32())).to_pylist() == []


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["avro", "csv", "json"])
def test_what_no_reader_takes_back_is_refused(name: str, kind: pa.DataType, late: bool) -> None:
    day = 1 if pa.types.is_date(kind) else 86_400_000_000
    number = 2_932_897 * day if late else -719_162 * day - 1
    numbers = pa.array([0, number], pa.int32() if day == 1 else pa.int64())
    column = numbers.cast(kind)
    if name != "csv":
        column = pa.StructArray.from_arrays([column], names=["at"])
    rows = pa.record_batch({"s": column})
    found = get_format(name)
    writer = found.open_writer(io.BytesIO(), rows.schema, found.parse_options({}).options)
    with pytest.raises(InvalidRequestError, match=r"years 1 to 9999: .*'s"):
        writer.write(rows)
    writer.write(rows.slice(0, 1))
