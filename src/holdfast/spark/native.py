"""Read a snapshot with Spark's own reader: with the speed, dialects and types of Spark, but still only whole jobs.

Spark lists the destination when the DataFrame is created, and reuses that listing. Holdfast reads the decision log
before and after the listing. The listing is a snapshot if all decided jobs were completely published before it, and no
job was decided in between. If a decided job is not completely published, Spark gets the names of the snapshot's files
instead of the directory.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.commit import CommitContext, Instant, Snapshot, read_instant, read_snapshot
from holdfast.commit.nesting import refuse_part
from holdfast.errors import NotFoundError, UnavailableError, UnsupportedError
from holdfast.options.read import ReadOptions
from holdfast.spark.failures import first_line
from holdfast.spark.hadoop_path import hadoop_path
from holdfast.spark.native_limits import limit_of_columns
from holdfast.spark.native_query import narrowed
from holdfast.spark.native_scan import Scan, listed
from holdfast.spark.reader import nothing_to_read
from holdfast.table.foreign import refuse_foreign_read

_ATTEMPTS = 20


def native_frame(spark: SparkSession, options: ReadOptions) -> DataFrame | None:
    """Return a DataFrame that reads the snapshot with Spark's own reader, or None if the Python reader must do it.

    Guarantee: the DataFrame has the same rows and schema as one from the Python reader.

    Raises:
        NotFoundError: the destination holds no data.
        UnsupportedError: ``reader=native`` was requested but is not possible; the error says why.
    """
    with options.store.open() as ctx:
        refuse_foreign_read(ctx, by_spark=True)
        found = _frame_or_reason(spark, ctx, options)
    if not isinstance(found, str):
        return found
    if options.reader == "native":
        raise UnsupportedError(f"Spark's own reader cannot read this: {found}", url=options.store.url)
    return None


def _frame_or_reason(spark: SparkSession, ctx: CommitContext, options: ReadOptions) -> DataFrame | str:
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        instant = read_instant(ctx)
        snapshot = _snapshot_of(ctx, instant) if instant.is_settled else read_snapshot(ctx)
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
            continue  # most likely a job replaced files in the meantime
        if not instant.is_settled or read_instant(ctx) == instant:
            refusal = scan.unlike(frame, promised)
            return refusal or narrowed(frame, options, scan.names(frame, promised))
    if problem is None:
        raise UnavailableError("jobs commit faster than the destination can be listed: read again", url=ctx.url)
    if isinstance(problem, NotFoundError) and options.reader == "native":
        raise problem
    return first_line(problem)  # the Python reader reads it, or reports the problem in one sentence


def _snapshot_of(ctx: CommitContext, instant: Instant) -> Snapshot:
    """Return the snapshot; without its files if the log records a table, because Spark then lists the files.

    If the log records no table, the snapshot contains all files: they must be checked, since they may have different
    formats, or lie where Spark does not look.
    """
    files = tuple(listed(ctx)) if instant.table is None else ()
    return Snapshot(head=instant.head, files=files, table=instant.table)
