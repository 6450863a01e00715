"""Read a snapshot with Spark's own reader: with the speed, dialects and types of Spark, but still only whole jobs.

Spark lists the destination when the DataFrame is created, and reuses that listing. Holdfast reads the decision log
before and after the listing. The listing is a snapshot if all decided jobs were completely published before it, and no
job was decided in between. If a decided job is not completely published, Spark gets the names of the snapshot's files
instead of the directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from holdfast.commit import CommitContext, Snapshot, read_instant, read_snapshot
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import iter_visible
from holdfast.errors import NotFoundError, UnavailableError, UnsupportedError
from holdfast.options.read import ReadOptions
from holdfast.spark.failures import first_line
from holdfast.spark.file_format import DestinationFormat
from holdfast.spark.hadoop_path import find_hadoop_path
from holdfast.spark.reader import nothing_to_read_error, select_columns
from holdfast.spark.types import make_table_spark_schema
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.existing import foreign_fingerprint
from holdfast.table.foreign import refuse_foreign_read

_ATTEMPTS = 20
_NO_TABLE = "no log describes a table here: use spark.read"
_OTHERS = "other programs have added files to the table, in which Spark may reinterpret values"
_ELSEWHERE = "a file lies in directories that are not the table's partitions, and Spark would skip it"


def make_native_dataframe(spark: SparkSession, options: ReadOptions) -> DataFrame | None:
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
        found = _make_frame_or_explain(spark, ctx, options)
    if not isinstance(found, str):
        return found
    if options.reader == "native":
        raise UnsupportedError(f"Spark's own reader cannot read this: {found}", url=options.store.url)
    return None


def _make_frame_or_explain(spark: SparkSession, ctx: CommitContext, options: ReadOptions) -> DataFrame | str:
    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        instant = read_instant(ctx)
        # If everything is settled, Spark lists the files.
        settled = Snapshot(head=instant.head, files=(), table=instant.table)
        snapshot = settled if instant.is_settled else read_snapshot(ctx)
        if snapshot.table is None:
            if next(iter_visible(ctx.store, ctx.prefix), None) is None:
                raise nothing_to_read_error(ctx)
            return _NO_TABLE
        table, choice = decode_table(snapshot.table), DestinationFormat.of(options, snapshot)
        schema = make_table_spark_schema(table)
        if limit := explain_unsupported_options(spark, options, choice) or explain_unsupported_columns(
            spark, choice, schema
        ):
            return limit
        path, refusal = find_hadoop_path(spark, ctx, options.store, snapshot.head)
        if path is None:
            return refusal
        paths = [path] if instant.is_settled else [f"{path}/{file.path}" for file in snapshot.files]
        try:
            frame = load_frame(spark, ctx, spark_options(choice), choice.name, schema, path, paths)
        except (PySparkException, Py4JError, NotFoundError) as error:
            problem = error
            if instant.is_settled and read_instant(ctx) == instant:
                break
            continue  # most likely a job replaced files in the meantime
        if not instant.is_settled or read_instant(ctx) == instant:
            return mismatch_reason(frame, ctx, table) or select_requested_columns(frame, schema, options)
    if problem is None:
        raise UnavailableError("jobs commit faster than the destination can be listed: read again", url=ctx.url)
    if isinstance(problem, NotFoundError) and options.reader == "native":
        raise problem
    return first_line(problem)  # the Python reader reads it, or reports the problem in one sentence


def select_requested_columns(frame: DataFrame, schema: StructType, options: ReadOptions) -> DataFrame:
    """Return the frame with the columns that the read requests, in the table's order."""
    names = (schema if options.columns is None else select_columns(schema, options.columns)).names
    return frame.select([col("`" + name.replace("`", "``") + "`") for name in names])


def load_frame(
    spark: SparkSession,
    ctx: CommitContext,
    options: Mapping[str, str],
    file_format: str,
    schema: StructType,
    path: str,
    paths: list[str],
) -> DataFrame:
    """Load a DataFrame with Spark's own reader: from the destination's path, or from those of the snapshot's files.

    Args:
        path: the destination's.
        paths: what to read: `path`, or files below it.

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


def mismatch_reason(frame: DataFrame, ctx: CommitContext, table: TableRecord) -> str:
    """Return the reason why Spark's scan of a table may read other rows than the table has; empty if it does not.

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
    is_known = table.adopted != "" and table.adopted == foreign_fingerprint(iter_visible(ctx.store, ctx.prefix))
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


