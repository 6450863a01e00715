"""Conditions on Arrow batches."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.options.values import encode_conditions, parse_conditions
from holdfast.spark.filters import build_row_filters

UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.decimal128(10, 2)),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.int32())),
    ]
)
NAN = float("nan")
INSTANT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BATCH = pa.RecordBatch.from_pylist(
    [
        {"i": 1, "s": "7", "d": INSTANT.date(), "t": INSTANT, "n": Decimal("1.50"), "f": 1.5, "b": True, "l": [1]},
        {"i": 2, "s": "x", "d": datetime.date(2020, 1, 1), "t": INSTANT.replace(hour=4), "n": Decimal(2), "f": NAN},
        {},
    ],
    schema=SCHEMA,
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (("i", "=", 1), [1]),
        (("i", "!=", 1), [2]),
        (("i", "in", [1, 2, 3]), [1, 2]),
        (("i", "<=", 2), [1, 2]),
        (("s", "=", "7"), [1]),
        (("d", ">", datetime.date(2020, 1, 1)), [1]),
        (("t", ">=", INSTANT), [1, 2]),
        (("t", ">", INSTANT), [2]),
        (("n", "=", Decimal("1.5")), [1]),
        (("n", ">", 1), [1, 2]),
        (("f", ">", 1), [1]),
        (("f", "!=", 1.5), [2]),
        (("b", "=", True), [1]),
    ],
)
def test_conditions(condition: tuple[str, str, object], rows: list[int]) -> None:
    (found,) = build_row_filters(parse_conditions(encode_conditions([condition])), SCHEMA)
    assert found.columns == {condition[0]}
    assert BATCH.filter(found.expression).column("i").to_pylist() == rows


@pytest.mark.parametrize(
    "condition",
    [
        ("i", "=", "1"),
        ("i", "=", 1.5),
        ("s", "=", 7),
        ("i", "=", None),
        ("l", "=", 1),
        ("d", "=", "soon"),
        ("i", "in", [None]),
        ("f", "!=", NAN),
        ("f", "in", [1.5, NAN]),
        ("t", "=", "soon"),
    ],
)
def test_values_of_another_type_are_refused(condition: tuple[str, str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="not have its column's type"):
        build_row_filters(parse_conditions(encode_conditions([condition])), SCHEMA)


@pytest.mark.parametrize("value", [datetime.datetime(2026, 1, 2), "2026-01-02 03:04:05", "2026-01-02"])
def test_a_timestamp_without_a_zone_is_refused_with_what_to_write(value: object) -> None:
    with pytest.raises(InvalidRequestError, match=r"needs a time zone: write an offset such as .*Z'.*tzinfo"):
        build_row_filters(parse_conditions(encode_conditions([("t", "=", value)])), SCHEMA)


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("wanted", [0.0, -0.0])
def test_a_zero_is_found_whatever_its_sign(tmp_path: Path, stored: float, wanted: float) -> None:
    """Parquet's statistics and Arrow's lookup tell the two zeros apart; a comparison does not."""
    pq.write_table(pa.table({"z": [stored]}), tmp_path / "one.parquet")
    schema = pa.schema([("z", pa.float64())])
    for condition in (("z", "=", wanted), ("z", ">=", wanted), ("z", "<=", wanted), ("z", "in", [wanted, 5.0])):
        (found,) = build_row_filters(parse_conditions(encode_conditions([condition])), schema)
        assert ds.dataset(tmp_path / "one.parquet").to_table(filter=found.expression).num_rows == 1, condition
