"""A table's job without Spark: what it asks of the table before it starts and in its decision (C12)."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from holdfast.commit import SaveMode, get_committer
from holdfast.commit.layout import iter_visible
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.options.write import parse_write_options
from holdfast.spark.table_job import TableJob
from holdfast.spark.types import arrow_schema

UTC = datetime.timezone.utc
INSTANT = datetime.datetime(2026, 1, 1, 8, tzinfo=UTC)
AB = StructType([StructField("a", StringType()), StructField("b", StringType())])
BA = StructType([StructField("B", StringType()), StructField("A", StringType())])
TIMES = StructType([StructField("id", LongType()), StructField("t", TimestampType())])


def prepared(path: Path, schema: StructType, rows: list[dict[str, Any]], **options: str) -> Callable[[], None]:
    """A job that has written its rows; calling what comes back decides it."""
    table = TableJob.of(parse_write_options({"path": str(path), **options}, overwrite=False), schema)
    committer = get_committer(table.options.committer)
    with table.opened() as ctx:
        table = table.fitted(ctx, read_log(ctx))
        job = committer.setup_job(ctx, SaveMode.APPEND, table.details)
        assert job is not None
        with committer.setup_task(ctx, job, 0) as attempt:
            table.write_rows(iter([pa.RecordBatch.from_pylist(rows, arrow_schema(schema))]), attempt)
            message = attempt.commit()

    def decide() -> None:
        with table.opened() as ctx:
            try:
                committer.commit_job(ctx, job, [message], 1)
            except ConflictError:
                committer.abort_job(ctx, job)
                raise

    return decide


def write(path: Path, schema: StructType, rows: list[dict[str, Any]], **options: str) -> None:
    prepared(path, schema, rows, **options)()


def contents(path: Path) -> dict[str, bytes]:
    """By the files' directories; several files of one directory one behind the other."""
    found: dict[str, bytes] = {}
    with TableJob.of(parse_write_options({"path": str(path)}, overwrite=False), AB).opened() as ctx:
        for name, _ in sorted(iter_visible(ctx.store, ctx.prefix)):
            directory = name.rpartition("/")[0]
            found[directory] = found.get(directory, b"") + ctx.store.get(ctx.key(name))
    return found


def test_the_decision_asks_the_table_again(tmp_path: Path) -> None:
    """Of two first jobs with two layouts one is committed, whichever is decided first."""
    late = prepared(tmp_path, AB, [{"a": "1", "b": "x"}], fileFormat="csv", partitionBy="b")
    write(tmp_path, AB, [{"a": "2", "b": "x"}], fileFormat="csv")
    with pytest.raises(ConflictError, match="another job changed the table in the meantime"):
        late()
    assert contents(tmp_path) == {"": b"2,x\n"}


def test_the_decision_asks_for_files_that_others_have_put_there_meanwhile(tmp_path: Path) -> None:
    late = prepared(tmp_path, AB, [{"a": "1", "b": "x"}], fileFormat="csv")
    (tmp_path / "part-0.json").write_bytes(b'{"a": "2"}\n')
    with pytest.raises(ConflictError, match="in the meantime, nothing is committed"):
        late()


def test_files_by_position_have_their_columns_in_the_tables_order(tmp_path: Path) -> None:
    """A column that the rows lack has its place, too."""
    write(tmp_path, AB, [{"a": "a1", "b": "b1"}], fileFormat="csv")
    write(tmp_path, BA, [{"A": "a1", "B": "b1"}], fileFormat="csv")
    write(tmp_path, StructType(BA.fields[:1]), [{"B": "b1"}], fileFormat="csv")
    assert sorted(contents(tmp_path)[""].splitlines()) == [b",b1", b"a1,b1", b"a1,b1"]


def test_directories_name_instants_in_the_tables_zone(tmp_path: Path) -> None:
    """Whatever zone a later session has."""
    for number, zone in enumerate(("America/Los_Angeles", "Asia/Kathmandu", "UTC")):
        write(tmp_path, TIMES, [{"id": number, "t": INSTANT}], fileFormat="csv", partitionBy="t", timeZone=zone)
    assert list(contents(tmp_path)) == ["t=2026-01-01 00%3A00%3A00"]


def test_without_a_zone_directories_cannot_name_instants(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="give the option timeZone"):
        prepared(tmp_path, TIMES, [{"id": 1, "t": INSTANT}], partitionBy="t")


def test_a_committer_without_a_log_changes_no_table_that_a_log_describes(tmp_path: Path) -> None:
    """It could not tell readers of the new column; rows that fit may come through it."""
    write(tmp_path, AB, [{"a": "1", "b": "x"}], fileFormat="csv")
    wider = StructType([*AB.fields, StructField("c", IntegerType())])
    with pytest.raises(InvalidRequestError, match=r"the destination's log describes a different table.*two_phase"):
        prepared(
            tmp_path, wider, [{"a": "1", "b": "x", "c": 1}], fileFormat="csv", mergeSchema="true", committer="file-v2"
        )
    write(tmp_path, AB, [{"a": "2", "b": "y"}], fileFormat="csv", committer="file-v2")
    assert sorted(contents(tmp_path)[""].splitlines()) == [b"1,x", b"2,y"]
