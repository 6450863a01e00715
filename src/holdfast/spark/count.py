"""How many rows there are: from the files' footers, without a row on its way to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from holdfast.options.parsing import ReadOptions, parse_read_options
from holdfast.options.said import rooted, say, say_conditions, say_options, say_url
from holdfast.runtime import ThreadRunner
from holdfast.spark.native import native_frame
from holdfast.spark.reader import HoldfastReader, infer_schema
from holdfast.spark.session import is_classic, require_reachable, require_session

__all__ = ["count"]


def count(
    spark: SparkSession,
    url: str,
    *,
    filters: Sequence[tuple[str, str, object]] | None = None,
    **options: object,
) -> int:
    """How many rows `holdfast.read` with the same arguments has; whole jobs only, as of one instant.

    Spark does not tell a Python source that only rows are counted, and has every column of every row handed over. This
    asks the footers of Parquet files instead, and reads nothing but the columns of `filters` otherwise. Where Spark's
    own reader can open the destination, that one counts.

    Args:
        spark: the session: its time zone, and its own reader.
        url: ``s3://bucket/key`` or a directory.
        filters: as of `holdfast.read`.
        options: those of docs/reference/options.md, except ``columns``.

    Raises:
        NotFoundError: nothing is there.
        InvalidRequestError: fix the call.
    """
    require_session(spark)
    said = [*say_url(url), *say_conditions("filters", filters, "filters"), *say_options(options)]
    if not any(one.name == "timezone" for one in said):
        said += say("timeZone", spark.conf.get("spark.sql.session.timeZone"), "timeZone")
    if is_classic(spark):
        said = rooted(said)
    parsed = parse_read_options(said)
    require_reachable(spark, parsed.store.url)
    if parsed.reader != "python":
        frame = native_frame(spark, parsed)
        if frame is not None:
            return frame.count()
    return _count_here(parsed)


def _count_here(options: ReadOptions) -> int:
    """In this process, with as many threads as the read may have; a thread holds a batch of the filters' columns."""
    whole = infer_schema(replace(options, columns=None))
    names = {condition.column for condition in options.conditions}
    wanted = StructType([field for field in whole.fields if field.name in names])
    reader = HoldfastReader(replace(options, columns=tuple(wanted.names)), wanted)

    def rows(partition: InputPartition) -> int:
        return sum(batch.num_rows for batch in reader.read(partition))

    return sum(ThreadRunner(options.store.threads).map(rows, reader.partitions()))
