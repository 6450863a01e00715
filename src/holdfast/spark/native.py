"""Read a snapshot with Spark's own reader: with the speed, dialects and types of Spark, but still only whole jobs.

Spark lists the destination when the DataFrame is created, and reuses that listing. Holdfast reads the decision log
before and after the listing. The listing is a snapshot if all decided jobs were completely published before it, and no
job was decided in between. If a decided job is not completely published, Spark gets the names of the snapshot's files
instead of the directory.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, Snapshot, read_instant, read_snapshot
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import iter_visible
from holdfast.errors import NotFoundError, UnavailableError, UnsupportedError
from holdfast.options.read import ReadOptions
from holdfast.spark.failures import first_line
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.filters import narrowed
from holdfast.spark.hadoop_path import hadoop_path
from holdfast.spark.native_options import limit_of_columns, limit_of_read, spark_options
from holdfast.spark.reader import nothing_to_read
from holdfast.spark.types import table_schema
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.existing import fingerprint
from holdfast.table.foreign import refuse_foreign_read

_ATTEMPTS = 20
_NO_TABLE = "no log describes a table here: use spark.read"
_OTHERS = "other programs have added files to the table, in which Spark may reinterpret values"
_ELSEWHERE = "a file lies in directories that are not the table's partitions, and Spark would skip it"


def native_frame(spark: SparkSession, options: ReadOptions) -> DataFrame | None:
    """Return a DataFrame that reads the snapshot with Spark's own reader, or None if the Python reader must do it.

    Guarantee: the DataFrame has the same rows and schema as one from the Python reader. So only tables are read that
    the log describes, and that have no files of other programs but those that the log knows: Spark's reader
    reinterprets values whose type differs from the table's, and skips files in directories that are not partitions.

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
        # If everything is settled, Spark lists the files.
        settled = Snapshot(head=instant.head, files=(), table=instant.table)
        snapshot = settled if instant.is_settled else read_snapshot(ctx)
        if snapshot.table is None:
            if next(iter_visible(ctx.store, ctx.prefix), None) is None:
                raise nothing_to_read(ctx)
            return _NO_TABLE
        table, choice = decode_table(snapshot.table), FormatChoice.of(options, snapshot)
        schema = table_schema(table)
        if limit := limit_of_read(spark, options, choice) or limit_of_columns(spark, choice, schema):
            return limit
        path, refusal = hadoop_path(spark, ctx, options.store, snapshot.head)
        if path is None:
            return refusal
        paths = [path] if instant.is_settled else [f"{path}/{file.path}" for file in snapshot.files]
        try:
            frame = load(spark, ctx, spark_options(table, choice, options), choice.name, schema, path, paths)
        except (PySparkException, Py4JError, NotFoundError) as error:
            problem = error
            if instant.is_settled and read_instant(ctx) == instant:
                break
            continue  # most likely a job replaced files in the meantime
        if not instant.is_settled or read_instant(ctx) == instant:
            return unlike(frame, ctx, table) or narrowed(frame, options, schema.names)
    if problem is None:
        raise UnavailableError("jobs commit faster than the destination can be listed: read again", url=ctx.url)
    if isinstance(problem, NotFoundError) and options.reader == "native":
        raise problem
    return first_line(problem)  # the Python reader reads it, or reports the problem in one sentence


def load(
    spark: SparkSession,
    ctx: CommitContext,
    options: Mapping[str, str],
    file_format: str,
    schema: StructType,
    path: str,
    paths: list[str],
) -> DataFrame:
    """Load `paths` with Spark's reader: either the destination's path, or those of the snapshot's files.

    Raises:
        NotFoundError: Spark finds no files.
        PySparkException, Py4JError: Spark cannot read them.
    """
    reader = spark.read.format(file_format).options(**options).schema(schema).option("basePath", path)
    # This option makes each read unique: Spark treats two equal reads of a path as one, and answers the second from a
    # cache.
    reader = reader.option("holdfastRead", ctx.ids.token())
    try:
        return reader.load(paths)
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            raise NotFoundError("there is nothing to read: check the URL", url=ctx.url) from error
        raise


def unlike(frame: DataFrame, ctx: CommitContext, table: TableRecord) -> str:
    """Return the reason why Spark's scan may read other rows than the table has; empty if it does not.

    Costs a few calls to the JVM, however many files there are.
    """
    plan = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return "the session reads files through another Spark source (spark.sql.sources.useV1SourceList)"
    index = plan.relation().location()
    if index.getClass().getSimpleName() == "InMemoryFileIndex" and (listed := index.leafFiles().size()):
        partitions = index.partitionSpec()
        named = [name.lower() for name in partitions.partitionColumns().fieldNames()]
        if table.partition_by:
            # Spark reads all files if every directory with files is a partition, and each partition is one directory.
            whole = partitions.partitions().size() == index.leafDirToChildrenFiles().size()
        else:
            whole = index.allFiles().size() == listed
        if named != [name.lower() for name in table.partition_by] or not whole:
            return _ELSEWHERE
    if not _has_foreign_files(frame):
        return ""
    # They may still be those that were inspected before Holdfast's first append.
    is_known = table.adopted != "" and table.adopted == fingerprint(iter_visible(ctx.store, ctx.prefix))
    return "" if is_known else _OTHERS


def _has_foreign_files(frame: DataFrame) -> bool:
    """Check whether Spark has listed files that Holdfast did not write."""
    files = frame._jdf.queryExecution().analyzed().relation().location().inputFiles()
    jvm = frame.sparkSession._jvm
    assert jvm is not None, "a native read is classic Spark's"
    # Fetch all paths as one string: one call to the JVM per path would take longer than reading 100,000 files.
    return any(
        file_owner(path) is None
        for path in jvm.org.apache.hadoop.util.StringUtils.join("\n", files).split("\n")
        if path
    )
