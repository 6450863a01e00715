"""A stream's batch beside other jobs on its table: what its tasks wrote is what its commit is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import DoubleType, FloatType, LongType, StructField, StructType

from holdfast.commit import TWO_PHASE, SaveMode
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.options.write import parse_stream_options, parse_write_options
from holdfast.spark.table_job import TableJob
from holdfast.spark.writer import HoldfastStreamWriter


class _Task:
    """What Spark tells a task of a micro-batch."""

    def partitionId(self) -> int:  # PySpark's name
        return 0

    def stageId(self) -> int:  # PySpark's name
        return 0

    def taskAttemptId(self) -> int:  # PySpark's name
        return 0

    def getLocalProperty(self, name: str) -> str:  # PySpark's name
        return {"sql.streaming.queryId": "query", "streaming.sql.batchId": "0"}.get(name, "")


def _schema(**columns: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def _append(url: Path, schema: StructType, rows: pa.RecordBatch, **options: str) -> None:
    job = TableJob.of(parse_write_options({"path": str(url), **options}, overwrite=False), schema)
    with job.open_destination() as ctx:
        job = job.fit_to_table(ctx, read_log(ctx))
        record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, job.details)
        assert record is not None
        with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
            job.write_rows(iter([rows]), attempt)
            commit = attempt.commit()
    with job.open_destination() as ctx:
        TWO_PHASE.commit_job(ctx, record, [commit], 1)


def _stream_beside(
    monkeypatch: pytest.MonkeyPatch,
    url: Path,
    options: Mapping[str, str],
    batch: tuple[StructType, pa.RecordBatch],
    other: tuple[StructType, pa.RecordBatch],
) -> None:
    """A batch is written; another job commits; then the batch is to be committed, by a writer made anew."""
    monkeypatch.setattr(TaskContext, "get", staticmethod(_Task))
    parsed = parse_stream_options({"path": str(url), **options}, overwrite=False)
    report = HoldfastStreamWriter(parsed, batch[0]).write(iter([batch[1]]))
    _append(url, *other, **options)
    before = sorted(path.name for path in url.glob("**/part-*"))
    with pytest.raises(ConflictError, match="another job changed the table in the meantime"):
        HoldfastStreamWriter(parsed, batch[0]).commit([report], 0)
    assert sorted(path.name for path in url.glob("**/part-*")) == before


def test_two_jobs_add_a_column_of_csv_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without names tell columns by position: `c` of the batch would be read as `b` of the other job."""
    first, options = _schema(a=LongType()), {"fileFormat": "csv", "mergeSchema": "true"}
    _append(tmp_path / "t", first, pa.record_batch({"a": [0]}), **options)
    _stream_beside(
        monkeypatch,
        tmp_path / "t",
        options,
        (_schema(a=LongType(), c=LongType()), pa.record_batch({"a": [1], "c": [30]})),
        (_schema(a=LongType(), b=LongType()), pa.record_batch({"a": [2], "b": [20]})),
    )


def test_the_first_batch_meets_a_table_of_a_wider_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of a float is another number as a double."""
    _stream_beside(
        monkeypatch,
        tmp_path / "t",
        {"fileFormat": "json"},
        (_schema(x=FloatType()), pa.record_batch({"x": pa.array([0.1], pa.float32())})),
        (_schema(x=DoubleType()), pa.record_batch({"x": [0.1]})),
    )


def test_reports_of_another_batch_or_too_few_are_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1, C8: the reports are of batch 0, and one from each task counts."""
    monkeypatch.setattr(TaskContext, "get", staticmethod(_Task))
    parsed, schema = parse_stream_options({"path": str(tmp_path / "t")}, overwrite=False), _schema(a=LongType())
    report = HoldfastStreamWriter(parsed, schema).write(iter([pa.record_batch({"a": [1]})]))
    for messages, batch, reason in (
        ([report], 1, "belong to another batch"),
        ([report, None], 0, "each task must report exactly once"),
        ([report, report], 0, "each task must report exactly once"),
    ):
        with pytest.raises(InvalidRequestError, match=reason):
            HoldfastStreamWriter(parsed, schema).commit(messages, batch)
        assert list((tmp_path / "t").glob("part-*")) == []
    HoldfastStreamWriter(parsed, schema).commit([report], 0)
    assert len(list((tmp_path / "t").glob("part-*"))) == 1


class _SecondTask(_Task):
    def partitionId(self) -> int:  # PySpark's name
        return 1


def test_reports_of_two_jobs_are_refused_and_both_are_aborted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of two plans, for example of a repeated batch: neither job counts, and neither stays."""
    parsed, schema = parse_stream_options({"path": str(tmp_path / "t")}, overwrite=False), _schema(a=LongType())
    reports = []
    for task in (_Task, _SecondTask):
        monkeypatch.setattr(TaskContext, "get", staticmethod(task))
        reports.append(HoldfastStreamWriter(parsed, schema).write(iter([pa.record_batch({"a": [1]})])))
    assert len(list(tmp_path.glob("t/_holdfast/jobs/*/job.json"))) == 2
    with pytest.raises(InvalidRequestError, match="belong to another batch"):
        HoldfastStreamWriter(parsed, schema).commit(reports, 0)
    HoldfastStreamWriter(parsed, schema).abort(reports, 0)
    assert list(tmp_path.glob("t/_holdfast/jobs/*/job.json")) == []
