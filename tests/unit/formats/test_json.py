"""Test JSON: numbers, keys of maps, names in another case. `test_round_trip` tests all types."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import RowFilter, get_format

JSON = get_format("json")
X = pa.struct([("X", pa.int64())])


def write(batch: pa.RecordBatch) -> str:
    sink = io.BytesIO()
    writer = JSON.open_writer(sink, batch.schema, JSON.default_options)
    writer.write(batch)
    writer.close()
    return sink.getvalue().decode()


def read(text: str, schema: pa.Schema, row_filter: RowFilter | None = None) -> list[dict[str, Any]]:
    batches = JSON.read_batches(io.BytesIO(text.encode()), schema, schema.names, row_filter, JSON.default_options, None)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("value", [1e308, -0.0, math.inf, -math.inf, 5e-324, 0.1, 2.0**53 + 2, 1e20, None])
@pytest.mark.parametrize("nested", [False, True])
def test_doubles_come_back(value: float | None, nested: bool) -> None:
    batch = pa.record_batch({"x": pa.array([[value]], pa.list_(pa.float64())) if nested else pa.array([value])})
    (row,) = read(write(batch), batch.schema)
    assert repr(row) == repr(batch.to_pylist()[0])


def test_decimals_keep_all_digits() -> None:
    kind = pa.decimal128(38, 18)
    values = [Decimal("12345678901234567890.123456789012345678"), Decimal("-1E-18"), Decimal(7), None]
    batch = pa.record_batch({"x": pa.array(values, kind)})
    assert read(write(batch), batch.schema) == batch.to_pylist()


@pytest.mark.parametrize("key", [pa.date32(), pa.int64()])
def test_maps_whose_keys_are_no_strings_are_refused(key: pa.DataType) -> None:
    """Spark writes a date key as its number of days and cannot read any such key back."""
    for kind in (pa.map_(key, pa.int64()), pa.struct([("x", pa.list_(pa.map_(key, pa.int64())))])):
        with pytest.raises(InvalidRequestError, match=r"JSON maps need string keys.*column='m'"):
            JSON.check_schema(pa.schema([("m", kind)]))
    JSON.check_schema(pa.schema([("m", pa.map_(pa.large_string(), pa.int64()))]))


def test_a_map_with_a_key_twice_is_refused() -> None:
    """Readers keep one of the values."""
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("a", 1), ("b", 2)], None, [], [("a", 3)], [("c", 1), ("a", 2), ("c", 3)]], kind)
    good = pa.record_batch({"m": maps.slice(0, 4)})
    assert read(write(good), good.schema) == good.to_pylist()
    hidden = pa.MapArray.from_arrays([0, 2, 3], ["a", "a", "b"], [1, 2, 3], mask=pa.array([True, False]))
    assert read(write(pa.record_batch({"m": hidden})), pa.schema([("m", kind)])) == [{"m": None}, {"m": [("b", 3)]}]
    for bad in (maps, maps.slice(4)):
        with pytest.raises(InvalidRequestError, match="a map contains a key twice"):
            write(pa.record_batch({"m": bad}))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"id":2}', pa.int64(), 2),
        ('{"id":{"x":3}}', X, {"X": 3}),
        ('{"id":[{"x":3},{},null]}', pa.list_(X), [{"X": 3}, {"X": None}, None]),
        ('{"id":{"K":{"x":3},"k":{"X":4}}}', pa.map_(pa.string(), X), [("K", {"X": 3}), ("k", {"X": 4})]),
        ("{}", pa.int64(), None),
    ],
)
def test_a_schema_may_spell_fields_in_another_case(text: str, kind: pa.DataType, value: object) -> None:
    """As in the other formats; the keys of a map are data."""
    assert read(f"{text}\n", pa.schema([("ID", kind)])) == [{"ID": value}]
    wanted = RowFilter(pc.field("ID").is_valid(), frozenset({"ID"}))
    assert read(f"{text}\n", pa.schema([("ID", kind)]), wanted) == ([] if value is None else [{"ID": value}])


@pytest.mark.parametrize("line", ["{", "[]", "1", "", '{"x":1} 2', "{'x':1}"])
def test_a_line_that_is_not_an_object_is_refused(line: str) -> None:
    with pytest.raises(CorruptDataError, match="a line is not a JSON object"):
        read(f"{line}\n", pa.schema([("x", pa.int64())]))


@pytest.mark.parametrize("value", ['"1"', "1.5", "[1]", "{}", "true", "9999999999999999999"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_value_of_another_type_is_refused(value: str, nested: bool) -> None:
    kind = pa.list_(pa.int64()) if nested else pa.int64()
    with pytest.raises(CorruptDataError, match=r"not of its column's type.*column='x'"):
        read(f'{{"x":{f"[{value}]" if nested else value}}}\n', pa.schema([("x", kind)]))
