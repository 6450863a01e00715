"""Implement `holdfast.read`: return a DataFrame over one snapshot of a destination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from holdfast.options.keywords import (
    as_spark_options,
    make_option_paths_absolute,
    option_from_columns,
    option_from_conditions,
    option_from_url,
    options_from_values,
)
from holdfast.options.read import ReadOptions, parse_read_options
from holdfast.runtime import ThreadRunner
from holdfast.spark.failures import unwrap_task_errors
from holdfast.spark.native import make_native_dataframe
from holdfast.spark.reader import HoldfastReader, infer_schema
from holdfast.spark.session import (
    is_classic_session,
    refuse_relative_path_over_connect,
    register_during_call,
    require_session,
)
from holdfast.stores.provider import GivenOption


def read(
    spark: SparkSession,
    url: str,
    *,
    columns: str | Sequence[str] | None = None,
    filters: Sequence[tuple[str, str, object]] = (),
    **options: object,
) -> DataFrame:
    """Return a DataFrame over the destination, with the rows of whole jobs only, at a single point in time.

    Guarantee: either all rows of a job are read or none, even while the job commits. Files that Holdfast did not write
    are included, and are read like Spark's own sources read them.

    Args:
        spark: the session.
        url: ``s3://bucket/key`` or a directory.
        columns: read only these columns (or this one), because Spark does not tell Python sources which columns a query
            needs.
        filters: conditions, all of which a row must meet to be read, e.g. ``[("month", "=", 1), ("day", "in", [1,
            2])]``. Partitions and row groups that cannot contain such rows are skipped. Operators: ``= != < <= > >=
            in``.
        options: those of docs/reference/options.md, also in snake case: ``file_format="csv"``, ``header=True``.

    Raises:
        NotFoundError: the destination holds no data.
        InvalidRequestError: fix the call.
    """
    require_session(spark)
    given = [
        *option_from_url(url),
        *option_from_columns("columns", columns, "columns"),
        *option_from_conditions("filters", filters, "filters"),
        *options_from_values(options),
    ]
    parsed, strings = parse_for_session(spark, given)
    if parsed.reader != "python":
        frame = make_native_dataframe(spark, parsed)
        if frame is not None:
            return frame
    with unwrap_task_errors(), register_during_call(spark):
        found = spark.read.format("holdfast").options(**strings).load()
        _ = found.schema  # else a Spark Connect client would ask for the schema later, and show Spark's error
        return found


def parse_for_session(spark: SparkSession, given: list[GivenOption]) -> tuple[ReadOptions, dict[str, str]]:
    """Parse the options of a read by a session, and return them with the strings that Spark passes on.

    In classic Spark, relative paths become absolute.

    Raises:
        InvalidRequestError: an option is invalid, or the path is relative and the session is Spark Connect's.
    """
    if is_classic_session(spark):
        given = make_option_paths_absolute(given)
    parsed = parse_read_options(given)
    refuse_relative_path_over_connect(spark, parsed.store.url)
    return parsed, as_spark_options(given)


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
    given = [
        *option_from_url(url),
        *option_from_conditions("filters", filters, "filters"),
        *options_from_values(options),
    ]
    parsed, _ = parse_for_session(spark, given)
    if parsed.reader != "python":
        frame = make_native_dataframe(spark, parsed)
        if frame is not None:
            return frame.count()
    return _count_rows_in_process(parsed)


def _count_rows_in_process(options: ReadOptions) -> int:
    """Count in this process, in several threads, each of which holds one batch of the columns that the filters use."""
    whole = infer_schema(replace(options, columns=None))
    names = {condition.column for condition in options.conditions}
    wanted = StructType([field for field in whole.fields if field.name in names])
    reader = HoldfastReader(replace(options, columns=tuple(wanted.names)), wanted)

    def count_partition_rows(partition: InputPartition) -> int:
        return sum(batch.num_rows for batch in reader.read(partition))

    return sum(ThreadRunner(options.store.threads).map(count_partition_rows, reader.partitions()))
