"""The pleasant way out: `read`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.options.parsing import parse_read_options
from holdfast.options.said import rooted, say, say_columns, say_conditions, say_options, say_url, settled
from holdfast.spark.failures import typed_again
from holdfast.spark.native import native_frame
from holdfast.spark.session import is_classic, registered, require_reachable, require_session

__all__ = ["read"]


def read(
    spark: SparkSession,
    url: str,
    *,
    columns: str | Sequence[str] | None = None,
    filters: Sequence[tuple[str, str, object]] = (),
    **options: object,
) -> DataFrame:
    """A DataFrame over what the destination holds: whole jobs only, as of one instant.

    Guarantee: a job is seen wholly or not at all, also while it commits. Files that Holdfast did not write are read
    too, like Spark's own sources read them.

    Args:
        spark: the session.
        url: ``s3://bucket/key`` or a directory.
        columns: read only these, or this one; Spark does not tell Python sources which columns a query needs.
        filters: only rows that meet all of these, e.g. ``[("month", "=", 1), ("day", "in", [1, 2])]``; partitions and
            row groups that cannot hold any are not read. Operators: ``= != < <= > >= in``.
        options: those of docs/reference/options.md, also in snake case: ``file_format="csv"``, ``header=True``.

    Raises:
        NotFoundError: nothing is there.
        InvalidRequestError: fix the call.
    """
    require_session(spark)
    said = [
        *say_url(url),
        *say_columns("columns", columns, "columns"),
        *say_conditions("filters", filters, "filters"),
        *say_options(options),
    ]
    if not any(one.name == "timezone" for one in said):
        said += say("timeZone", spark.conf.get("spark.sql.session.timeZone"), "timeZone")
    if is_classic(spark):
        said = rooted(said)
    options_given = parse_read_options(said)
    require_reachable(spark, options_given.store.url)
    if options_given.reader != "python":
        frame = native_frame(spark, options_given)
        if frame is not None:
            return frame
    try:
        with registered(spark):
            found = spark.read.format("holdfast").options(**settled(said)).load()
            _ = found.schema  # a client of Spark Connect would else ask for it later, and get Spark's error
            return found
    except PySparkException as error:
        ours = typed_again(error)
        if ours is None:
            raise
        raise ours from None  # Spark's pages around our sentence say nothing more
