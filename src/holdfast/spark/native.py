"""Read a snapshot with Spark's own reader: with the speed, dialects and types of Spark, but still only whole jobs.

Spark lists the destination when the DataFrame is created, and reuses that listing. Holdfast reads the decision log
before and after the listing. The listing is a snapshot if all decided jobs were completely published before it, and no
job was decided in between. If a decided job is not completely published, Spark gets the names of the snapshot's files
instead of the directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from holdfast.commit import CommitContext, Instant, Snapshot, VisibleFile, read_instant, read_snapshot
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import iter_visible
from holdfast.commit.nesting import refuse_part
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.options.read import ReadOptions
from holdfast.spark.failures import first_line
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.filters import narrowed
from holdfast.spark.hadoop_path import hadoop_path
from holdfast.spark.native_options import limit_of_columns, limit_of_read, limit_of_zones, spark_options
from holdfast.spark.reader import infer_schema, nothing_to_read
from holdfast.spark.types import spark_schema, table_schema
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.existing import fingerprint
from holdfast.table.files import opener
from holdfast.table.foreign import refuse_foreign_read
from holdfast.table.partition import parse_partition_path
from holdfast.table.reader import first_with_bytes, read_schema

_ATTEMPTS = 20
_SELF_DESCRIBING = ("parquet", "orc")
_JSON_OF_OTHERS = "there are files that Holdfast did not write, and Spark silently changes JSON values"
_OTHERWISE = "a file lies in directories that differ from the other files' partitions, and Spark would skip files"


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


def listed(ctx: CommitContext) -> Iterable[VisibleFile]:
    """List the files that a plain reader sees at a destination."""
    return (VisibleFile(path, info.size_bytes, info.etag) for path, info in iter_visible(ctx.store, ctx.prefix))


# --- one attempt ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Scan:
    """One attempt to read a snapshot with Spark.

    Attributes:
        spark: the session.
        ctx: the destination.
        options: the options of the read.
        snapshot: the snapshot to read; without files if Spark itself lists them.
        choice: the format.
        table: the table as the log records it; None if the log records none.
        partition_by: the partition columns.
    """

    spark: SparkSession
    ctx: CommitContext
    options: ReadOptions
    snapshot: Snapshot
    choice: FormatChoice
    table: TableRecord | None
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, spark: SparkSession, ctx: CommitContext, options: ReadOptions, snapshot: Snapshot) -> Scan:
        """Prepare an attempt, and determine the format of the files.

        Raises:
            InvalidRequestError: the format is unknown, or an option does not fit it.
        """
        choice = FormatChoice.of(options, snapshot)
        table = None if snapshot.table is None else decode_table(snapshot.table)
        partition_by = directory_columns(snapshot.files) if table is None else table.partition_by
        return cls(spark, ctx, options, snapshot, choice, table, partition_by)

    def limit(self) -> str:
        """Return a reason that Spark cannot read the snapshot, if one is known without asking Spark; else ""."""
        if refusal := limit_of_read(self.spark, self.options, self.choice):
            return refusal
        if self.table is not None:
            return limit_of_zones(self.choice, self.table.time_zone, self.options.time_zone)
        if self.choice.name == "json":
            return _JSON_OF_OTHERS
        if not any(file.size_bytes for file in self.snapshot.files):
            return "every file is empty"
        return misplaced(self.snapshot.files, self.partition_by)

    def promised(self) -> StructType | None:
        """Return the schema that the Python reader would show; None if it cannot represent the files' schema."""
        if self.table is not None:
            return table_schema(self.table)
        if self.choice.name not in _SELF_DESCRIBING:
            return infer_schema(replace(self.options, columns=None, conditions=()))
        files = self.snapshot.files
        first = first_with_bytes(files)
        assert first is not None, "reads without files were refused before"
        settings = self.choice.settings(first.path, self.options.split_size_bytes)
        try:
            return spark_schema(read_schema(files, opener(self.ctx), settings).schema)
        except (CorruptDataError, InvalidRequestError, UnsupportedError):
            return None

    def load(self, path: str, paths: list[str], promised: StructType | None) -> DataFrame:
        """Load `paths` with Spark's reader: either the destination's path, or those of the snapshot's files.

        Raises:
            NotFoundError: Spark finds no files.
            PySparkException, Py4JError: Spark cannot read them.
        """
        reader = self.spark.read.format(self.choice.name)
        reader = reader.options(**spark_options(self.table, self.choice, self.options))
        # For other writers' files that describe their columns, let Spark determine the schema, because it knows more
        # types than Holdfast.
        if promised is not None and (self.table is not None or self.choice.name not in _SELF_DESCRIBING):
            reader = reader.schema(promised)
        # This option makes each read unique: Spark treats two equal reads of a path as one, and answers the second from
        # a cache.
        reader = reader.option("basePath", path).option("holdfastRead", self.ctx.ids.token())
        try:
            return reader.load(paths)
        except AnalysisException as error:
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                raise NotFoundError("there is nothing to read: check the URL", url=self.ctx.url) from error
            raise

    def unlike(self, frame: DataFrame, promised: StructType | None) -> str:
        """Describe how the frame's files or columns differ from those of the Python reader; empty if they do not."""
        known = self.snapshot.files
        refusal = unlike(frame, self.partition_by, lambda: known if self.table is None else listed(self.ctx))
        if refusal:
            return refusal
        if self.table is None:
            if promised is not None and _columns(frame.schema) != _columns(promised):
                return "with this session's settings Spark infers other types for the files' columns"
            if refusal := limit_of_columns(self.spark, self.choice, frame.schema):
                return refusal
        elif not has_foreign_files(frame) or self._knows_others(self.table):
            return ""
        if self.choice.name in _SELF_DESCRIBING:
            return unlike_footers(self.spark, frame)
        if self.choice.name == "json":
            return _JSON_OF_OTHERS
        return ""

    def _knows_others(self, table: TableRecord) -> bool:
        """Check whether the files of other writers are still those inspected before Holdfast's first append."""
        return table.adopted != "" and table.adopted == fingerprint(iter_visible(self.ctx.store, self.ctx.prefix))

    def names(self, frame: DataFrame, promised: StructType | None) -> list[str]:
        """Return the columns in the table's order, because Spark's file sources put partition columns last."""
        return frame.columns if promised is None else promised.names


