"""Write wide tables in each format and check what every reader returns for each column."""

from __future__ import annotations

import fnmatch
import functools
import re
import shutil
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

import holdfast
from holdfast.errors import HoldfastError
from holdfast.formats.columns.conversion import transform_child_fields
from holdfast.spark.types import make_arrow_schema
from tests.matrix.in_process import read_table, write_batches
from tests.matrix.readers import READERS, Files, Found, in_halves, spark_found, spark_rows, table_found
from tests.matrix.shapes import Column, expected, wide_frame

__all__ = [
    "DIALECTS",
    "Cell",
    "Dialect",
    "Input",
    "Outcome",
    "Outcomes",
    "narrowed",
    "outcome",
    "readable",
    "survey",
    "write_most",
]


@dataclass(frozen=True)
class Dialect:
    """A format with the options to write and read it.

    Attributes:
        name: the name of the dialect.
        format: the name of the format.
        settings: settings of the Spark session while Spark writes.
        writing, reading: options, under Spark's names.
        spark: whether stock Spark writes and reads it.
        ours: whether Holdfast writes it. If not, it is another form in which Spark writes the format.
        typed: whether files store the types. If not, every reader gets the schema.
        alone: patterns of kinds that get a directory of their own.
    """

    name: str
    format: str
    settings: Mapping[str, str] = field(default_factory=dict)
    writing: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    spark: bool = True
    ours: bool = True
    typed: bool = True
    alone: tuple[str, ...] = ()


_MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
_LINES = {"header": "true", "multiLine": "true"}
_MANGLED = ("string*", "char", "varchar", "binary")  # a value that breaks its record affects all columns

DIALECTS: dict[str, Dialect] = {
    one.name: one
    for one in (
        Dialect("parquet", "parquet", settings=_MICROS),
        Dialect("parquet-int96", "parquet", settings={"spark.sql.parquet.outputTimestampType": "INT96"}, ours=False),
        Dialect("orc", "orc", alone=("years*", "months")),
        Dialect(
            "csv",
            "csv",
            writing={"header": "true"},
            reading=_LINES,
            typed=False,
            alone=(*_MANGLED, "void"),
        ),
        Dialect("json", "json", typed=False),
        Dialect("avro", "avro", spark=False, alone=("date_*", "instant_*")),
        Dialect("arrow", "arrow", spark=False),
    )
}


@dataclass(frozen=True)
class Cell:
    """One column, one writer and one reader.

    Attributes:
        way: ``writer>dialect>reader``; the reader is ``-`` where the write was rejected.
        column: the column.
    """

    way: str
    column: Column


@dataclass(frozen=True)
class Outcome:
    """The result for a cell: `error`, or the type and values that were read beside the expected ones."""

    error: str = ""
    type: str = ""
    wanted_type: str = ""
    values: Sequence[Any] = ()
    wanted: Sequence[Any] = ()

    @property
    def same(self) -> bool:
        """Return whether the column was read back as written."""
        return not self.error and self.type == self.wanted_type and list(self.values) == list(self.wanted)


Outcomes = dict[Cell, Outcome]


# --- writing ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Input:
    """A wide table in the two forms in which it is written.

    Attributes:
        frame: the table in Spark.
        columns: its columns.
        rows: the number of rows.
        batches: the rows as Spark passes them to Python, sliced if requested, without columns that cannot leave Spark.
        zone: the session's time zone.
    """

    frame: Any
    columns: Sequence[Column]
    rows: int
    batches: Sequence[Any]
    zone: str

    @classmethod
    def of(cls, spark: Any, columns: Sequence[Column], rows: int, batch_rows: int | None = None) -> Input:
        """Compute the table once."""
        frame = wide_frame(spark, columns, rows)
        names = [field.name for field in frame.schema.fields if _leaves_spark(field)]
        # Not toArrow: it fails for nullable structs with non-nullable fields (Spark 4.3).
        found = frame.select(*names)._collect_as_arrow()
        step = batch_rows or max(rows, 1)
        batches = [batch.slice(start, step) for batch in found for start in range(0, batch.num_rows, step)]
        return cls(frame, columns, rows, batches, spark.conf.get("spark.sql.session.timeZone"))


def _leaves_spark(field: Any) -> bool:
    try:
        make_arrow_schema(StructType([field]))
        return True
    except HoldfastError:
        return False


Write = Callable[[Sequence[Column], str], None]
"""Writes some columns to a URL."""


def _write_ours(
    data: Input,
    dialect: Dialect,
    options: Mapping[str, object],
    through_spark: bool,
    columns: Sequence[Column],
    url: str,
) -> None:
    names = ["id", *(column.name for column in columns)]
    chosen = data.frame.select(*names)
    given = {**dialect.writing, **options}
    if through_spark:
        holdfast.write(chosen, url, file_format=dialect.format, **given)
        return
    strings = {"path": url, "fileFormat": dialect.format}
    batches = (batch.select(names) for batch in data.batches)  # lazily, after the check of the schema
    named = {key.replace("_", ""): str(value) for key, value in given.items()}
    write_batches([batches], chosen.schema, strings | named)


