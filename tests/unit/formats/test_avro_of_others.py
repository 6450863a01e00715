"""Avro that others wrote."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pyarrow as pa
import pytest

from holdfast.formats import get_format

fastavro = pytest.importorskip("fastavro")

DAY = {"type": "int", "logicalType": "date"}
INSTANT = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "d", "type": ["null", DAY]}]}
TYPES = {
    "d": DAY,
    "t": INSTANT,
    "n": LOCAL,
    "s": ["null", INNER],
    "l": {"type": "array", "items": ["null", INSTANT]},
    "m": {"type": "map", "values": DAY},
}
DAYS, MICROS = -171_500, -14_800_000_000_000_000


@pytest.mark.parametrize(
    ("notes", "rebased"),
    [
        ({}, False),
        ({"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}, True),
        ({"org.apache.spark.version": "4.3.0"}, False),
        (
            {
                "org.apache.spark.version": "4.3.0",
                "org.apache.spark.legacyDateTime": "",
                "org.apache.spark.timeZone": "UTC",
            },
            True,
        ),
    ],
)
def test_dates_and_instants_of_the_old_calendar(notes: dict[str, str], rebased: bool) -> None:
    """As in Parquet: Spark's Avro reader goes by the same notes, and never moves local timestamps."""
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": kind} for n, kind in TYPES.items()]}
    rows: list[dict[str, Any]] = [
        {"d": DAYS, "t": MICROS, "n": MICROS, "s": {"d": DAYS}, "l": [None, MICROS], "m": {"k": DAYS}},
        {"d": 0, "t": 0, "n": 0, "s": None, "l": [], "m": {}},
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), rows, metadata=notes)
    sink.seek(0)
    avro = get_format("avro")
    found = avro.read_schema(sink, avro.default_options)
    sink.seek(0)
    (batch,) = avro.read_batches(sink, found, found.names, None, avro.default_options, None)
    batch.validate(full=True)
    day = datetime.date(1500, 6, 4 if rebased else 14)
    local = datetime.datetime(1501, 1, 3, 16, 53, 20)
    instant = (local - datetime.timedelta(days=10 if rebased else 0)).replace(tzinfo=datetime.timezone.utc)
    start = datetime.datetime(1970, 1, 1)
    assert batch.to_pylist() == [
        {"d": day, "t": instant, "n": local, "s": {"d": day}, "l": [None, instant], "m": [("k", day)]},
        {
            "d": start.date(),
            "t": start.replace(tzinfo=datetime.timezone.utc),
            "n": start,
            "s": None,
            "l": [],
            "m": [],
        },
    ]
    assert batch.schema.equals(pa.schema(found))
