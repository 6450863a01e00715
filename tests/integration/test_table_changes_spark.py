"""Run sequences of `tests/property/test_table_changes.py` through `holdfast.write`, both readers and stock Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

pytest.importorskip("pyspark.sql")

import holdfast
from holdfast.errors import InvalidRequestError
from tests.integration.spark_session import new_session
from tests.property.table_jobs import jobs
from tests.property.table_model import Job, RefusedError, Table, after, ddl, json_type, plain, shown

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's imports warn about pandas

_STOCK = ("parquet", "orc", "csv", "json")  # which stock Spark reads
_SOME = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
@settings(max_examples=5, **_SOME)
@given(jobs(most=4))
def test_readers_agree_on_what_jobs_made(sequence: list[Job]) -> None:
    _check(sequence)


@pytest.mark.slow
@settings(max_examples=150, **_SOME)
@given(jobs(most=8))
def test_readers_agree_on_many_tables(sequence: list[Job]) -> None:
    _check(sequence)


def _check(sequence: list[Job]) -> None:
    spark = new_session()
    table: Table | None = None
    with tempfile.TemporaryDirectory() as place:
        url = str(Path(place) / "table")
        for number, job in enumerate(sequence):
            try:
                wanted = after(table, job)
            except RefusedError as reason:
                note(f"{number}: {job} -> refused: {reason}")
                with pytest.raises(InvalidRequestError):
                    _write(spark, job, url)
            else:
                note(f"{number}: {job}")
                result = _write(spark, job, url)
                assert (result.rows, result.finished) == (len(job.rows), True)
                table = wanted
        if table is not None:
            _compare(spark, table, url)


def _write(spark: Any, job: Job, url: str) -> Any:
    rows = [tuple(row[name] for name, _ in job.fields) for row in job.rows]
    frame = spark.createDataFrame(rows, ddl(job.fields))
    return holdfast.write(
        frame,
        url,
        mode=job.mode,
        partition_by=job.partition_by,
        file_format=job.file_format,
        merge_schema=job.merge,
        **dict(job.options),
    )


def _compare(spark: Any, table: Table, url: str) -> None:
    wanted = sorted(map(shown, table.rows))
    types = [(name, json_type(kind)) for name, kind in table.fields]
    for reader in ("python", "native") if table.file_format in ("parquet", "orc") else ("python",):
        frame = holdfast.read(spark, url, reader=reader)
        assert [(one["name"], one["type"]) for one in frame.schema.jsonValue()["fields"]] == types, reader
        assert _rows(frame, table) == wanted, reader
    if table.file_format in _STOCK and table.rows:
        stock = spark.read.schema(ddl(table.fields)).format(table.file_format).options(**dict(table.options))
        assert _rows(stock.load(url), table) == wanted, "stock Spark"


def _rows(frame: Any, table: Table) -> list[str]:
    return sorted(shown(plain(row, ("struct", table.fields))) for row in frame.toArrow().to_pylist())
