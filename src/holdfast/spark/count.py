"""Implement `holdfast.count`: count rows from file footers, without passing rows to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from holdfast.options.keywords import from_conditions, from_options, from_url
from holdfast.options.read import ReadOptions
from holdfast.runtime import ThreadRunner
from holdfast.spark.native import native_frame
from holdfast.spark.read import parse_for_session
from holdfast.spark.reader import HoldfastReader, infer_schema
from holdfast.spark.session import require_session


def count(
    spark: SparkSession,
    url: str,
    *,
    filters: Sequence[tuple[str, str, object]] | None = None,
    **options: object,
) -> int:
    """Count the rows that `holdfast.read` would return: rows of whole jobs only, at a single point in time.

    Spark does not tell a Python source that a query only counts rows, and requests every column of every row. This
    function reads only the footers of Parquet files, or, where footers are not enough, only the columns in `filters`.
    If Spark's own reader can open the destination, that reader counts the rows.

    Args:
        spark: the session, whose time zone applies, and whose own reader counts the rows if it can.
        url: ``s3://bucket/key`` or a directory.
        filters: see `holdfast.read`.
        options: those of docs/reference/options.md, except ``columns``.

    Raises:
        NotFoundError: the destination holds no data.
        InvalidRequestError: fix the call.
    """
    require_session(spark)
    given = [*from_url(url), *from_conditions("filters", filters, "filters"), *from_options(options)]
    parsed, _ = parse_for_session(spark, given)
    if parsed.reader != "python":
        frame = native_frame(spark, parsed)
        if frame is not None:
            return frame.count()
    return _count_here(parsed)


def _count_here(options: ReadOptions) -> int:
    """Count in this process, in several threads, each of which holds one batch of the columns that the filters use."""
    whole = infer_schema(replace(options, columns=None))
    names = {condition.column for condition in options.conditions}
    wanted = StructType([field for field in whole.fields if field.name in names])
    reader = HoldfastReader(replace(options, columns=tuple(wanted.names)), wanted)

    def rows(partition: InputPartition) -> int:
        return sum(batch.num_rows for batch in reader.read(partition))

    return sum(ThreadRunner(options.store.threads).map(rows, reader.partitions()))
