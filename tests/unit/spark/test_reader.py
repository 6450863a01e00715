"""What the Python reader plans to read, before Spark runs a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from holdfast.commit import TWO_PHASE, SaveMode, open_context
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.options.read import parse_read_options
from holdfast.spark.reader import HoldfastReader, infer_schema
from holdfast.table.contract import TableRecord

A_LONG, B_STRING = StructField("a", LongType()), StructField("b", StringType())


def commit_table(url: Path, file_format: str, data: bytes) -> None:
    """A table of the columns a and b, with one file."""
    record = TableRecord(fields=[A_LONG.jsonValue(), B_STRING.jsonValue()], file_format=file_format)
    ctx = replace(open_context(str(url)), contract=lambda *_: record.encode())
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(attempt.file_name(f".{file_format}")).write(data)
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    ctx.close()


def whole(url: Path, *wanted: StructField) -> Any:
    """The schema that a task is given besides the wanted columns, None without one."""
    tasks: Any = HoldfastReader(parse_read_options({"path": str(url)}), StructType(list(wanted))).partitions()
    (task,) = tasks
    return task.whole


def test_columns_of_csv_are_told_by_their_places_in_the_table(tmp_path: Path) -> None:
    """In the names and types that are asked for."""
    commit_table(tmp_path, "csv", b"1,x\n")
    long = StructField("A", LongType())
    assert whole(tmp_path, B_STRING) == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert whole(tmp_path, B_STRING, long) == pa.schema([("A", pa.int64()), ("b", pa.string())])
    with pytest.raises(InvalidRequestError, match="the table has no such column"):
        whole(tmp_path, StructField("c", LongType()))


@pytest.mark.parametrize("file_format", ["json", "avro", "orc"])
def test_files_that_tell_names_are_read_without_all_columns(tmp_path: Path, file_format: str) -> None:
    commit_table(tmp_path, file_format, b"not opened here")
    assert whole(tmp_path, B_STRING) is None


def test_many_small_files_are_read_by_several_tasks(tmp_path: Path) -> None:
    """Opening a file costs as much as reading 4 MiB, and a task reads 32 MiB: eight files each."""
    ctx = open_context(str(tmp_path))
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        for _ in range(20):
            attempt.open(attempt.file_name(".txt")).write(b"1\n")
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    ctx.close()
    options = parse_read_options({"path": str(tmp_path), "fileFormat": "text"})
    tasks = HoldfastReader(options, StructType([B_STRING])).partitions()
    assert [len(task.splits) for task in tasks] == [8, 8, 4]  # type: ignore[attr-defined]  # they are SplitGroups


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("x.csv", InvalidRequestError, "this is a file: name the directory that holds it"),
        ("*.csv", NotFoundError, "patterns are not supported: name a directory"),
        ("none", NotFoundError, "there is nothing to read: check the URL"),
    ],
)
def test_the_error_says_what_is_there(tmp_path: Path, name: str, kind: type[Exception], sentence: str) -> None:
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(kind, match=sentence.replace("*", r"\*")) as caught:
        infer_schema(parse_read_options({"path": str(tmp_path / name)}))
    assert type(caught.value) is kind


def test_a_folder_of_a_destination_is_no_table(tmp_path: Path) -> None:
    ctx = open_context(str(tmp_path / "t"))
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(f"k=1/{attempt.file_name('.txt')}").write(b"1,2\n")
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    ctx.close()
    with pytest.raises(InvalidRequestError, match=r"this is a folder inside a destination.*destination='file://.*/t'"):
        infer_schema(parse_read_options({"path": str(tmp_path / "t/k=1")}))
    assert infer_schema(parse_read_options({"path": str(tmp_path / "t")})).names == ["value", "k"]


def test_a_schema_is_given_to_the_reader() -> None:
    with pytest.raises(InvalidRequestError, match=r"a schema is not an option: pass it to spark.read"):
        parse_read_options({"path": "x", "schema": "id long"})