def _write_theirs(data: Input, dialect: Dialect, columns: Sequence[Column], url: str) -> None:
    chosen = data.frame.select("id", *(column.name for column in columns))
    chosen.write.format(dialect.format).mode("overwrite").options(**dialect.writing).save(url)


def write_most(write: Write, columns: Sequence[Column], url: str) -> dict[Column, str]:
    """Write all columns except the rejected ones, and return the errors of those.

    An error that names its column costs one retry. For other errors, the column is found by bisection in another place.
    """
    refused: dict[Column, str] = {}
    left = list(columns)
    while left:
        try:
            write(left, url)
            break
        except Exception as error:
            found = _blamed(error, left) or _search(write, left, url + "-search")
            if not found:
                raise
            refused |= found
            left = [column for column in left if column not in found]
    return refused


def _blamed(error: Exception, columns: Sequence[Column]) -> dict[Column, str]:
    first = str(error).split("\n")[0]
    blamed = [column for column in columns if re.search(rf"\b{column.name}\b", first)]
    return {blamed[0]: _words(error)} if len(blamed) == 1 else {}


def _search(write: Write, columns: Sequence[Column], url: str) -> dict[Column, str]:
    try:
        write(columns, url)
        return {}
    except Exception as error:  # noqa: BLE001  # any error is the result for the column
        if len(columns) == 1:
            return {columns[0]: _words(error)}
    finally:
        shutil.rmtree(url, ignore_errors=True)
    middle = len(columns) // 2
    return _search(write, columns[:middle], url) | _search(write, columns[middle:], url)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"


# --- reading ----------------------------------------------------------------------------------------------------------
def read_by_holdfast(
    spark: Any, columns: Sequence[Column], dialect: Dialect, url: str, *, own: bool, reader: str
) -> dict[Column, Found]:
    """Return what Holdfast reads.

    Args:
        spark: the session.
        columns: the columns to read.
        dialect: the dialect of the files.
        url: where they are.
        own: whether Holdfast wrote them.
        reader: ``process`` for the Python reader without Spark, otherwise the value of the option ``reader``.
    """
    by_name = {column.name: column for column in columns}
    options = {"path": url, **({} if own else {"fileFormat": dialect.format, **dialect.reading})}

    def read(names: Sequence[str]) -> dict[str, Found]:
        some = len(names) < len(by_name)
        if reader == "process":
            found, table = read_table({**options, **({"columns": ",".join(("id", *names))} if some else {})})
            return table_found(table, names, found)
        named = {"columns": ("id", *names)} if some else {}
        file_format = {} if own else {"file_format": dialect.format}
        return spark_rows(holdfast.read(spark, url, reader=reader, **named, **file_format), names)

    return {by_name[name]: one for name, one in in_halves(list(by_name), read).items()}


def narrowed(schema: Any, names: Sequence[str]) -> Any:
    """Return the schema in which the other columns are strings, which fit any value of a directory."""
    wanted = {"id", *names}
    return StructType([field if field.name in wanted else StructField(field.name, StringType()) for field in schema])


def read_by_spark(spark: Any, frame: Any, columns: Sequence[Column], dialect: Dialect, url: str) -> dict[Column, Found]:
    """Return what stock Spark reads."""
    by_name = {column.name: column for column in columns}
    reader = spark.read.format(dialect.format).options(**dialect.reading)

    def read(names: Sequence[str]) -> dict[str, Found]:
        # CSV columns match by position, and Spark accepts no schema with char(n).
        chosen = names if dialect.format != "csv" else list(by_name)
        schema = StructType([readable(field) for field in frame.select("id", *chosen).schema])
        return spark_found((reader if dialect.typed else reader.schema(schema)).load(url), names)

    return {by_name[name]: one for name, one in in_halves(list(by_name), read).items()}


def readable(field: Any) -> Any:
    plain = type(field.dataType).__name__ in ("CharType", "VarcharType", "NullType")
    return StructField(field.name, StringType()) if plain else field


def read_by_others(
    frame: Any, columns: Sequence[Column], dialect: Dialect, url: str
) -> Iterator[tuple[str, dict[Column, Found]]]:
    """Yield what each other reader of the format reads."""
    by_name = {column.name: column for column in columns}
    fields = []
    for name in ("id", *by_name):
        try:
            fields.append(_nullable(make_arrow_schema(frame.select(name).schema).field(0)))
        except HoldfastError:
            continue  # Arrow has no such type
    files = Files(_data_files(url), pa.schema(fields), list(by_name))
    for reader in READERS if files.paths else ():  # an empty text file has no bytes
        if callable(reader.formats[dialect.format]):
            found = reader.read(dialect.format, files)
            yield reader.name, {by_name[name]: one for name, one in found.items()}


