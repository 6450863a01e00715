"""The pleasant way out: `read`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.spark.failures import typed_again
from holdfast.spark.filters import conditions_text
from holdfast.spark.native import native_frame
from holdfast.spark.options import joined_columns, option_strings, parse_read_options
from holdfast.spark.session import register

__all__ = ["read"]


def read(
    spark: SparkSession,
    url: str,
    *,
    columns: Sequence[str] | None = None,
    filters: Sequence[tuple[str, str, object]] = (),
    **options: object,
) -> DataFrame:
    """A DataFrame over what the destination holds: whole jobs only, as of one instant.

    Guarantee: a job is seen wholly or not at all, also while it commits. Files that Holdfast did not write are read
    too, like Spark's own sources read them.

    Args:
        spark: the session.
        url: ``s3://bucket/key`` or a directory.
        columns: read only these; Spark does not tell Python sources which columns a query needs.
        filters: only rows that meet all of these, e.g. ``[("month", "=", 1), ("day", "in", [1, 2])]``; partitions and
            row groups that cannot hold any are not read. Operators: ``= != < <= > >= in``.
        options: those of docs/spark.md, also in snake case: ``file_format="csv"``, ``header=True``.

    Raises:
        NotFoundError: nothing is there.
        InvalidRequestError: fix the call.
    """
    given = {
        "timezone": str(spark.conf.get("spark.sql.session.timeZone")),
        **option_strings(options),
        "path": url,
        **({"columns": joined_columns(columns)} if columns is not None else {}),
        **({"filters": conditions_text(filters)} if filters else {}),
    }
    options_given = parse_read_options(given)
    if options_given.reader != "python":
        frame = native_frame(spark, options_given)
        if frame is not None:
            return frame
    register(spark)
    try:
        return spark.read.format("holdfast").options(**given).load()
    except PySparkException as error:
        ours = typed_again(error)
        if ours is None:
            raise
        raise ours from None  # Spark's pages around our sentence say nothing more
