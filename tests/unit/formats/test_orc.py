"""ORC holds what went in: nested nulls in slices, what pyarrow's encoder and decoder would change, and refusals."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc as pa_orc

from holdfast.formats import get_format
from holdfast.formats.columns import plain_schema
from tests.unit.formats.nested_batches import random_batches
from tests.unit.formats.test_round_trip import read, write

ORC = get_format("orc")
INNER = pa.struct([pa.field("b", pa.int64())])


def rows(schema: pa.Schema, batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(batches, schema).to_pylist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, {"b": 1}, None, {"b": None}, {"b": 5}], INNER).slice(1),
        pa.array([{"a": None}, {"a": {"b": 7}}], pa.struct([("a", INNER)])),
        pa.array([{"a": [None]}, {"a": [{"b": 41}, {"b": 34}]}], pa.struct([("a", pa.list_(INNER))])),
        pa.array([[("k", {"b": 1})], None, [("k", None), ("l", {"b": 2})]], pa.map_(pa.string(), INNER)).slice(1),
        pa.array([None, {"b": 2}, {"b": 3}], pa.struct([pa.field("b", pa.int64(), nullable=False)])),
        pa.array([[{"b": 1}, None], [None, {"b": 4}]], pa.list_(INNER, 2)).slice(1),
        pa.array([None, None], INNER),
    ],
)
def test_nested_nulls_reach_the_file(column: Any) -> None:
    """pyarrow's own reader is the judge: its writer alone is wrong about these."""
    batch = pa.record_batch({"x": column})
    stored = pa_orc.ORCFile(io.BytesIO(write(ORC, [batch], batch.schema))).read()
    assert stored.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("name", ["orc", "parquet", "arrow", "avro", "json"])
@pytest.mark.parametrize("seed", range(25))
def test_any_nesting_round_trips(name: str, seed: int) -> None:
    batches, schema = random_batches(random.Random(seed), exchange=name in ("avro", "json"))
    data = write(get_format(name), batches, schema)
    assert read(get_format(name), data, plain_schema(schema)).to_pylist() == rows(schema, batches)