def _nullable(field: Any) -> Any:
    """Make all nested fields nullable: readers that get a schema reject NOT NULL below a null."""
    return pa.field(field.name, transform_child_fields(field.type, _nullable), True)


def _data_files(url: str) -> list[str]:
    root = Path(url)
    found = (path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(str(p) for p in found if not any(q.startswith(("_", ".")) for q in p.relative_to(root).parts))


def outcome(frame: Any, column: Column, found: Found, rows: int, *, types: bool) -> Outcome:
    """Combine what was read with the expected values; `types` if the reader uses Spark's names for types."""
    if found.error:
        return Outcome(error=found.error)
    wanted = frame.schema[column.name].dataType.simpleString() if types else found.type
    return Outcome("", found.type, wanted, found.values, expected(column, rows))


# --- all combinations -------------------------------------------------------------------------------------------------
def survey(
    spark: Any,
    data: Input,
    dialect: Dialect,
    place: str,
    options: Mapping[str, object],
    *,
    expected: Callable[[str, Column], Hashable | None],
    readers: Sequence[str] = ("process",),
    through_spark: bool = False,
) -> Outcomes:
    """Test every column with all writers and readers of a dialect.

    Args:
        spark: the session.
        data: the table to write.
        dialect: the dialect.
        place: a directory; created if needed.
        options: options of Holdfast's writes.
        expected: returns the declaration by which a write is rejected, or None. Such columns are tested separately:
            where a test is expensive (another process), one column for each declaration.
        readers: Holdfast's readers, see `read_by_holdfast`.
        through_spark: whether Holdfast writes through Spark's Python workers, or in this process.
    """
    found: Outcomes = {}
    spark.conf.set("spark.sql.session.timeZone", data.zone)

    def both(writer: str, columns: list[Column], url: str, write: Write, *, expensive: bool) -> None:
        way = f"{writer}>{dialect.name}>-"
        apart = {column: expected(way, column) for column in columns}
        together = [column for column in columns if apart[column] is None]
        refused = write_most(write, together, url)
        for column in _representatives(apart) if expensive else [one for one in columns if apart[one] is not None]:
            refused[column] = write_most(write, [column], url + "-alone").get(column, "")
        found.update({Cell(way, one): Outcome(error=text) for one, text in refused.items()})
        left = [one for one in together if one not in refused]
        if left:
            found.update(_read_by_all(spark, data, left, dialect, url, readers, own=writer == "holdfast"))

    for number, columns in enumerate(_groups(data.columns, dialect)):
        if dialect.ours:
            write = functools.partial(_write_ours, data, dialect, options, through_spark)
            both("holdfast", columns, f"{place}/{number}-holdfast", write, expensive=through_spark)
        if dialect.spark:
            for key, value in dialect.settings.items():
                spark.conf.set(key, value)
            both(
                "spark",
                columns,
                f"{place}/{number}-spark",
                functools.partial(_write_theirs, data, dialect),
                expensive=True,
            )
    return found


def _representatives(apart: Mapping[Column, Hashable | None]) -> list[Column]:
    return list({declared: column for column, declared in apart.items() if declared is not None}.values())


def _groups(columns: Sequence[Column], dialect: Dialect) -> list[list[Column]]:
    together: list[Column] = []
    alone: dict[str, list[Column]] = {}
    for column in columns:
        apart = any(fnmatch.fnmatch(column.kind.name, pattern) for pattern in dialect.alone)
        (alone.setdefault(column.kind.name, []) if apart else together).append(column)
    return [group for group in (together, *alone.values()) if group]


def _read_by_all(
    spark: Any, data: Input, columns: Sequence[Column], dialect: Dialect, url: str, readers: Sequence[str], *, own: bool
) -> Outcomes:
    writer = "holdfast" if own else "spark"
    found: Outcomes = {}

    def note(reader: str, results: Mapping[Column, Found], *, types: bool) -> None:
        for column, one in results.items():
            way = f"{writer}>{dialect.name}>{reader}"
            found[Cell(way, column)] = outcome(data.frame, column, one, data.rows, types=types)

    for reader in readers if own or dialect.typed else ():  # Holdfast reads text of its own tables only
        if reader == "native" and not (own and dialect.format in ("parquet", "orc")):
            continue  # this would be stock Spark, which reads below
        results = read_by_holdfast(spark, columns, dialect, url, own=own, reader=reader)
        note("holdfast" if reader in ("process", "python") else f"holdfast-{reader}", results, types=True)
    if dialect.spark:
        note("spark", read_by_spark(spark, data.frame, columns, dialect, url), types=True)
    if own:
        for reader, results in read_by_others(data.frame, columns, dialect, url):
            note(reader, results, types=False)
    return found
