"""Reading partitioned files: schema, pruning, splits, partition columns, missing columns."""

from __future__ import annotations

import contextlib
import io
import pickle
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdfast.commit import VisibleFile
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.formats import FORMATS, RowFilter, get_format
from holdfast.formats.parquet import ParquetOptions
from holdfast.table.reader import ReadSettings, TableSchema, plan_splits, read_schema, read_split


class Files:
    """Files in memory that note which of them were opened."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.opened: list[str] = []

    def add(self, path: str, batch: pa.RecordBatch, name: str = "parquet", options: Any = None) -> None:
        sink = io.BytesIO()
        file_format = get_format(name)
        writer = file_format.open_writer(sink, batch.schema, options or file_format.default_options)
        writer.write(batch)
        writer.close()
        self.data[path] = sink.getvalue()

    def open(self, file: VisibleFile) -> BinaryIO:
        assert file.size_bytes == len(self.data[file.path])
        self.opened.append(file.path)
        return io.BytesIO(self.data[file.path])

    def listing(self) -> list[VisibleFile]:
        return [VisibleFile(path, len(data)) for path, data in self.data.items()]


PARQUET = ReadSettings(file_format=get_format("parquet"))


def monthly(name: str = "parquet") -> Files:
    files = Files()
    for month in (1, 2, 10):
        batch = pa.record_batch({"id": pa.array([month * 100 + i for i in range(3)]), "v": pa.array(["a", None, "c"])})
        files.add(f"month={month}/city=S%2Fo ü/part-0", batch, name)
    return files


def rows(
    files: Files,
    schema: TableSchema,
    columns: list[str],
    filters: list[RowFilter] | None = None,
    settings: ReadSettings = PARQUET,
) -> list[dict[str, Any]]:
    found = []
    for split in plan_splits(files.listing(), files.open, schema, settings, filters or []):
        for batch in read_split(split, files.open, schema, settings, columns, filters or []):
            assert batch.schema.equals(pa.schema([schema.schema.field(name) for name in columns]))
            found.extend(batch.to_pylist())
    return found


def where(expression: Any, *columns: str) -> RowFilter:
    return RowFilter(expression, frozenset(columns))


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow"])
def test_partition_columns_come_last_with_inferred_types(name: str) -> None:
    files = monthly(name)
    settings = ReadSettings(file_format=get_format(name))
    schema = read_schema(files.listing(), files.open, settings)
    assert schema.schema.names == ["id", "v", "month", "city"]
    assert schema.schema.field("month").type == pa.int32()
    assert schema.partition_by == ("month", "city")
    found = rows(files, schema, ["city", "id", "month"], settings=settings)
    assert found[0] == {"city": "S/o ü", "id": 100, "month": 1}
    assert [row["id"] for row in found] == [100, 101, 102, 200, 201, 202, 1000, 1001, 1002]


def test_directories_that_a_filter_rules_out_are_not_opened() -> None:
    files = monthly()
    schema = read_schema(files.listing(), files.open, PARQUET)
    files.opened.clear()
    found = rows(files, schema, ["id"], [where(pc.field("month") >= 2, "month"), where(pc.field("id") != 201, "id")])
    assert [row["id"] for row in found] == [200, 202, 1000, 1001, 1002]
    assert all(not path.startswith("month=1/") for path in files.opened)


def test_a_filter_over_both_kinds_of_columns() -> None:
    files = monthly()
    schema = read_schema(files.listing(), files.open, PARQUET)
    both = where((pc.field("month") == 1) | (pc.field("v") == "c"), "month", "v")
    assert [row["id"] for row in rows(files, schema, ["id"], [both])] == [100, 101, 102, 202, 1002]
    assert len(rows(files, schema, [], [both])) == 5
    assert len(rows(files, schema, ["month"], [where(pc.field("v").is_null(), "v")])) == 3


def test_partition_columns_alone() -> None:
    files = monthly()
    schema = read_schema(files.listing(), files.open, PARQUET)
    assert [row["month"] for row in rows(files, schema, ["month"])] == [1] * 3 + [2] * 3 + [10] * 3


def test_null_directories_and_a_given_schema() -> None:
    files = Files()
    batch = pa.record_batch({"id": pa.array([1], pa.int32())})
    for value in ("__HIVE_DEFAULT_PARTITION__", "2026-01-02"):
        files.add(f"on={value}/part-0", batch)
    whole = pa.schema([("on", pa.date32()), ("id", pa.int64()), ("new", pa.list_(pa.string()))])
    found = rows(files, TableSchema(whole, ("on",)), ["id", "new", "on"])
    assert [row["on"] and row["on"].isoformat() for row in found] == [None, "2026-01-02"]
    assert [(row["id"], row["new"]) for row in found] == [(1, None), (1, None)]


def test_a_column_in_the_file_yields_to_its_directory() -> None:
    files = Files()
    files.add("k=7/part-0", pa.record_batch({"k": pa.array([1]), "id": pa.array([5])}))
    schema = read_schema(files.listing(), files.open, PARQUET)
    assert schema.schema.names == ["k", "id"], "Spark leaves it in its place"
    assert rows(files, schema, ["id", "k"]) == [{"id": 5, "k": 7}]


def test_a_large_file_is_divided() -> None:
    files = Files()
    scattered = [number * 7_919_797 % 1_000_003 * 1_000_003 for number in range(10_000)]
    batch = pa.record_batch({"id": pa.array(scattered)})
    files.add("part-0", batch, options=ParquetOptions(row_group_rows=1000))
    settings = ReadSettings(file_format=get_format("parquet"), split_bytes=20_000)
    schema = read_schema(files.listing(), files.open, settings)
    splits = plan_splits(files.listing(), files.open, schema, settings)
    assert len(splits) > 1
    assert pickle.loads(pickle.dumps((splits, schema, settings))) == (splits, schema, settings)
    assert [row["id"] for row in rows(files, schema, ["id"], settings=settings)] == scattered


def test_csv_without_a_header_is_pruned_by_position() -> None:
    files = Files()
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array(["x", "y"]), "c": pa.array([0.5, None])})
    files.add("k=1/part-0.csv", batch, "csv")
    settings = ReadSettings(file_format=get_format("csv"))
    schema = TableSchema(pa.schema([*batch.schema, ("k", pa.string())]), ("k",))
    found = rows(files, schema, ["c", "k"], [where(pc.field("b") == "y", "b")], settings)
    assert found == [{"c": None, "k": "1"}]
    with pytest.raises(InvalidRequestError, match="do not tell the types"):
        read_schema(files.listing(), files.open, settings)


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["a=1/part", "part"], "partitioned differently"),
        (["a=1/part", "b=1/part"], "partitioned differently"),
        ([], "the schema is unknown, there is no file"),
    ],
)
def test_layouts_that_cannot_be_read(paths: list[str], sentence: str) -> None:
    files = Files()
    for path in paths:
        files.add(path, pa.record_batch({"id": pa.array([1])}))
    with pytest.raises(InvalidRequestError, match=sentence):
        read_schema(files.listing(), files.open, PARQUET)


def test_two_columns_with_one_name_cannot_be_read() -> None:
    """Spark refuses such files too, with COLUMN_ALREADY_EXISTS."""
    files, sink = Files(), io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"]), sink)
    files.data["part"] = sink.getvalue()
    with pytest.raises(InvalidRequestError, match="several columns have the same name") as caught:
        read_schema(files.listing(), files.open, PARQUET)
    assert caught.value.variables["column"] == "a"


def test_a_value_that_is_not_of_the_given_type() -> None:
    files = Files()
    files.add("k=abc/part", pa.record_batch({"id": pa.array([1])}))
    schema = TableSchema(pa.schema([("id", pa.int64()), ("k", pa.int32())]), ("k",))
    with pytest.raises(InvalidRequestError, match="not fit the column's type"):
        rows(files, schema, ["k"])


@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "arrow", "csv", "json", "text"])
def test_damaged_files(name: str) -> None:
    """Whatever a decoder does with a damaged file, its error is one of Holdfast."""
    schema = TableSchema(
        pa.schema([("v", pa.string())] if name == "text" else [("id", pa.int64()), ("v", pa.string())])
    )
    values = {"id": [1, 2, 300], "v": ["a", 'b"ü', None]} if name != "text" else {"v": ["a", "b", "ü"]}
    settings = ReadSettings(file_format=get_format(name))
    good = Files()
    good.add("part-0", pa.record_batch(values, schema.schema), name)
    data = good.data["part-0"]
    changed = [data[:length] for length in range(len(data))]
    for position in range(len(data)):
        changed += [data[:position] + bytes([data[position] ^ bits]) + data[position + 1 :] for bits in (1, 128, 255)]
    for one in changed:
        files = Files()
        files.data["part-0"] = one
        with contextlib.suppress(HoldfastError, MemoryError):  # a changed length may be a huge one
            for split in plan_splits(files.listing(), files.open, schema, settings, []):
                list(read_split(split, files.open, schema, settings, schema.schema.names))


def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    files = monthly()
    schema = read_schema(files.listing(), files.open, PARQUET)
    with pytest.raises(InvalidRequestError, match="did you mean month"):
        rows(files, schema, ["mnth"])


# --- empty files ------------------------------------------------------------------------------------------------------
ONE = pa.record_batch({"value": pa.array(["a", "b"])})
FORMATS_WITH_FOOTERS = [name for name, one in FORMATS.items() if not one.is_text]


@pytest.mark.parametrize("name", [*FORMATS_WITH_FOOTERS, "text"])
def test_empty_files_are_not_opened(name: str) -> None:
    """As Spark, in every format; the first file may be one, at the root of partitions, too."""
    settings = ReadSettings(file_format=get_format(name))
    files = Files()
    files.data["a-marker"] = b""
    files.data["m=1/a"] = b""
    files.add("m=1/part", ONE, name)
    files.data["m=2/z"] = b""
    schema = read_schema(files.listing(), files.open, settings)
    assert schema.schema.names[-1:] == ["m"] and schema.schema.field("m").type == pa.int32()
    found = rows(files, schema, schema.schema.names, settings=settings)
    assert [list(row.values()) for row in found] == [["a", 1], ["b", 1]]
    assert set(files.opened) == {"m=1/part"}
    assert schema.partition_by == ("m",)


def test_directories_of_empty_files_count() -> None:
    """As in Spark: the directory says what the column's type is, and has to fit the others."""
    files = Files()
    files.add("m=1/part", ONE)
    files.data["m=x/part"] = b""
    assert read_schema(files.listing(), files.open, PARQUET).schema.field("m").type == pa.string()
    files.data["k=2/part"] = b""
    with pytest.raises(InvalidRequestError, match="partitioned differently"):
        read_schema(files.listing(), files.open, PARQUET)


@pytest.mark.parametrize("name", FORMATS_WITH_FOOTERS)
def test_nothing_but_empty_files_tells_no_schema(name: str) -> None:
    settings = ReadSettings(file_format=get_format(name))
    files = Files()
    files.data.update({"a": b"", "b": b""})
    with pytest.raises(InvalidRequestError, match=r"every file is empty.*give a schema"):
        read_schema(files.listing(), files.open, settings)
    assert rows(files, TableSchema(ONE.schema), ["value"], settings=settings) == []
    assert files.opened == []


def test_empty_text_files_have_the_schema_of_all_text_files() -> None:
    settings = ReadSettings(file_format=get_format("text"))
    files = Files()
    files.data["a"] = b""
    assert read_schema(files.listing(), files.open, settings).schema.names == ["value"]
