"""Make one attempt to read a snapshot with Spark's own reader, and check that the Python reader would agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, Snapshot, VisibleFile
from holdfast.commit.layout import iter_visible
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.options.read import ReadOptions
from holdfast.spark.csv_headers import require_headers_in_order
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.native_footers import has_foreign_files, unlike_footers
from holdfast.spark.native_limits import limit_of_columns, limit_of_read, limit_of_zones
from holdfast.spark.native_listing import directory_columns, misplaced, unlike
from holdfast.spark.native_options import spark_options
from holdfast.spark.reader import infer_schema
from holdfast.spark.types import spark_schema, table_schema
from holdfast.table import first_with_bytes, read_schema
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.fingerprint import fingerprint
from holdfast.table.inferred import opener

_SELF_DESCRIBING = ("parquet", "orc")
_JSON_OF_OTHERS = "there are files that Holdfast did not write, and Spark silently changes JSON values"


def listed(ctx: CommitContext) -> Iterable[VisibleFile]:
    """List the files that a plain reader sees at a destination."""
    return (VisibleFile(path, info.size_bytes, info.etag) for path, info in iter_visible(ctx.store, ctx.prefix))


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
        if self.choice.name == "csv" and self.table is not None:
            require_headers_in_order(self.ctx, listed(self.ctx), opener(self.ctx), self.choice, self.table)
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
