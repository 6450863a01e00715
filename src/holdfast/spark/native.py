"""A snapshot through Spark's own reader: its speed, its dialects and its types, and whole jobs only, as ever.

Spark lists the destination when the DataFrame is made and keeps that listing for it. Two looks at the decision log
around that moment tell whether the listing is a snapshot: no decision waited to become visible, and none was made in
between. If one waits, Spark gets the files of a snapshot by name instead of the directory.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.commit import CommitContext, Instant, Snapshot, read_instant, read_snapshot
from holdfast.commit.nesting import refuse_part
from holdfast.errors import NotFoundError, UnavailableError, UnsupportedError
from holdfast.options.parsing import ReadOptions
from holdfast.spark.failures import first_line
from holdfast.spark.hadoop_path import hadoop_path
from holdfast.spark.native_limits import limit_of_columns
from holdfast.spark.native_query import narrowed
from holdfast.spark.native_scan import Scan, listed
from holdfast.spark.reader import nothing_to_read
from holdfast.table.foreign import refuse_foreign_read

__all__ = ["native_frame"]

_ATTEMPTS = 20


def native_frame(spark: SparkSession, options: ReadOptions) -> DataFrame | None:
    """A DataFrame of Spark's own reader over the snapshot, or None where the Python reader has to do it.

    Guarantee: the same rows and schema as through the Python reader.

    Raises:
        NotFoundError: nothing is there.
        UnsupportedError: ``reader=native`` was asked for, and cannot be; says why.
    """
    ctx = options.store.open()
    try:
        refuse_foreign_read(ctx, by_spark=True)
        found = _frame_or_reason(spark, ctx, options)
    finally:
        ctx.close()
    if not isinstance(found, str):
        return found
    if options.reader == "native":
        raise UnsupportedError(f"Spark's own reader cannot do this: {found}", url=options.store.url)
    return None


def _frame_or_reason(spark: SparkSession, ctx: CommitContext, options: ReadOptions) -> DataFrame | str:
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        instant = read_instant(ctx)
        snapshot = _nearly(ctx, instant) if instant.is_settled else read_snapshot(ctx)
        if not snapshot.files and snapshot.table is None:
            raise nothing_to_read(ctx)
        if not snapshot.head:
            refuse_part(ctx)
        scan = Scan.of(spark, ctx, options, snapshot)
        if refusal := scan.limit():
            return refusal
        path, refusal = hadoop_path(spark, ctx, options.store, snapshot)
        if path is None:
            return refusal
        paths = [path] if instant.is_settled else [f"{path}/{file.path}" for file in snapshot.files]
        try:
            promised = scan.promised()
            if promised is not None and (refusal := limit_of_columns(spark, scan.choice, promised)):
                return refusal
            frame = scan.load(path, paths, promised)
        except (PySparkException, Py4JError, NotFoundError) as error:
            problem = error
            if instant.is_settled and read_instant(ctx) == instant:
                break
            continue  # most likely files went that a job replaced meanwhile
        if not instant.is_settled or read_instant(ctx) == instant:
            refusal = scan.unlike(frame, promised)
            return refusal or narrowed(frame, options, scan.names(frame, promised))
    if problem is None:
        raise UnavailableError("jobs are decided faster than the destination is listed: read again", url=ctx.url)
    if isinstance(problem, NotFoundError) and options.reader == "native":
        raise problem
    return first_line(problem)  # the Python reader reads it, or says in a sentence why nobody can


def _nearly(ctx: CommitContext, instant: Instant) -> Snapshot:
    """The snapshot without files where the log tells of a table: the listing is Spark's work.

    Where it does not, with all files: there may be several formats among them, and places that Spark skips.
    """
    files = tuple(listed(ctx)) if instant.table is None else ()
    return Snapshot(head=instant.head, files=files, table=instant.table)
