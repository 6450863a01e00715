"""One attempt to have Spark's own reader read a snapshot: what it is asked for, and whether it gave that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, Snapshot, VisibleFile
from holdfast.commit.layout import iter_visible
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.options.parsing import ReadOptions
from holdfast.spark.csv_headers import require_headers_in_order
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.native_footers import holds_others, unlike_footers
from holdfast.spark.native_limits import limit_of_columns, limit_of_read, limit_of_zones
from holdfast.spark.native_listing import directory_columns, misplaced, unlike
from holdfast.spark.native_options import spark_options
from holdfast.spark.reader import infer_schema
from holdfast.spark.types import spark_schema, table_schema
from holdfast.table import DataFile, first_with_rows, read_schema
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.inferred import opener
from holdfast.table.others import fingerprint

__all__ = ["Scan", "listed"]

_SELF_DESCRIBING = ("parquet", "orc")
_JSON_OF_OTHERS = "there are files that Holdfast did not write, and Spark changes values of JSON without a word"


def listed(ctx: CommitContext) -> Iterable[VisibleFile]:
    """The files that a plain reader sees at a destination."""
    return (VisibleFile(path, info.size_bytes, info.etag) for path, info in iter_visible(ctx.store, ctx.prefix))


@dataclass(frozen=True)
class Scan:
    """One attempt to have Spark read a snapshot.

    Attributes:
        spark: whose reader.
        ctx: the destination.
        options: of the read.
        snapshot: what is read; without files where Spark lists them.
        choice: the format.
        table: what the log tells, None if it tells of no table.
        partition_by: the columns that directories hold.
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
        """The attempt, with the format found out.

        Raises:
            InvalidRequestError: nothing tells the format, or an option is not the format's.
        """
        choice = FormatChoice.of(options, snapshot)
        table = None if snapshot.table is None else decode_table(snapshot.table)
        partition_by = directory_columns(snapshot.files) if table is None else table.partition_by
        return cls(spark, ctx, options, snapshot, choice, table, partition_by)

    def limit(self) -> str:
        """Why Spark cannot do it, as far as that shows without Spark; empty if it can."""
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
        """The columns that the Python reader shows; None if it has no words for those of the files."""
        if self.table is not None:
            return table_schema(self.table)
        if self.choice.name not in _SELF_DESCRIBING:
            return infer_schema(replace(self.options, columns=None, conditions=()))
        files = [DataFile(file.path, file.size_bytes, file.etag) for file in self.snapshot.files]
        first = first_with_rows(files)
        assert first is not None, "without a file there is nothing to read"
        settings = self.choice.settings(first.path, self.options.split_size_bytes)
        try:
            return spark_schema(read_schema(files, opener(self.ctx), settings).schema)
        except (CorruptDataError, InvalidRequestError, UnsupportedError):
            return None

    def load(self, path: str, paths: list[str], promised: StructType | None) -> DataFrame:
        """What Spark makes of the destination's path, or of the paths of its files.

        Raises:
            NotFoundError: Spark finds nothing there.
            PySparkException, Py4JError: it cannot read that.
        """
        if self.choice.name == "csv" and self.table is not None:
            require_headers_in_order(self.ctx, listed(self.ctx), opener(self.ctx), self.choice, self.table)
        reader = self.spark.read.format(self.choice.name)
        reader = reader.options(**spark_options(self.table, self.choice, self.options))
        # Others' files that tell their columns tell Spark, too: of some types it has a word and we have none.
        if promised is not None and (self.table is not None or self.choice.name not in _SELF_DESCRIBING):
            reader = reader.schema(promised)
        # Spark takes two reads of one path for the same and answers the second one from what it cached for the first.
        reader = reader.option("basePath", path).option("holdfastRead", self.ctx.ids.token())
        try:
            return reader.load(paths)
        except AnalysisException as error:
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                raise NotFoundError("there is nothing to read: check the url", url=self.ctx.url) from error
            raise

    def unlike(self, frame: DataFrame, promised: StructType | None) -> str:
        """Why a frame has other files or columns than the Python reader; empty if it has the same."""
        known = self.snapshot.files
        refusal = unlike(frame, self.partition_by, lambda: known if self.table is None else listed(self.ctx))
        if refusal:
            return refusal
        if self.table is None:
            if promised is not None and _columns(frame.schema) != _columns(promised):
                return "with the settings of this session Spark takes the files' columns for other types"
            if refusal := limit_of_columns(self.spark, self.choice, frame.schema):
                return refusal
        elif not holds_others(frame) or self._knows_others(self.table):
            return ""
        if self.choice.name in _SELF_DESCRIBING:
            return unlike_footers(self.spark, frame)
        if self.choice.name == "json":
            return _JSON_OF_OTHERS
        return ""

    def _knows_others(self, table: TableRecord) -> bool:
        """Whether the files that Holdfast did not write are those that were looked at before its first append."""
        return table.adopted != "" and table.adopted == fingerprint(iter_visible(self.ctx.store, self.ctx.prefix))

    def names(self, frame: DataFrame, promised: StructType | None) -> list[str]:
        """The columns in the table's order: Spark's file sources put partition columns last."""
        return frame.columns if promised is None else promised.names


def _columns(schema: StructType) -> list[object]:
    return [(field.name, field.dataType) for field in schema.fields]
