"""What a directory without a log holds, and what the first rows that are added to it have to keep to (C12)."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from holdfast.commit import CommitContext, open_context
from holdfast.errors import InvalidRequestError
from holdfast.formats import get_format
from holdfast.formats.csv import CsvOptions
from holdfast.table.contract import TableRecord
from holdfast.table.existing import find_existing

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


def found(ctx: CommitContext, file_format: str = "parquet", *by: str, most: int | None = None) -> TableRecord | None:
    given = TableRecord(fields=FIELDS, file_format=file_format, partition_by=by)
    return find_existing(ctx, given, SCHEMA, get_format(file_format).default_options, most=most)


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
    with pytest.raises(InvalidRequestError, match=r"files of two formats.*other='c\.orc'"):
        found(ctx)
    assert found(ctx, most=2) is not None, "a committer without a log looks at a few"


@pytest.mark.parametrize("other", ["z.parquet", "k=1/z=2/p.parquet", "z=1/p.parquet"])
def test_all_files_lie_in_the_same_kind_of_directories(directory: tuple[Path, CommitContext], other: str) -> None:
    path, ctx = directory
    put(path, "k=1/a.parquet", parquet(("id",)))
    put(path, other, parquet(("id",)))
    with pytest.raises(InvalidRequestError, match="not partitioned alike"):
        found(ctx, "parquet", "k")


def test_every_directory_names_a_value_of_its_column(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "k=1/a.parquet", parquet(("id",)))
    put(path, "k=__HIVE_DEFAULT_PARTITION__/a.parquet", parquet(("id",)))
    assert found(ctx, "parquet", "k") is not None
    put(path, "k=many/a.parquet", parquet(("id",)))
    with pytest.raises(InvalidRequestError, match=r"not of the column's type.*column='k'"):
        found(ctx, "parquet", "k")


def test_files_without_an_ending_are_told_by_their_bytes(directory: tuple[Path, CommitContext]) -> None:
    """Hive gives its files no ending, and ORC's first bytes are fewer than Arrow's."""
    path, ctx = directory
    put(path, "000000_0", an_orc())
    table = found(ctx)
    assert table is not None and table.file_format == "orc", "the contract says what is there"
    put(path, "000000_0", b"weights")
    with pytest.raises(InvalidRequestError, match=r"files that are no table.*000000_0"):
        found(ctx)


def test_columns_are_those_of_the_files_then_those_of_the_directories(directory: tuple[Path, CommitContext]) -> None:
    path, ctx = directory
    put(path, "K=1/a.parquet", parquet(("id",)))
    table = found(ctx, "parquet", "k")
    assert table is not None
    assert (table.file_format, table.partition_by) == ("parquet", ("K",))
    assert [(one["name"], one["type"]) for one in table.fields] == [("id", "long"), ("K", "integer")]


# --- CSV: the first line tells, and nothing else does -----------------------------------------------------------------
HEADER, ROWS = b"id,k\n", b"1,2\n3,4\n"
COMPRESSED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("a.csv", bytes),
    ("a.csv.gz", gzip.compress),
    ("a.csv.bz2", bz2.compress),
]


def csv(ctx: CommitContext, **options: Any) -> TableRecord | None:
    given = TableRecord(fields=FIELDS, file_format="csv")
    return find_existing(ctx, given, SCHEMA, replace(CsvOptions(), **options))


@pytest.mark.parametrize(("name", "compress"), COMPRESSED)
@pytest.mark.parametrize("header", [True, False])
def test_a_header_has_to_be_there_if_one_is_written_and_only_then(
    directory: tuple[Path, CommitContext], name: str, compress: Callable[[bytes], bytes], header: bool
) -> None:
    """Whatever codec the rows to add have: each file's name tells its own."""
    path, ctx = directory
    put(path, name, compress(HEADER + ROWS if header else ROWS))
    table = csv(ctx, header=header, codec="zstd")
    assert table is not None and table.fields == FIELDS
    with pytest.raises(
        InvalidRequestError, match="write with header=true" if header else "another header or separator"
    ):
        csv(ctx, header=not header)


@pytest.mark.parametrize("line", [b"ID,K\n", b'"id","k"\n'])
def test_a_header_is_one_in_any_case_and_quoted(directory: tuple[Path, CommitContext], line: bytes) -> None:
    path, ctx = directory
    put(path, "a.csv", line + ROWS)
    assert csv(ctx, header=True) is not None


@pytest.mark.parametrize("first", [b"id;k\n1;2\n", b"id\n1\n", b"id,k,z\n1,2,3\n", b"k,id\n2,1\n", b"id,z\n1,2\n"])
def test_other_columns_or_another_separator_are_refused(directory: tuple[Path, CommitContext], first: bytes) -> None:
    path, ctx = directory
    put(path, "a.csv", first)
    with pytest.raises(InvalidRequestError, match=r"other columns.*given=\['id', 'k'\]"):
        csv(ctx, header=True)
