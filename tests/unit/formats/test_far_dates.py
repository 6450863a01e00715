"""Test dates and instants outside the years 0 to 9999, which neither Python nor pyarrow can print."""

from __future__ import annotations

import datetime
import io

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import get_format
from holdfast.formats.lines.render import scalar_text


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "+10000-01-01"),
        (106_751_000, "+294244-04-24"),
        (2**31 - 1, "+5881580-07-11"),
        (-719_528, "0000-01-01"),
        (-719_529, "-0001-12-31"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_dates(days: int, text: str) -> None:
    """The texts are the results of java.time.LocalDate.ofEpochDay(days).toString()."""
    assert scalar_text(pa.array([None, days], pa.int32()).cast(pa.date32())).to_pylist() == [None, text]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
        (253_402_300_800_000_000, "+10000-01-01T00:00:00"),
        (2**63 - 1, "+294247-01-10T04:00:54.775807"),
        (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999"),
        (-(2**63), "-290308-12-21T19:59:05.224192"),
    ],
)
def test_timestamps(micros: int, text: str) -> None:
    numbers = pa.array([micros, None], pa.int64())
    assert scalar_text(numbers.cast(pa.timestamp("us"))).to_pylist() == [text, None]
    assert scalar_text(numbers.cast(pa.timestamp("us", "UTC"))).to_pylist() == [f"{text}Z", None]


def test_usual_values_are_left_alone() -> None:
    days = [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]
    assert scalar_text(pa.array(days)).to_pylist() == ["0001-01-01", None, "9999-12-31"]
    assert scalar_text(pa.array([], pa.date32())).to_pylist() == []


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("late", [False, True])
def test_avro_refuses_what_its_python_reader_cannot_take_back(kind: pa.DataType, late: bool) -> None:
    day = 1 if pa.types.is_date(kind) else 86_400_000_000
    number = 2_932_897 * day if late else -719_162 * day - 1
    schema = pa.schema([("s", pa.struct([("at", kind)]))])
    numbers = pa.array([0, number], pa.int32() if day == 1 else pa.int64())
    structs = pa.StructArray.from_arrays([numbers.cast(kind)], fields=list(schema.field("s").type))
    rows = pa.record_batch([structs], schema)
    avro = get_format("avro")
    writer = avro.open_writer(io.BytesIO(), schema, avro.default_options)
    with pytest.raises(InvalidRequestError, match=r"years 1 to 9999: .*s\.at"):
        writer.write(rows)
    writer.write(rows.slice(0, 1))
