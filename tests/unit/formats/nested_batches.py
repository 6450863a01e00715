"""Generate record batches of random nested types with random nulls, some of them sliced."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

__all__ = ["random_batches"]

_UTC = datetime.timezone.utc
_LEAVES: list[tuple[pa.DataType, Any]] = [
    (pa.int8(), lambda n: n),
    (pa.int64(), lambda n: n),
    (pa.float64(), lambda n: n / 4),
    (pa.bool_(), lambda n: n % 2 == 0),
    (pa.string(), str),
    (pa.binary(), lambda n: str(n).encode()),
    (pa.decimal128(10, 2), lambda n: Decimal(n) / 4),
    (pa.decimal128(38, 3), lambda n: Decimal(n) / 4),
    (pa.date32(), lambda n: datetime.date(2020, 1, 1) + datetime.timedelta(n)),
    (pa.timestamp("us", "UTC"), lambda n: datetime.datetime(2020, 1, 1, tzinfo=_UTC) + datetime.timedelta(n, 0, n)),
    (pa.timestamp("us"), lambda n: datetime.datetime(2020, 1, 1) + datetime.timedelta(n, 0, n)),
]
_VALUES = dict(_LEAVES)


def random_batches(rng: random.Random, exchange: bool = False) -> tuple[list[pa.RecordBatch], pa.Schema]:
    """Return up to three batches and their schema.

    Args:
        seed: the seed of the random numbers.
        exchange: whether to use only map keys that JSON and Avro support.
    """
    schema = pa.schema([_field(rng, f"c{i}", rng.randint(0, 3), exchange) for i in range(rng.randint(1, 3))])
    return [_batch(rng, schema) for _ in range(rng.randint(0, 3))], schema


def _field(rng: random.Random, name: str, depth: int, exchange: bool) -> pa.Field:
    return pa.field(name, _type(rng, depth, exchange), nullable=rng.random() < 0.75)


def _type(rng: random.Random, depth: int, exchange: bool) -> pa.DataType:
    chance = rng.random()
    if depth == 0 or chance < 0.3:
        return rng.choice(_LEAVES)[0]
    if chance < 0.65:
        return pa.struct([_field(rng, f"f{i}", depth - 1, exchange) for i in range(rng.randint(1, 3))])
    if chance < 0.8:
        return pa.list_(_field(rng, "element", depth - 1, exchange))
    if chance < 0.85:
        return pa.list_(_field(rng, "element", depth - 1, exchange), 2)
    key = pa.string() if exchange or rng.random() < 0.5 else pa.int32()
    return pa.map_(key, _field(rng, "value", depth - 1, exchange))


def _batch(rng: random.Random, schema: pa.Schema) -> pa.RecordBatch:
    nulls, rows = rng.choice([0, 0.1, 0.5, 1]), rng.choice([0, 1, 2, 3, 9, 30])
    columns = [pa.array([_value(rng, field, nulls) for _ in range(rows)], field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if rng.random() < 0.7:
        start = rng.randint(0, rows)
        batch = batch.slice(start, rng.randint(0, rows - start))
    return batch


def _value(rng: random.Random, field: pa.Field, nulls: float) -> Any:
    kind = field.type
    if field.nullable and rng.random() < nulls:
        return None
    if pat.is_struct(kind):
        return {one.name: _value(rng, one, nulls) for one in kind}
    if pat.is_map(kind):
        keys = [str(n) if kind.key_type == pa.string() else n for n in range(rng.randint(0, 2))]
        return [(key, _value(rng, kind.item_field, nulls)) for key in keys]
    if pat.is_nested(kind):
        length = 2 if pat.is_fixed_size_list(kind) else rng.randint(0, 2)
        return [_value(rng, kind.value_field, nulls) for _ in range(length)]
    return _VALUES[kind](rng.randint(0, 100))
