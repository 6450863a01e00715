"""Test that converting a column keeps its values or raises an error."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import acero

from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter
from holdfast.formats.columns.conversion import (
    cast_column,
    convert_batch,
    convert_to_requested,
    filter_rows,
    reinterpret_bits,
)

US, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("kind", "wanted", "value", "found"),
    [
        (pa.int32(), pa.int64(), 1, 1),
        (pa.uint64(), pa.decimal128(20, 0), 1, Decimal(1)),
        (pa.int32(), pa.float64(), 1, 1.0),
        (pa.float32(), pa.float64(), 0.5, 0.5),
        (pa.decimal128(5, 2), pa.decimal128(10, 4), Decimal("1.50"), Decimal("1.5000")),
        (pa.timestamp("ns", "UTC"), UTC, 1000, datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.timezone.utc)),
        (pa.date32(), US, DAY, datetime.datetime(2020, 1, 1)),
        (pa.large_string(), pa.string(), "x", "x"),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), "x", "x"),
        (pa.null(), pa.date32(), None, None),
        (pa.time32("ms"), pa.time64("us"), datetime.time(1), datetime.time(1)),
    ],
)
def test_values_stay(kind: pa.DataType, wanted: pa.DataType, value: Any, found: Any) -> None:
    assert cast_column(pa.array([value], kind), pa.field("a", wanted)).to_pylist() == [found]
    nested = pa.array([{"x": [value]}], pa.struct([("x", pa.list_(kind))]))
    into = pa.field("a", pa.struct([("x", pa.list_(wanted))]))
    assert cast_column(nested, into).to_pylist() == [{"x": [found]}]


@pytest.mark.parametrize(
    ("kind", "wanted", "value"),
    [
        (pa.int64(), UTC, 1),
        (pa.int64(), pa.duration("us"), 1),
        (pa.int32(), pa.date32(), 1),
        (pa.int64(), pa.bool_(), 1),
        (pa.int64(), pa.string(), 1),
        (pa.bool_(), pa.int32(), True),
        (pa.bool_(), pa.string(), True),
        (pa.string(), pa.int32(), "1"),
        (pa.string(), pa.date32(), "2020-01-01"),
        (pa.date32(), UTC, DAY),
        (pa.date32(), pa.string(), DAY),
        (pa.date32(), pa.int32(), DAY),
        (UTC, pa.int64(), 1),
        (UTC, pa.date32(), 1),
        (UTC, pa.string(), 1),
        (pa.float64(), pa.float32(), 0.1),
        (pa.float64(), pa.decimal128(10, 2), 0.1),
        (pa.decimal128(5, 2), pa.float64(), Decimal("1.10")),
        (pa.struct([("x", pa.int64())]), pa.string(), {"x": 1}),
        (pa.int64(), pa.list_(pa.int64()), 1),
    ],
)
def test_what_would_be_something_else_is_refused(kind: pa.DataType, wanted: pa.DataType, value: Any) -> None:
    for column, into in (
        (pa.array([value], kind), wanted),
        (pa.array([[value]], pa.list_(kind)), pa.list_(wanted)),
        (pa.array([{"x": value}], pa.struct([("x", kind)])), pa.struct([("x", wanted)])),
    ):
        with pytest.raises(InvalidRequestError, match="does not fit the column's type"):
            cast_column(column, pa.field("a", into))


def test_times_become_numbers_and_back() -> None:
    kind = pa.map_(pa.string(), pa.struct([("t", UTC), ("d", pa.date32())]))
    numbers = pa.map_(pa.string(), pa.struct([("t", pa.int64()), ("d", pa.int32())]))
    column = pa.array([None, [("k", {"t": 5, "d": 7}), ("n", None)], [], [("l", {"t": None, "d": 1})]], kind).slice(1)
    found = reinterpret_bits(column, numbers)
    found.validate(full=True)
    assert found.to_pylist() == [[("k", {"t": 5, "d": 7}), ("n", None)], [], [("l", {"t": None, "d": 1})]]
    assert reinterpret_bits(found, kind).equals(column)


@pytest.mark.parametrize(
    ("kind", "wanted", "values"),
    [
        (pa.struct([("X", pa.int32())]), pa.struct([("x", pa.int64())]), [{"x": 1}, None, {"x": 3}]),
        (
            pa.list_(pa.struct([("X", pa.int32())])),
            pa.list_(pa.struct([("x", pa.int64())])),
            [[{"x": 1}, {"x": 2}], None, [{"x": 3}]],
        ),
        (
            pa.map_(pa.string(), pa.struct([("X", pa.int32())])),
            pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
            [[("k", {"x": 1})], None, [("l", {"x": 3})]],
        ),
    ],
)
def test_rows_of_a_slice_stay_where_they_are(kind: pa.DataType, wanted: pa.DataType, values: list[Any]) -> None:
    """Also if a nested field is spelled differently."""
    schema = pa.schema([("a", wanted)])
    batch = pa.record_batch([shouted(values, kind)], names=["A"])
    for start in range(len(values)):
        assert convert_batch(batch.slice(start), schema)["a"].to_pylist() == values[start:]


def shouted(values: list[Any], kind: pa.DataType) -> Any:
    """Return the array with its fields x renamed to X."""

    def spelled(value: Any) -> Any:
        if isinstance(value, dict):
            return {"X": value["x"]}
        if isinstance(value, tuple):
            return (value[0], spelled(value[1]))
        return [spelled(one) for one in value] if isinstance(value, list) else value

    return pa.array(spelled(values), kind)


@pytest.mark.parametrize(("least", "found"), [(0, [1, 2, None]), (2, [2]), (9, [])])
def test_a_filter_may_keep_nothing(monkeypatch: pytest.MonkeyPatch, least: int, found: list[int | None]) -> None:
    """With pyarrow before 21, too, in which `RecordBatch.filter` raises an error if no row passes."""
    later = acero._filter_table

    def earlier(table: pa.Table | pa.RecordBatch, expression: pc.Expression) -> pa.Table | pa.RecordBatch:
        kept = later(table, expression)
        if isinstance(table, pa.RecordBatch) and not kept.num_rows:
            raise IndexError
        return kept

    monkeypatch.setattr(acero, "_filter_table", earlier)
    batch = pa.record_batch({"a": [1, 2, None], "b": ["x", "y", None]})
    passing = pc.field("a") >= least if least else pc.field("a").is_null() | (pc.field("a") > 0)
    row_filter = RowFilter(passing, frozenset("a"))
    assert filter_rows(batch, row_filter).column("a").to_pylist() == found
    assert filter_rows(batch.slice(3), row_filter).schema == batch.schema
    assert convert_to_requested(batch, batch.schema, ["b"], row_filter).num_rows == len(found)
