"""Run any sequence of jobs: the table equals a list of rows, or the job is refused where the rules say so (C12).

The jobs go through the data source as Spark's workers run it (`tests.matrix.in_process`). The same sequences through
Spark itself are in `tests/integration/test_table_changes_spark.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import _parse_datatype_json_string

from holdfast.errors import InvalidRequestError
from holdfast.spark.types import make_arrow_schema
from tests.matrix.in_process import read_table, write_batches
from tests.property.table_jobs import jobs
from tests.property.table_model import Job, RefusedError, Table, after, json_type, plain, shown

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's imports warn about pandas


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(jobs())
def test_a_table_is_what_its_jobs_made_of_it(sequence: list[Job]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check(sequence, str(Path(place) / "table"))


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(jobs(most=12))
def test_long_sequences(sequence: list[Job]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check(sequence, str(Path(place) / "table"))


def check(sequence: list[Job], url: str) -> None:
    """Run the jobs one after the other, and compare the table with the model after each."""
    table: Table | None = None
    for number, job in enumerate(sequence):
        try:
            wanted = after(table, job)
        except RefusedError as reason:
            note(f"{number}: {job} -> refused: {reason}")
            with pytest.raises(InvalidRequestError):
                write(job, url)
        else:
            note(f"{number}: {job}")
            write(job, url)
            table = wanted
        if table is not None:
            found, rows = read(url)
            types = [(name, json_type(kind)) for name, kind in table.fields]
            assert found == types, number
            whole = ("struct", table.fields)
            assert sorted(shown(plain(row, whole)) for row in rows) == sorted(map(shown, table.rows)), number


def write(job: Job, url: str) -> None:
    schema = _parse_datatype_json_string(
        json.dumps({"type": "struct", "fields": json_type(("struct", job.fields))["fields"]})
    )
    arrow = make_arrow_schema(schema)
    rows = [{name: _arrow_value(value) for name, value in row.items()} for row in job.rows]
    step = -(-len(rows) // job.tasks) or 1
    tasks = [rows[number * step : (number + 1) * step] for number in range(job.tasks)]
    options = {
        "path": url,
        "fileFormat": job.file_format,
        "partitionBy": ",".join(job.partition_by),
        "mergeSchema": str(job.merge).lower(),
        **({"partitionOverwriteMode": "dynamic"} if job.mode == "overwrite-partitions" else {}),
        **dict(job.options),
    }
    batches = [[pa.RecordBatch.from_pylist(some, schema=arrow)] if some else [] for some in tasks]
    write_batches(batches, schema, {key: one for key, one in options.items() if one}, overwrite=job.mode != "append")


def _arrow_value(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) and all(key.startswith("k") for key in value) else value


def read(url: str) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    """Return names and types in order, and the rows as Arrow gives them."""
    schema, table = read_table({"path": url})
    fields = [(field["name"], field["type"]) for field in json.loads(schema.json())["fields"]]
    return fields, [] if table is None else table.to_pylist()