def _columns(schema: StructType) -> list[object]:
    return [(field.name, field.dataType) for field in schema.fields]


# --- which files Spark lists ------------------------------------------------------------------------------------------
# If there is a single directory ``p=1``, Spark treats everything as partitioned by ``p`` and ignores all files outside
# such directories. In a destination without partitions, it ignores all files in subdirectories.
def directory_columns(files: Sequence[VisibleFile]) -> tuple[str, ...]:
    """Return the partition columns of a destination without a log, taken from the path of the first non-empty file."""
    first = first_with_bytes(files)
    return () if first is None else tuple(parse_partition_path(first.path))


def misplaced(files: Iterable[VisibleFile], partition_by: Sequence[str]) -> str:
    """Return the reason why Spark would skip one of these files; empty if Spark reads all non-empty ones."""
    wanted = _folded(partition_by)
    for file in files:
        if not file.size_bytes:
            continue  # Spark never opens it
        if not wanted and "/" in file.path:
            return f"it skips files in directories that are not partitions, such as {file.path}"
        if _folded(parse_partition_path(file.path)) != wanted:
            return f"{_OTHERWISE}, such as {file.path}"
    return ""


def unlike(frame: DataFrame, partition_by: Sequence[str], files: Callable[[], Iterable[VisibleFile]]) -> str:
    """Return the reason why Spark's scan does not read all files that Spark listed; empty if it does.

    Costs a few calls to the JVM, however many files there are, because the file names stay in the JVM.

    Args:
        frame: a DataFrame from Spark's reader.
        partition_by: the partition columns.
        files: lists the destination; only called if the counts differ, to check whether empty files explain the
            difference.
    """
    plan = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return "the session reads files through another Spark source (spark.sql.sources.useV1SourceList)"
    index = plan.relation().location()
    if index.getClass().getSimpleName() != "InMemoryFileIndex":
        return ""  # the log of Spark's own stream determines the files
    listed = index.leafFiles().size()
    if not listed:
        return ""
    partitions = index.partitionSpec()
    if _folded(partitions.partitionColumns().fieldNames()) != _folded(partition_by):
        return _OTHERWISE
    if partition_by:
        # Spark reads all files if every directory with files is a partition, and each partition is one directory.
        whole = partitions.partitions().size() == index.leafDirToChildrenFiles().size()
    else:
        whole = index.allFiles().size() == listed
    return "" if whole else misplaced(files(), partition_by)


def _folded(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


# --- the footers of files that Holdfast did not write -----------------------------------------------------------------
# If a column has another type in a file, Spark's readers silently reinterpret its bits, truncate values or return null.
# So all footers are read first, as Spark does for ``mergeSchema``: by Spark's tasks, from the files that it has listed.
def has_foreign_files(frame: DataFrame) -> bool:
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


def unlike_footers(spark: SparkSession, frame: DataFrame) -> str:
    """Describe how the files' types differ from the types that Spark will read; empty if they do not.

    Additional columns in the files are ignored.

    Args:
        frame: a DataFrame from Spark's reader, in a format whose files describe their columns.
    """
    relation = frame._jdf.queryExecution().analyzed().relation()
    files = relation.location().allFiles()
    # Skip files that are empty or damaged here: the read itself reports them.
    options = relation.options().updated("mergeSchema", "true").updated("ignoreCorruptFiles", "true")
    try:
        found = relation.fileFormat().inferSchema(spark._jsparkSession, options, files)
    except (PySparkException, Py4JError) as error:
        return f"the files' columns contradict each other: {first_line(error)}"
    if not found.isDefined():
        return "no file describes its columns"
    path = _first_unlike("", StructType.fromJson(json.loads(found.get().json())), frame.schema)
    return path and f"a file's column has another type than the one read, and Spark would change its values: {path}"


def _first_unlike(path: str, theirs: DataType, mine: DataType) -> str:
    """Return the path of the first column or nested field whose types differ; empty if there is none."""
    if isinstance(theirs, StructType) and isinstance(mine, StructType):
        known = {field.name.lower(): field.dataType for field in mine.fields}
        for field in theirs.fields:
            name = field.name.lower()
            if name in known and (found := _first_unlike(f"{path}{field.name}.", field.dataType, known[name])):
                return found
        return ""
    if isinstance(theirs, ArrayType) and isinstance(mine, ArrayType):
        return _first_unlike(f"{path}element.", theirs.elementType, mine.elementType)
    if isinstance(theirs, MapType) and isinstance(mine, MapType):
        keys = _first_unlike(f"{path}key.", theirs.keyType, mine.keyType)
        return keys or _first_unlike(f"{path}value.", theirs.valueType, mine.valueType)
    return "" if theirs.simpleString() == mine.simpleString() else path.removesuffix(".")
