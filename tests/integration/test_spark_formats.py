"""Read with stock Spark what the formats wrote: the same DataFrame in any time zone of the session."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.formats import get_format
from holdfast.table.writer import TableWriter, WriteSettings

pytest.importorskip("pyspark.sql")

pytestmark = [
    pytest.mark.spark,
    # PySpark's own imports warn about pandas and deprecated modules; the subject here is the files.
    pytest.mark.filterwarnings("ignore"),
]

UTC = datetime.timezone.utc
ZONE = "America/Los_Angeles"
INSTANT = datetime.datetime(2026, 7, 2, 3, 4, 5, 6, UTC)
EARLY = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)
TEXTS = [
    "a",
    "",
    None,
    'q"q',
    "b\\s",
    "end\\",
    '\\"',
    "\\\\",
    "a,b",
    " pad ",
    "line\nfeed",
    "\r",
    "#c",
    "null",
    "é🎈",
    "\u2028",
]
SCALAR_DDL = (
    "s string, flag boolean, i1 byte, i2 short, i4 int, i8 long, f4 float, f8 double, price decimal(38,18), day date, "
    "instant timestamp, local timestamp_ntz"
)


def write(path: Path, name: str, batch: pa.RecordBatch, options: dict[str, str] | None = None) -> str:
    file_format = get_format(name)
    parsed = file_format.parse_options(options or {}).options
    file_format.check_schema(batch.schema)
    target = path / f"part-0{file_format.extension(parsed)}"
    with target.open("wb") as sink:
        writer = file_format.open_writer(sink, batch.schema, parsed)
        writer.write(batch)
        writer.close()
    return str(target)


def scalars() -> pa.RecordBatch:
    rows = len(TEXTS)

    def cycle(values: list[Any], kind: pa.DataType) -> Any:
        return pa.array([values[i % len(values)] for i in range(rows)], kind)

    return pa.record_batch(
        {
            "s": pa.array(TEXTS, pa.string()),
            "flag": cycle([True, None, False], pa.bool_()),
            "i1": cycle([-128, None, 127], pa.int8()),
            "i2": cycle([-(2**15), None], pa.int16()),
            "i4": cycle([2**31 - 1, None], pa.int32()),
            "i8": cycle([-(2**63), 2**63 - 1, None], pa.int64()),
            "f4": cycle([0.1, -0.0, None, math.inf, math.nan], pa.float32()),
            "f8": cycle([0.1, -0.0, None, -math.inf, math.nan, 1e300, 5e-324, 1e7], pa.float64()),
            "price": cycle(
                [Decimal("12345678901234567890.000000000000000001"), None, Decimal("1E-7")], pa.decimal128(38, 18)
            ),
            "day": cycle([datetime.date(2026, 1, 2), None, datetime.date(1969, 12, 31)], pa.date32()),
            "instant": cycle(
                [INSTANT, None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)], pa.timestamp("us", "UTC")
            ),
            "local": cycle([INSTANT.replace(tzinfo=None), None], pa.timestamp("us")),
        }
    )


def nested() -> pa.RecordBatch:
    point = pa.struct([("x", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("names", pa.list_(pa.string()))])
    return pa.record_batch(
        {
            "id": pa.array([1, 2, 3, 4]),
            "l": pa.array([[1, None, 3], [], None, [4]], pa.list_(pa.int32())),
            "ll": pa.array([[["a"], None, []], None, [], [['"', None]]], pa.list_(pa.list_(pa.string()))),
            "m": pa.array([[("k", 1), ('"\\', None)], [], None, [("z", 3)]], pa.map_(pa.string(), pa.int64())),
            "st": pa.array([{"x": 1, "at": INSTANT, "names": ["n", None]}, {"x": None}, None, {"names": []}], point),
            "ps": pa.array([[{"x": 1}, None], None, [], [{"x": 5, "at": INSTANT}]], pa.list_(point)),
            "bin": pa.array([b"\0\xff", b"", None, b"abc"], pa.binary()),
        }
    )


NESTED_DDL = (
    "id long, l array<int>, ll array<array<string>>, m map<string,long>, "
    "st struct<x:long,at:timestamp,names:array<string>>, "
    "ps array<struct<x:long,at:timestamp,names:array<string>>>, bin binary"
)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return rows as Arrow shows them: instants in UTC, in any time zone of this process."""
    table = frame.toArrow()
    return [{name: comparable(value) for name, value in row.items()} for row in table.to_pylist()]


