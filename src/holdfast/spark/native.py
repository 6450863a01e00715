"""A snapshot through Spark's own reader: its speed, its dialects and its types, and whole jobs only, as ever.

Spark lists the destination when the DataFrame is made and keeps that listing for it. Two looks at the decision log
around that moment tell whether the listing is a snapshot: no decision waited to become visible, and none was made in
between. If one waits, Spark gets the files of a snapshot by name instead of the directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, isnan, lit
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from holdfast.commit import CommitContext, Instant, Snapshot, VisibleFile, read_instant, read_snapshot
from holdfast.commit.layout import iter_visible
from holdfast.commit.nesting import refuse_part
from holdfast.errors import InvalidRequestError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.formats import get_format, nearest
from holdfast.spark.csv_headers import require_headers_in_order
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.filters import Condition, require_comparable, row_filters, typed_values
from holdfast.spark.hadoop_path import hadoop_path
from holdfast.spark.options import ReadOptions
from holdfast.spark.reader import infer_schema, nothing_to_read
from holdfast.spark.types import arrow_schema, table_schema
from holdfast.table.contract import decode_table
from holdfast.table.foreign import refuse_foreign_read

__all__ = ["native_frame"]

_ATTEMPTS = 20
_FORMATS = ("parquet", "orc", "csv", "json", "text")  # what stock Spark reads without another package
_SELF_DESCRIBING = ("parquet", "orc")
_TIME_PARSER = "spark.sql.legacy.timeParserPolicy"
_NO_COLUMN = "\0corrupt"  # no column is called that


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
        problem: Exception | None = None
        for _ in range(_ATTEMPTS):
            instant = read_instant(ctx)
            snapshot = _nearly(ctx, instant) if instant.is_settled else read_snapshot(ctx)
            if not snapshot.files and snapshot.table is None:
                raise nothing_to_read(ctx)
            if not snapshot.head:
                refuse_part(ctx)
            choice = FormatChoice.of(options, snapshot)
            if snapshot.table is None and _has_plain_directories(snapshot):
                path, refusal = None, "it leaves out files in directories that are no partitions"
            elif snapshot.table is None and not any(file.size_bytes for file in snapshot.files):
                path, refusal = None, "every file is empty"
            else:
                path, refusal = _place(spark, ctx, options, choice, snapshot)
            if path is None:
                if options.reader == "native":
                    raise UnsupportedError(f"Spark's own reader cannot do this: {refusal}", url=ctx.url)
                return None
            if choice.name == "csv" and snapshot.table is not None:
                require_headers_in_order(ctx, choice, decode_table(snapshot.table))
            paths = [path] if instant.is_settled else [f"{path}/{file.path}" for file in snapshot.files]
            try:
                frame = _load(spark, options, snapshot, choice, ctx.ids.token(), path, paths)
            except (PySparkException, Py4JError, NotFoundError) as error:
                problem = error
                if instant.is_settled and read_instant(ctx) == instant:
                    raise
                continue  # most likely files went that a job replaced meanwhile
            if not instant.is_settled or read_instant(ctx) == instant:
                return _narrowed(frame, options, _order(snapshot, frame))
        raise problem or UnavailableError(
            "jobs are decided faster than the destination is listed: read again", url=ctx.url
        )
    finally:
        ctx.close()


def _nearly(ctx: CommitContext, instant: Instant) -> Snapshot:
    """The snapshot without files where the log tells of a table: the listing is Spark's work.

    Where it does not, with all files: there may be several formats among them, and places that Spark skips.
    """
    found = iter_visible(ctx.store, ctx.prefix) if instant.table is None else ()
    files = tuple(VisibleFile(path, info.size_bytes) for path, info in found)
    return Snapshot(head=instant.head, files=files, table=instant.table)


def _has_plain_directories(snapshot: Snapshot) -> bool:
    """Whether files lie in directories that are no partitions."""
    return any("=" not in name for file in snapshot.files for name in file.path.split("/")[:-1])


def _place(
    spark: SparkSession, ctx: CommitContext, options: ReadOptions, choice: FormatChoice, snapshot: Snapshot
) -> tuple[str | None, str]:
    """Where Spark finds the destination; or None, and why it is left to the Python reader."""
    if choice.name not in _FORMATS:
        return None, f"stock Spark has no {choice.name}"
    if choice.name == "csv" and options.reader == "auto":
        return None, "Spark reads what does not parse in CSV as null without a word"
    if choice.name in ("csv", "json") and str(spark.conf.get(_TIME_PARSER)).upper() == "LEGACY":
        return None, f"with {_TIME_PARSER}=LEGACY Spark takes microseconds in text for milliseconds"
    if options.push_filters or options.split_size_bytes != ReadOptions(store=options.store).split_size_bytes:
        return None, "pushFilters and splitSize are options of the Python reader"
    return hadoop_path(spark, ctx, options.store, snapshot)


# --- the frame --------------------------------------------------------------------------------------------------------
def _load(
    spark: SparkSession,
    options: ReadOptions,
    snapshot: Snapshot,
    choice: FormatChoice,
    token: str,
    path: str,
    paths: Sequence[str],
) -> DataFrame:
    reader = spark.read.format(choice.name).options(**_spark_options(snapshot, choice, options))
    schema = _schema(options, snapshot, choice)
    if schema is not None:
        reader = reader.schema(schema)
    try:
        # Spark takes two reads of one path for the same and answers the second one from what it cached for the first.
        return reader.option("basePath", path).option("holdfastRead", token).load(list(paths))
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            raise NotFoundError("there is nothing to read: check the url", url=options.store.url) from error
        raise


def _schema(options: ReadOptions, snapshot: Snapshot, choice: FormatChoice) -> StructType | None:
    """The columns: those of the table; of files that tell theirs Spark's guess, of text files ours."""
    if snapshot.table is not None:
        return table_schema(decode_table(snapshot.table))
    return None if choice.name in _SELF_DESCRIBING else infer_schema(replace(options, columns=None, conditions=()))