# --- what only the Python reader reads --------------------------------------------------------------------------------
_TIME = re.compile(r"\btime\(\d\)")
_TIME_TYPE = "spark.sql.timeType.enabled"
_WITHOUT_ORC_INSTANTS = "4.1."
"""These releases do not know ORC's own name of the type, "timestamp with local time zone"."""

_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
# Session settings that no option of a read overrides, and the value under which both readers return the same. A setting
# that a Spark release does not have counts as unset.
_SETTINGS: Mapping[str, str] = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    "spark.sql.sources.validatePartitionColumns": "true",
}
_SETTINGS_OF: Mapping[str, Mapping[str, str]] = {
    "parquet": {
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
        "spark.sql.parquet.int96TimestampConversion": "false",
    },
    "orc": {"spark.sql.orc.impl": "native"},
}


def explain_unsupported_options(spark: SparkSession, options: ReadOptions, choice: DestinationFormat) -> str:
    """Return the reason why Spark's own reader cannot read with this format and these options; empty if it can."""
    if choice.name not in _SETTINGS_OF:
        return "Spark's own reader reads Parquet and ORC only as Holdfast does: of text, it silently changes values"
    if options.conditions:
        return "filters are for the Python reader: filter the DataFrame, which Spark pushes down"
    if options.split_size_bytes != ReadOptions(store=options.store).split_size_bytes:
        return "splitSize is an option of the Python reader"
    for name, wanted in {**_SETTINGS, **_SETTINGS_OF[choice.name]}.items():
        found = str(spark.conf.get(name, wanted))
        if found.lower() != wanted.lower():
            return f"with {name}={found} Spark may read other rows or values"
    return ""


def explain_unsupported_columns(spark: SparkSession, choice: DestinationFormat, schema: StructType) -> str:
    """Return the reason why Spark's own reader cannot read columns with these types and names; empty if it can."""
    kinds = list(_iter_types(schema))
    fields = [field for kind in kinds if isinstance(kind, StructType) for field in kind.fields]
    if choice.name == "orc":
        for field in fields:
            if not field.name or "`" in field.name:
                return f"Spark does not find ORC columns whose name is empty or contains a backtick: {field.name!r}"
        for name in schema.names:
            if name.startswith("_col"):
                return f"Spark matches ORC columns by position if all names in a file start with _col: {name!r}"
        if spark.version.startswith(_WITHOUT_ORC_INSTANTS) and any(isinstance(one, TimestampType) for one in kinds):
            return f"Spark {spark.version} cannot read timestamps in ORC files that it did not write itself"
    if _TIME.search(schema.simpleString()) and str(spark.conf.get(_TIME_TYPE, "true")).lower() != "true":
        return f"without {_TIME_TYPE}=true Spark cannot read columns of type TIME"
    if choice.name == "parquet" and str(spark.conf.get(_FIELD_IDS, "false")).lower() == "true":
        for field in fields:
            if "parquet.field.id" in field.metadata:
                return f"with {_FIELD_IDS}=true Spark matches columns by ids, which files may lack"
    return ""


def _iter_types(kind: DataType) -> Iterator[DataType]:
    """Yield a type, and all types nested in it."""
    yield kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _iter_types(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _iter_types(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _iter_types(kind.keyType)
        yield from _iter_types(kind.valueType)


def spark_options(choice: DestinationFormat) -> dict[str, str]:
    """Return options with which Spark's own reader reads files of a format as the Python reader does."""
    given = dict(choice.option_strings)
    given["__globPaths__"] = "false"  # take paths literally, whatever characters they contain
    # Files that were deleted or cannot be read are errors.
    given |= {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    if choice.name == "parquet":
        # Do not rebase dates in files without metadata about their calendar, such as Holdfast's.
        given |= {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        given["parquet.page.verify-checksum.enabled"] = "true"  # a Hadoop setting: without it, damage is read as data
    if choice.name == "orc":  # these become Hadoop settings
        given |= {"orc.force.positional.evolution": "false", "orc.skip.corrupt.data": "false"}
    return given
