"""Implement `holdfast.read`: return a DataFrame over one snapshot of a destination."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.options.keywords import (
    from_columns,
    from_conditions,
    from_options,
    from_text,
    from_url,
    to_strings,
    with_absolute_paths,
)
from holdfast.options.read import ReadOptions, parse_read_options
from holdfast.spark.failures import find_holdfast_error
from holdfast.spark.native import native_frame
from holdfast.spark.session import is_classic, registered, require_reachable, require_session
from holdfast.stores.given import GivenOption


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
        *from_url(url),
        *from_columns("columns", columns, "columns"),
        *from_conditions("filters", filters, "filters"),
        *from_options(options),
    ]
    parsed, strings = parse_for_session(spark, given)
    if parsed.reader != "python":
        frame = native_frame(spark, parsed)
        if frame is not None:
            return frame
    try:
        with registered(spark):
            found = spark.read.format("holdfast").options(**strings).load()
            _ = found.schema  # else a Spark Connect client would ask for the schema later, and show Spark's error
            return found
    except PySparkException as error:
        cause = find_holdfast_error(error)
        if cause is None:
            raise
        raise cause from None  # Spark's pages of stack traces add nothing


def parse_for_session(spark: SparkSession, given: list[GivenOption]) -> tuple[ReadOptions, dict[str, str]]:
    """Parse the options of a read by a session, and return them with the strings that Spark passes on.

    The session's time zone is the default. In classic Spark, relative paths become absolute.

    Raises:
        InvalidRequestError: an option is invalid, or the path is relative and the session is Spark Connect's.
    """
    if not any(one.name == "timezone" for one in given):
        given = given + from_text("timeZone", spark.conf.get("spark.sql.session.timeZone"), "timeZone")
    if is_classic(spark):
        given = with_absolute_paths(given)
    parsed = parse_read_options(given)
    require_reachable(spark, parsed.store.url)
    return parsed, to_strings(given)
