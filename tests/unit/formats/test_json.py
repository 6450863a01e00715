"""Test JSON numbers at the limits of their types, VARIANT, and keys. `test_spark_answers` tests whole records."""

from __future__ import annotations

import io
import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter, get_format
from holdfast.formats.columns.types import VARIANT

JSON = get_format("json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1" + "0" * 400, math.inf),  # like 1e400, which has an exponent
        ("-1" + "0" * 400, -math.inf),
        ("1e400", math.inf),
        ("1" + "0" * 308, 1e308),
        ("-0", 0.0),
        ('"Infinity"', math.inf),
        ('"-INF"', -math.inf),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_double_is_the_nearest_one_there_is(text: str, value: float, nested: bool) -> None:
    schema = pa.schema([("x", pa.list_(pa.float64()) if nested else pa.float64())])
    data = f'{{"x":{f"[{text}]" if nested else text}}}\n'.encode()
    (batch,) = JSON.read_batches(io.BytesIO(data), schema, ["x"], None, JSON.default_options, None)
    assert batch.to_pylist() == [{"x": [value] if nested else value}]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (['""', "1"], pa.int64()),
        (['""', '"x"', "1"], pa.string()),
        (['[""]', '["x"]', "[1]"], pa.list_(pa.string())),
        (["1", "9" * 19], pa.decimal128(20, 0)),
        (["1", "9" * 25, "9" * 30], pa.decimal128(30, 0)),
    ],
)
def test_values_that_look_alike_may_be_of_two_types(values: list[str], kind: pa.DataType) -> None:
    """Many writers use empty strings for null, and only the number of digits tells whether a number is a long."""
    data = "".join(f'{{"x":{value}}}\n' for value in values).encode()
    assert JSON.read_schema(io.BytesIO(data), JSON.default_options) == pa.schema([("x", kind)])


@pytest.mark.parametrize("text", [b'{"v":{}}', b'{"v":{"a":1}}', b'{"v":null}'])
@pytest.mark.parametrize("kind", [VARIANT, pa.list_(VARIANT)])
def test_variant_is_not_made_of_objects(text: bytes, kind: pa.DataType) -> None:
    """An object without the two parts would give an invalid VARIANT."""
    json_format = get_format("json")
    schema = pa.schema([("v", kind), ("id", pa.int64())])
    read = json_format.read_batches
    with pytest.raises(InvalidRequestError, match="use parse_json"):
        list(read(io.BytesIO(text + b"\n"), schema, ["v"], None, json_format.default_options, None))
    assert list(read(io.BytesIO(text + b"\n"), schema, ["id"], None, json_format.default_options, None))


@pytest.mark.parametrize("key", [pa.date32(), pa.int64()])
@pytest.mark.parametrize("text", ["", '{"m":{"1":1}}\n'])
def test_maps_whose_keys_are_no_strings_are_neither_written_nor_read(text: str, key: pa.DataType) -> None:
    """Spark writes a date key as its number of days and cannot read any such key back."""
    for kind in (pa.map_(key, pa.int64()), pa.struct([("x", pa.list_(pa.map_(key, pa.int64())))])):
        schema = pa.schema([("m", kind), ("id", pa.int64())])
        with pytest.raises(InvalidRequestError, match=r"JSON maps need string keys.*column='m'"):
            JSON.check_schema(schema)
        source = io.BytesIO(text.encode())
        with pytest.raises(InvalidRequestError, match="JSON maps need string keys"):
            list(JSON.read_batches(source, schema, ["m"], None, JSON.default_options, None))
        list(JSON.read_batches(io.BytesIO(), schema, ["id"], None, JSON.default_options, None))
    JSON.check_schema(pa.schema([("m", pa.map_(pa.large_string(), pa.int64()))]))


def _read(text: str, schema: pa.Schema, row_filter: RowFilter | None = None) -> list[dict[str, object]]:
    batches = JSON.read_batches(io.BytesIO(text.encode()), schema, schema.names, row_filter, JSON.default_options, None)
    return [row for batch in batches for row in batch.to_pylist()]


X = pa.struct([("X", pa.int64())])


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"id":2}', pa.int64(), 2),
        ('{"id":{"x":3}}', X, {"X": 3}),
        ('{"id":[{"x":3},{},null]}', pa.list_(X), [{"X": 3}, {"X": None}, None]),
        ('{"id":{"K":{"x":3},"k":{"X":4}}}', pa.map_(pa.string(), X), [("K", {"X": 3}), ("k", {"X": 4})]),
        ('{"id":1,"ID":2}', pa.int64(), 2),  # the exact name takes precedence
        ('{"ID":null,"id":2}', pa.int64(), None),
    ],
)
def test_a_schema_may_spell_fields_in_another_case(text: str, kind: pa.DataType, value: object) -> None:
    """As in the other formats; the keys of a map are data."""
    assert _read(text, pa.schema([("ID", kind)])) == [{"ID": value}]
    wanted = RowFilter(pc.field("ID").is_valid(), frozenset({"ID"}))
    assert _read(text, pa.schema([("ID", kind)]), wanted) == ([] if value is None else [{"ID": value}])


def test_fields_that_differ_by_case_only_have_their_own_keys() -> None:
    both = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    schema = pa.schema([("id", both), ("ID", pa.int64())])
    assert _read('{"id":{"A":1}}\n{"ID":2}', schema) == [
        {"id": {"a": None, "A": 1}, "ID": None},
        {"id": None, "ID": 2},
    ]
    lines = io.BytesIO(b'{"id":{"A":1}}\n{"ID":2}\n')
    (batch,) = JSON.read_batches(lines, schema, ["ID"], None, JSON.default_options, None)
    assert batch.to_pylist() == [{"ID": None}, {"ID": 2}]


def test_several_keys_that_are_nearly_a_fields_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="only by case"):
        _read('{"id":1,"iD":2}', pa.schema([("Id", pa.int64())]))
    with pytest.raises(InvalidRequestError, match="only by case"):
        _read('{"s":{"id":1,"iD":2}}', pa.schema([("s", pa.struct([("Id", pa.int64())]))]))
