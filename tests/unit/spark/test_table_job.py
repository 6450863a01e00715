"""What a write makes of a directory of others, before Spark runs a task."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from holdfast.commit import TWO_PHASE, SaveMode, get_committer
from holdfast.commit.layout import iter_visible
from holdfast.commit.registry import COMMITTERS
from holdfast.commit.two_phase.decision_log import WRITE_ID, read_log
from holdfast.commit.writes import TOKEN
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.options.write import parse_write_options
from holdfast.spark.table_job import TableJob
from holdfast.spark.types import drop_foreign_metadata, make_arrow_schema


def test_directories_of_others_keep_their_spelling(tmp_path: Path) -> None:
    """The rows call the partition column by another case: one table has one spelling of its directories."""
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "day=1" / "theirs.parquet")
    rows = StructType([StructField("DAY", StringType()), StructField("ID", LongType())])
    job = TableJob.of(parse_write_options({"path": str(tmp_path), "partitionBy": "DAY"}, overwrite=False), rows)
    with job.open_destination() as ctx:
        fitted = job.fit_to_table(ctx, read_log(ctx))
    assert fitted.written.partition_by == fitted.options.partition_by == ("day",)
    assert [(one["name"], one["type"]) for one in fitted.written.fields] == [("id", "long"), ("day", "string")]
    assert fitted.columns.names == ["id", "day"]


def _fitted(url: Path, schema: StructType, **options: str) -> TableJob:
    job = TableJob.of(parse_write_options({"path": str(url), **options}, overwrite=False), schema)
    with job.open_destination() as ctx:
        return job.fit_to_table(ctx, read_log(ctx))


@pytest.mark.parametrize("committer", sorted(set(COMMITTERS) - {TWO_PHASE.name}))
def test_a_committer_without_a_log_leaves_a_logged_table_as_it_is(tmp_path: Path, committer: str) -> None:
    """No reader would hear of the column, and files of a wider type could not be read as what the log says."""
    narrow = StructType([StructField("id", IntegerType())])
    job = _fitted(tmp_path, narrow)
    with job.open_destination() as ctx:
        record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, job.details)
        assert record is not None
        with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
            job.write_rows(iter([pa.record_batch({"id": pa.array([1], pa.int32())})]), attempt)
            commit = attempt.commit()
        TWO_PHASE.commit_job(ctx, record, [commit], 1)
    options = {"committer": committer, "mergeSchema": "true"}
    assert _fitted(tmp_path, narrow, **options).columns.names == ["id"]
    for changed in (
        StructType([StructField("id", LongType())]),
        StructType([StructField("id", IntegerType()), StructField("new", LongType())]),
    ):
        with pytest.raises(InvalidRequestError, match="this committer writes no log: use two_phase"):
            _fitted(tmp_path, changed, **options)


@pytest.mark.parametrize("name", ["Id", "ID", "id"])
def test_rows_have_the_announced_columns_in_any_case(tmp_path: Path, name: str) -> None:
    job = _fitted(tmp_path, StructType([StructField("Id", LongType())]))
    with job.open_destination() as ctx:
        record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, job.details)
        assert record is not None
        with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
            job.write_rows(iter([pa.record_batch({name: pa.array([1])})]), attempt)
            with pytest.raises(
                InvalidRequestError, match=r"different columns than the table: rename the column column='other'"
            ):
                job.write_rows(iter([pa.record_batch({name: pa.array([2]), "other": pa.array([2])})]), attempt)
            commit = attempt.commit()
        TWO_PHASE.commit_job(ctx, record, [commit], 1)
    (file,) = tmp_path.glob("*.parquet")
    assert pq.read_table(file).to_pylist() == [{"Id": 1}]


ROWS = StructType([StructField("id", LongType())])


def test_the_decision_holds_the_writes_name_and_its_calls_token() -> None:
    """By them a repeated write and a call whose reply was lost find their job."""
    given = {"path": "/data", "writeId": "nightly", "writeToken": "00000000000a"}
    named = TableJob.of(parse_write_options(given, overwrite=False), ROWS)
    assert named.details == {WRITE_ID: "nightly", TOKEN: "00000000000a"}
    assert TableJob.of(parse_write_options({"path": "/data"}, overwrite=False), ROWS).details == {}


def test_what_other_tables_note_at_their_columns_is_left_out_at_any_depth() -> None:
    notes = {"CURRENT_DEFAULT": "1", "__CHAR_VARCHAR_TYPE_STRING": "char(3)", "comment": "ours", "a__b": 1}

    def rows(metadata: dict[str, Any]) -> StructType:
        inner = StructType([StructField("x", LongType(), metadata=metadata)])
        kinds = [inner, ArrayType(inner), MapType(inner, LongType()), MapType(LongType(), ArrayType(inner, False))]
        return StructType(
            [StructField(f"c{index}", kind, index > 1, metadata) for index, kind in enumerate((LongType(), *kinds))]
        )

    assert drop_foreign_metadata(rows(notes)) == rows({"comment": "ours", "a__b": 1})


def test_an_overwrite_may_change_everything(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "theirs.csv").write_text("a,b\n")
    for overwrite in (True, False):
        table = TableJob.of(parse_write_options({"path": str(tmp_path)}, overwrite=overwrite), ROWS)
        with table.open_destination() as ctx:
            if overwrite:
                assert table.fit_to_table(ctx, read_log(ctx)) == table
            else:
                with pytest.raises(InvalidRequestError, match="another file format"):
                    table.fit_to_table(ctx, read_log(ctx))


UTC = datetime.timezone.utc
INSTANT = datetime.datetime(2026, 1, 1, 8, tzinfo=UTC)
AB = StructType([StructField("a", StringType()), StructField("b", StringType())])
BA = StructType([StructField("B", StringType()), StructField("A", StringType())])
TIMES = StructType([StructField("id", LongType()), StructField("t", TimestampType())])


def prepared(path: Path, schema: StructType, rows: list[dict[str, Any]], **options: str) -> Callable[[], None]:
    """A job that has written its rows; calling what comes back decides it."""
    table = TableJob.of(parse_write_options({"path": str(path), **options}, overwrite=False), schema)
    committer = get_committer(table.options.committer)
    with table.open_destination() as ctx:
        table = table.fit_to_table(ctx, read_log(ctx))
        job = committer.setup_job(ctx, SaveMode.APPEND, table.details)
        assert job is not None
        with committer.setup_task(ctx, job, 0) as attempt:
            table.write_rows(iter([pa.RecordBatch.from_pylist(rows, make_arrow_schema(schema))]), attempt)
            message = attempt.commit()

    def decide() -> None:
        with table.open_destination() as ctx:
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
    with TableJob.of(parse_write_options({"path": str(path)}, overwrite=False), AB).open_destination() as ctx:
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