def comparable(value: Any) -> Any:
    """Make NaN equal to itself, the sign of zero visible, and instants independent of their zone's name."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(one) for one in value]
    return bytes(value) if isinstance(value, (bytes, bytearray)) else value


def expected(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [{name: comparable(value) for name, value in row.items()} for row in batch.to_pylist()]


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4", "none"])
def test_parquet_scalars(spark: Any, tmp_path: Path, codec: str) -> None:
    path = write(tmp_path, "parquet", scalars(), {"compression": codec})
    frame = spark.read.parquet(path)
    assert frame.schema.simpleString() == spark.createDataFrame([], SCALAR_DDL).schema.simpleString()
    assert rows_of(frame) == expected(scalars())


def test_parquet_nested(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(write(tmp_path, "parquet", nested()))
    assert frame.schema.simpleString() == spark.createDataFrame([], NESTED_DDL).schema.simpleString()
    assert rows_of(frame) == expected(nested())


def test_parquet_interval_and_void(spark: Any, tmp_path: Path) -> None:
    """Parquet has neither type: Spark takes them from its own schema in the file's metadata."""
    days = [datetime.timedelta(days=-1, microseconds=3), None]
    batch = pa.record_batch({"i": pa.array([1, 2]), "d": pa.array(days, pa.duration("us")), "v": pa.nulls(2)})
    frame = spark.read.parquet(write(tmp_path, "parquet", batch))
    assert dict(frame.dtypes) == {"i": "bigint", "d": "interval day to second", "v": "void"}
    assert rows_of(frame) == expected(batch)


def test_orc_scalars_and_nested(spark: Any, tmp_path: Path) -> None:
    batch = scalars()
    late = pa.array([None if i % 2 else INSTANT for i in range(batch.num_rows)], pa.timestamp("us", "UTC"))
    batch = batch.set_column(batch.schema.get_field_index("instant"), "instant", late)
    frame = spark.read.orc(write(tmp_path, "orc", batch))
    assert rows_of(frame) == expected(batch)
    assert frame.schema.simpleString() == spark.createDataFrame([], SCALAR_DDL).schema.simpleString()
    path = write(tmp_path, "orc", pa.record_batch({"d": pa.array([datetime.timedelta(days=1)], pa.duration("us"))}))
    assert dict(spark.read.orc(path).dtypes) == {"d": "interval day to second"}
    deep = spark.read.orc(write(tmp_path, "orc", nested()))
    assert rows_of(deep) == expected(nested())


def test_json(spark: Any, tmp_path: Path) -> None:
    assert rows_of(spark.read.schema(SCALAR_DDL).json(write(tmp_path, "json", scalars()))) == expected(scalars())
    assert rows_of(spark.read.schema(NESTED_DDL).json(write(tmp_path, "json", nested()))) == expected(nested())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"header": "true", "sep": "\t", "compression": "gzip"},
        {"quoteAll": "true", "sep": ";", "nullValue": "NULL"},
        {"quote": "'", "escape": "'", "header": "true"},
    ],
)
def test_csv(spark: Any, tmp_path: Path, options: dict[str, str]) -> None:
    path = write(tmp_path, "csv", scalars(), options)
    reading = {key: value for key, value in options.items() if key not in ("compression", "quoteAll")}
    frame = spark.read.schema(SCALAR_DDL).options(multiLine="true", lineSep="\n", **reading).csv(path)
    rows = expected(scalars())
    if options.get("nullValue", "") == "":  # then Spark reads its own "" as null too
        rows = [{**row, "s": row["s"] or None} for row in rows]
    assert rows_of(frame) == rows


def test_text(spark: Any, tmp_path: Path) -> None:
    batch = pa.record_batch({"value": pa.array(["é 🎈", "", "\u2028 x"])})
    assert rows_of(spark.read.text(write(tmp_path, "text", batch))) == expected(batch)


class Directory:
    """A task attempt that writes straight into a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.named = 0

    def file_name(self, extension: str) -> str:
        self.named += 1
        return f"part-{self.named:05d}{extension}"

    def open(self, path: str) -> Any:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("wb")

    def record_rows(self, path: str, rows: int) -> None:
        assert (self.root / path).exists()


def test_partitioned(spark: Any, tmp_path: Path) -> None:
    """facts: A-90, A-92, A-93. Spark reads the values from Holdfast's directories and makes the same ones."""
    texts = ["a b", "50%", "x=1/y", "..", "+", "é🎈", None, "#?:", "%2F", "[{^}]", "'\"\\", "\u2028", "tab\t"]
    rows = len(texts)
    batch = pa.record_batch(
        {
            "id": pa.array(range(rows), pa.int64()),
            "text": pa.array(texts),
            "number": pa.array([None if i == 3 else 10**i for i in range(rows)]),
            "day": pa.array([datetime.date(2026, 1, 1 + i) for i in range(rows)]),
            "price": pa.array([Decimal("0.0000001")] * rows, pa.decimal128(10, 7)),
            "flag": pa.array([i % 2 == 0 for i in range(rows)]),
        }
    )
    by = ("text", "number", "day", "price", "flag")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    settings = WriteSettings(file_format=get_format("parquet"), partition_by=by)
    writer = TableWriter(batch.schema, settings, Directory(ours))
    writer.write(batch)
    assert writer.close().rows == rows
    ddl = "id long, text string, number long, day date, price decimal(10,7), flag boolean"
    frame = spark.read.schema(ddl).parquet(str(ours))
    assert sorted(rows_of(frame), key=lambda row: row["id"]) == expected(batch)
    frame.write.partitionBy(*by).parquet(str(theirs))
    assert directories(theirs) == directories(ours)


def directories(root: Path) -> set[str]:
    return {str(path.parent.relative_to(root)) for path in root.rglob("*.parquet")}