def _spark_options(snapshot: Snapshot, choice: FormatChoice, options: ReadOptions) -> dict[str, str]:
    """Options for Spark's reader, so that it reads what the Python reader reads."""
    given = dict(choice.option_strings)
    given["__globPaths__"] = "false"  # a path is a path, whatever characters it holds
    # Whatever the session says: rows that are not there any more, or cannot be read, are an error.
    given |= {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    if choice.name in ("json", "csv"):
        given["columnNameOfCorruptRecord"] = _NO_COLUMN  # else Spark puts nothing, or the whole line, into one of ours
    if choice.name == "json" or (choice.name == "csv" and snapshot.table is None):
        given["mode"] = "FAILFAST"  # else what does not parse is null without a word; but CSV may grow by columns
    zone = decode_table(snapshot.table).time_zone if snapshot.table is not None else ""
    if zone or options.time_zone:
        given["timeZone"] = zone or str(options.time_zone)
    if choice.name == "csv":
        needed = get_format("csv").reader_options(choice.parsed(""))
        given |= {name.lower(): value for name, value in needed.items()}
        given["multiLine"] = "true"
        if snapshot.table is None:
            given["enforceSchema"] = "false"  # a header in another order is refused; a table's were looked at
    if choice.name == "parquet" and snapshot.table is not None:
        given["datetimeRebaseMode"] = "CORRECTED"  # ours are never rebased, whatever the session expects of others
    return given


def _order(snapshot: Snapshot, frame: DataFrame) -> list[str]:
    """The columns as the table has them: Spark's file sources put partition columns last."""
    if snapshot.table is None:
        return frame.columns
    return [str(one["name"]) for one in decode_table(snapshot.table).fields]


def _narrowed(frame: DataFrame, options: ReadOptions, names: Sequence[str]) -> DataFrame:
    """The columns and rows that were asked for."""
    if options.columns is not None:
        folded = {name.lower(): name for name in names}
        for name in options.columns:
            if name.lower() not in folded:
                raise InvalidRequestError(f"no such column: {nearest(name, names)}", column=name)
        names = [folded[name.lower()] for name in options.columns]
    chosen = frame.select([_column(name) for name in names])
    if not options.conditions:
        return chosen
    arrow = arrow_schema(chosen.schema)
    require_comparable(options.conditions, chosen.schema)
    row_filters(options.conditions, arrow)  # says what is wrong with a condition
    types = {field.name: field.dataType for field in chosen.schema.fields}
    met = [_condition(one, types[one.column], arrow.field(one.column).type) for one in options.conditions]
    return chosen.filter(reduce(Column.__and__, met))


def _column(name: str) -> Column:
    return col("`" + name.replace("`", "``") + "`")


def _condition(condition: Condition, kind: DataType, arrow: object) -> Column:
    """The condition as the Python reader takes it: neither null nor NaN meets it, but NaN meets ``!=``."""
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    literals = [_literal(value, kind) for value in typed_values(values, arrow, condition).to_pylist()]
    column = _column(condition.column)
    if 0 in values and isinstance(kind, FloatType | DoubleType):
        column = column + lit(0.0).cast(kind)  # Spark misses the negative zero in Parquet's statistics
    if condition.operator == "in":
        met = column.isin(*literals)
    else:
        met = {
            "=": column == literals[0],
            "!=": column != literals[0],
            "<": column < literals[0],
            "<=": column <= literals[0],
            ">": column > literals[0],
            ">=": column >= literals[0],
        }[condition.operator]
    if isinstance(kind, FloatType | DoubleType) and condition.operator != "!=":
        met = met & ~isnan(column)
    return met


def _literal(value: object, kind: DataType) -> Column:
    """A value as Spark's; times and decimals as text with their zone, for the session's zone shall not count."""
    plain = value if isinstance(value, bool | int | float | str | bytes) else _iso(value)
    return lit(plain).cast(kind)


def _iso(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
