"""What a write makes of a directory of others, before Spark runs a task."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from holdfast.commit import TWO_PHASE, SaveMode
from holdfast.commit.registry import COMMITTERS
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.errors import InvalidRequestError
from holdfast.options.write import parse_write_options
from holdfast.spark.table_job import TableJob


def test_directories_of_others_keep_their_spelling(tmp_path: Path) -> None:
    """The rows call the partition column by another case: one table has one spelling of its directories."""
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "day=1" / "theirs.parquet")
    rows = StructType([StructField("DAY", StringType()), StructField("ID", LongType())])
    job = TableJob.of(parse_write_options({"path": str(tmp_path), "partitionBy": "DAY"}, overwrite=False), rows)
    with job.opened() as ctx:
        fitted = job.fitted(ctx, read_log(ctx))
    assert fitted.written.partition_by == fitted.options.partition_by == ("day",)
    assert [(one["name"], one["type"]) for one in fitted.written.fields] == [("id", "long"), ("day", "string")]
    assert fitted.columns.names == ["id", "day"]


def _fitted(url: Path, schema: StructType, **options: str) -> TableJob:
    job = TableJob.of(parse_write_options({"path": str(url), **options}, overwrite=False), schema)
    with job.opened() as ctx:
        return job.fitted(ctx, read_log(ctx))


@pytest.mark.parametrize("committer", sorted(set(COMMITTERS) - {TWO_PHASE.name}))
def test_a_committer_without_a_log_leaves_a_logged_table_as_it_is(tmp_path: Path, committer: str) -> None:
    """No reader would hear of the column, and files of a wider type could not be read as what the log says."""
    narrow = StructType([StructField("id", IntegerType())])
    job = _fitted(tmp_path, narrow)
    with job.opened() as ctx:
        record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, job.details)
        assert record is not None
        with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
            job.write_rows(iter([pa.record_batch({"id": pa.array([1], pa.int32())})]), attempt)
            commit = attempt.commit()
        TWO_PHASE.commit_job(ctx, record, [commit], 1)
    options = {"committer": committer, "mergeSchema": "true", "allowUnsafe": "true"}
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
    with job.opened() as ctx:
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
