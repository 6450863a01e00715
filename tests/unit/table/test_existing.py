"""What a directory without a log holds, and what the first rows that are added to it have to keep to (C12)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from holdfast.commit import CommitContext, open_context
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, get_format
from holdfast.formats.schema_json import arrow_schema_to_json
from holdfast.stores.base import ObjectInfo
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.existing import foreign_fingerprint, infer_existing_table

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32())])
FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "k", "type": "integer", "nullable": True, "metadata": {}},
]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[tuple[Path, CommitContext]]:
    ctx = open_context(str(tmp_path))
    yield tmp_path, ctx
    ctx.close()


def put(directory: Path, path: str, data: bytes) -> None:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def parquet(names: tuple[str, ...] = ("id", "k")) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: pa.array([1], SCHEMA.field(name).type) for name in names}), sink)
    return sink.getvalue()


def an_orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"id": pa.array([1], pa.int64())}), sink)
    return sink.getvalue()


def found(ctx: CommitContext, file_format: str = "parquet", *by: str, limit: int | None = None) -> TableRecord | None:
    given = TableRecord(fields=FIELDS, file_format=file_format, partition_by=by)
    return infer_existing_table(ctx, given, SCHEMA, get_format(file_format).default_options, limit=limit)


def test_files_that_all_readers_read_alike_are_remembered(directory: tuple[Path, CommitContext]) -> None:
    """All of them, or the next reader could not tell them from those that come later."""
    path, ctx = directory
    put(path, "a", a_file("parquet", id=pa.array([1])))
    put(path, "b", a_file("parquet", id=pa.array([2], pa.int32()), k=pa.array([2])))
    table = found(ctx)
    assert table is not None and table.adopted == foreign_fingerprint(iter_visible(ctx.store, ctx.prefix))
    assert decode_table(table.encode()) == table
    limited = found(ctx, limit=1)
    assert limited is not None and limited.adopted == ""
    pq.write_table(pa.table({"id": [3], "t": pa.array([[3000]], pa.list_(pa.timestamp("ns")))}), path / "c")
    table = found(ctx)
    assert table is not None and table.adopted == "" and "adopted" not in table.encode()


def test_nothing_is_no_table(directory: tuple[Path, CommitContext]) -> None:
    """Neither what readers skip nor what is empty says anything about a table."""
    path, ctx = directory
    assert found(ctx) is None
    put(path, "_SUCCESS", b"")
    put(path, "_notes.txt", b"notes")
    put(path, "part-0.csv", b"")
    assert found(ctx) is None


def test_every_file_is_looked_at(directory: tuple[Path, CommitContext]) -> None:
    """One file of another kind behind a thousand good ones makes the table unreadable."""
    path, ctx = directory
    put(path, "a.parquet", parquet())
    put(path, "b.parquet", parquet())
    put(path, "c.orc", an_orc())
    with pytest.raises(InvalidRequestError, match=r"files of different formats.*other='c\.orc'"):
        found(ctx)
    assert found(ctx, limit=2) is not None, "a committer without a log looks at a few"


@pytest.mark.parametrize("other", ["z.parquet", "k=1/z=2/p.parquet", "z=1/p.parquet"])
def test_all_files_lie_in_the_same_kind_of_directories(directory: tuple[Path, CommitContext], other: str) -> None:
    path, ctx = directory
    put(path, "k=1/a.parquet", parquet(("id",)))
    put(path, other, parquet(("id",)))
    with pytest.raises(InvalidRequestError, match="different partition columns"):
        found(ctx, "parquet", "k")


def test_every_directory_names_a_value_of_its_column(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "k=1/a.parquet", parquet(("id",)))
    put(path, "k=__HIVE_DEFAULT_PARTITION__/a.parquet", parquet(("id",)))
    assert found(ctx, "parquet", "k") is not None
    put(path, "k=many/a.parquet", parquet(("id",)))
    with pytest.raises(InvalidRequestError, match=r"not fit the column's type.*column='k'"):
        found(ctx, "parquet", "k")


def test_files_without_an_ending_are_told_by_their_bytes(directory: tuple[Path, CommitContext]) -> None:
    """Hive gives its files no ending, and ORC's first bytes are fewer than Arrow's."""
    path, ctx = directory
    put(path, "000000_0", an_orc())
    table = found(ctx)
    assert table is not None and table.file_format == "orc", "the contract says what is there"
    put(path, "000000_0", b"weights")
    with pytest.raises(InvalidRequestError, match=r"files that are not a table.*000000_0"):
        found(ctx)


def test_columns_are_those_of_the_files_then_those_of_the_directories(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "K=1/a.parquet", parquet(("id",)))
    table = found(ctx, "parquet", "k")
    assert table is not None
    assert (table.file_format, table.partition_by) == ("parquet", ("K",))
    assert [(one["name"], one["type"]) for one in table.fields] == [("id", "long"), ("K", "integer")]


def test_a_column_in_a_file_yields_to_its_directory(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "k=1/a.parquet", a_file("parquet", K=pa.array(["x"]), id=pa.array([1])))
    assert types(found(ctx, "parquet", "k")) == [("id", "long"), ("k", "integer")]


# --- the columns of all files -----------------------------------------------------------------------------------------
def a_file(file_format: str, **columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    batch = pa.record_batch(columns)
    writer = get_format(file_format).open_writer(sink, batch.schema, get_format(file_format).default_options)
    writer.write(batch)
    writer.close()
    return sink.getvalue()


def types(table: TableRecord | None) -> list[tuple[str, Any]]:
    assert table is not None
    return [(str(one["name"]), one["type"]) for one in table.fields]


def spark_word(kind: pa.DataType) -> Any:
    return json.loads(arrow_schema_to_json(pa.schema([("c", kind)])))["fields"][0]["type"]


SELF_DESCRIBING = [name for name, one in FORMATS.items() if not one.is_text]


@pytest.mark.parametrize("file_format", SELF_DESCRIBING)
def test_a_table_has_the_columns_of_all_files(directory: tuple[Path, CommitContext], file_format: str) -> None:
    """Those of the first file in its order, then further ones as they come, each of the type that holds all values."""
    path, ctx = directory
    put(path, "a", a_file(file_format, Id=pa.array([1], pa.int32()), k=pa.array([1], pa.int32())))
    put(path, "b", b"")
    put(path, "c", a_file(file_format, z=pa.array(["x"]), ID=pa.array([1], pa.int64()), b=pa.array([5])))
    put(path, "d", a_file(file_format, id=pa.array([1], pa.int32()), b=pa.array([5], pa.int32())))
    wanted = [("Id", "long"), ("k", "integer"), ("z", "string"), ("b", "long")]
    assert types(found(ctx, file_format)) == wanted
    assert types(found(ctx, file_format, limit=1)) == [("Id", "integer"), ("k", "integer")]


@pytest.mark.parametrize("file_format", SELF_DESCRIBING)
def test_files_that_do_not_agree_are_named(directory: tuple[Path, CommitContext], file_format: str) -> None:
    path, ctx = directory
    put(path, "a", a_file(file_format, id=pa.array([1])))
    put(path, "b", a_file(file_format, id=pa.array([1]), s=pa.array([{"f": 1}])))
    put(path, "c", a_file(file_format, id=pa.array([1]), S=pa.array([{"f": "x"}])))
    with pytest.raises(
        InvalidRequestError, match=r"different types of a column.*'s\.f'.*first='b'.*bigint.*other='c'.*string"
    ):
        found(ctx, file_format)


def test_the_file_that_widened_a_column_is_named(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "a", a_file("parquet", id=pa.array([1], pa.int32())))
    put(path, "b", a_file("parquet", id=pa.array([1], pa.int64())))
    put(path, "c", a_file("parquet", id=pa.array(["x"])))
    with pytest.raises(InvalidRequestError, match=r"first='b' first_type='bigint' other='c' other_type='string'"):
        found(ctx)


def test_names_that_differ_in_case_only_are_refused(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    for columns in ({"id": pa.array([1]), "ID": pa.array([2])}, {"id": pa.array([[{"s": {"A": 1, "a": 2}}]])}):
        put(path, "a.parquet", a_file("parquet", **columns))
        with pytest.raises(InvalidRequestError, match=r"differ only by case.*file='a\.parquet'"):
            found(ctx)


@pytest.mark.parametrize(
    ("file_format", "kind"),
    [
        ("parquet", pa.float16()),
        ("arrow", pa.uint8()),
        ("arrow", pa.uint64()),
        ("arrow", pa.date64()),
        ("arrow", pa.list_view(pa.int32())),
        ("arrow", pa.decimal256(50, 2)),
        ("arrow", pa.decimal128(5, -2)),
        ("arrow", pa.month_day_nano_interval()),
        ("arrow", pa.run_end_encoded(pa.int32(), pa.int64())),
        ("arrow", pa.struct([("u", pa.uint32())])),
        ("arrow", pa.map_(pa.string(), pa.uint32())),
    ],
)
def test_types_that_spark_does_not_have_are_refused(
    directory: tuple[Path, CommitContext], file_format: str, kind: pa.DataType
) -> None:
    """Recorder as anything else, the column could be read no more."""
    path, ctx = directory
    sink = io.BytesIO()
    table = pa.table({"id": pa.array([1]), "a": pa.array([None], kind)})
    if file_format == "parquet":
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    put(path, f"x.{file_format}", sink.getvalue())
    with pytest.raises(
        InvalidRequestError, match=rf"Spark has no type for a column.*column='a'.*file='x\.{file_format}'"
    ):
        found(ctx, file_format)


@pytest.mark.parametrize(
    ("kind", "kept", "rounded"),
    [(pa.decimal128(10, 2), ["5", "1.25"], ["1.005", "123456789.5"]), (pa.int32(), ["5", "05"], ["5.0", "9999999999"])],
)
def test_numbers_of_directories_stay_what_they_are(
    directory: tuple[Path, CommitContext], kind: pa.DataType, kept: list[str], rounded: list[str]
) -> None:
    path, ctx = directory
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    fields = json.loads(arrow_schema_to_json(schema))["fields"]
    given = TableRecord(fields=fields, file_format="parquet", partition_by=("c",))

    def look() -> TableRecord | None:
        return infer_existing_table(ctx, given, schema, get_format("parquet").default_options)

    for text in kept:
        put(path, f"c={text}/a.parquet", parquet(("id",)))
    assert look() is not None
    for text in rounded:
        put(path, f"c={text}/a.parquet", parquet(("id",)))
        with pytest.raises(InvalidRequestError, match="not fit the column's type"):
            look()
        (path / f"c={text}/a.parquet").unlink()


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize(("name", "data"), [("csv", b"1,2\n"), ("json", b'{"id": 1}\n')])
def test_text_that_does_not_tell_its_types_is_not_a_table(
    directory: tuple[Path, CommitContext], name: str, data: bytes, limit: int | None
) -> None:
    path, ctx = directory
    put(path, f"a.{name}", data)
    with pytest.raises(InvalidRequestError, match=rf"holds {name} files that no log describes.*file='a\.{name}'"):
        found(ctx, name, limit=limit)


# --- the fingerprint --------------------------------------------------------------------------------------------------
OURS = "k=1/part-00003-20261121101500123-0123456789ab-cdef01234567-00000.snappy.parquet"


def info(size_bytes: int = 1, modified_at_s: float = 1.5) -> ObjectInfo:
    return ObjectInfo("t/x", size_bytes, modified_at_s=modified_at_s)


def test_the_order_does_not_count() -> None:
    files = [("a", info()), ("b", info(2)), ("c/d", info(3))]
    assert foreign_fingerprint(files) == foreign_fingerprint(reversed(files)) != foreign_fingerprint(files[:2])


@pytest.mark.parametrize("other", [("b", info()), ("a", info(2)), ("a", info(modified_at_s=2.0))])
def test_another_file_is_another_set(other: tuple[str, ObjectInfo]) -> None:
    assert foreign_fingerprint([("a", info())]) != foreign_fingerprint([other])
    assert foreign_fingerprint([("a", info())]) != foreign_fingerprint([("a", info()), other])


def test_empty_files_and_those_of_holdfast_do_not_count() -> None:
    assert foreign_fingerprint([("a", info())]) == foreign_fingerprint([("a", info()), ("b", info(0)), (OURS, info())])
