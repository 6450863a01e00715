"""What a write makes of a directory of others, before Spark runs a task."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import LongType, StringType, StructField, StructType

from holdfast.commit.log import read_log
from holdfast.spark.options import parse_write_options
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
