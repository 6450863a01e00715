"""Writes wide tables in one direction or the other and says what became of every column, for each reader."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import holdfast
from holdfast.errors import HoldfastError
from holdfast.spark.types import arrow_schema
from tests.matrix.readers import READERS, Files, Found, spark_found
from tests.matrix.shapes import Column, expected

__all__ = ["DIALECTS", "Cell", "Dialect", "Outcome", "read_by_holdfast", "written_by_holdfast", "written_by_spark"]


@dataclass(frozen=True)
class Dialect:
    """A format with the options that it is written and read with.

    Attributes:
        settings: of Spark's session, while Spark writes.
        writing, reading: options, under Spark's names.
        spark: whether stock Spark writes and reads it.
        typed: whether files keep the types: without, the schema is given to every reader.
        single: it holds one column, which is called `value`.
    """

    name: str
    format: str
    settings: Mapping[str, str] = field(default_factory=dict)
    writing: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    spark: bool = True
    typed: bool = True
    single: bool = False


DIALECTS: dict[str, Dialect] = {
    one.name: one
    for one in (
        Dialect("parquet", "parquet", {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}),
        Dialect("parquet-int96", "parquet", {"spark.sql.parquet.outputTimestampType": "INT96"}),
        Dialect("orc", "orc"),
        Dialect("csv", "csv", writing={"header": "true"}, reading={"header": "true", "multiLine": "true"}, typed=False),
        Dialect("json", "json", typed=False),
        Dialect("avro", "avro", spark=False),
        Dialect("arrow", "arrow", spark=False),
        Dialect("text", "text", single=True),
    )
}


@dataclass(frozen=True)
class Cell:
    """One column on one way.

    Attributes:
        writer, reader: ``holdfast``, ``spark`` or another reader's name.
    """

    writer: str
    dialect: str
    reader: str
    column: Column


@dataclass(frozen=True)
class Outcome:
    """What became of it: `error`, or a type and values beside those that went in."""

    error: str = ""
    type: str = ""
    wanted_type: str = ""
    values: Sequence[Any] = ()
    wanted: Sequence[Any] = ()

    @property
    def same(self) -> bool:
        return not self.error and self.type == self.wanted_type and list(self.values) == list(self.wanted)


Outcomes = dict[Cell, Outcome]


# --- writing ----------------------------------------------------------------------------------------------------------
def written_by_holdfast(
    frame: Any, columns: Sequence[Column], dialect: Dialect, url: str, options: Mapping[str, object]
) -> dict[Column, str]:
    """Writes what can be written together; columns that are refused are left out, and the reasons returned."""

    def write(some: Sequence[Column], place: str) -> None:
        chosen = frame.select("id", *(column.name for column in some))
        holdfast.write(chosen, place, file_format=dialect.format, **{**dialect.writing, **options})

    return _write_most(write, columns, url)


def written_by_spark(
    frame: Any, columns: Sequence[Column], dialect: Dialect, url: str, options: Mapping[str, str]
) -> dict[Column, str]:
    """The same by stock Spark."""

    def write(some: Sequence[Column], place: str) -> None:
        chosen = frame.select("id", *(column.name for column in some))
        chosen.write.format(dialect.format).mode("overwrite").options(**{**dialect.writing, **options}).save(place)

    return _write_most(write, columns, url)


def _write_most(
    write: Callable[[Sequence[Column], str], None], columns: Sequence[Column], url: str
) -> dict[Column, str]:
    """Writes all columns but those that cannot be, whose reasons are returned.

    A refusal that names its column costs one more try; for others the column is looked for in halves, elsewhere.
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


def _search(
    write: Callable[[Sequence[Column], str], None], columns: Sequence[Column], url: str
) -> dict[Column, str]:
    try:
        write(columns, url)
        return {}
    except Exception as error:
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
    spark: Any, frame: Any, columns: Sequence[Column], dialect: Dialect, url: str, own: bool, **options: str
) -> dict[Column, Found]:
    """What `holdfast.read` finds; files of others that keep no types get the schema."""
    by_name = {column.name: column for column in columns}
    reader = spark.read.format("holdfast").option("path", url)
    reader = reader.option("timeZone", spark.conf.get("spark.sql.session.timeZone")).options(**options)
    if not own:
        reader = reader.option("fileFormat", dialect.format).options(**dialect.reading)
        if not dialect.typed:
            reader = reader.schema(frame.select("id", *by_name).schema)
    try:
        found = spark_found(reader.load(), list(by_name))
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]}"
        found = {name: Found(error=text) for name in by_name}
    return {by_name[name]: one for name, one in found.items()}


def read_by_spark(
    spark: Any, frame: Any, columns: Sequence[Column], dialect: Dialect, url: str
) -> dict[Column, Found]:
    """What stock Spark finds."""
    by_name = {column.name: column for column in columns}
    reader = spark.read.format(dialect.format).options(**dialect.reading)
    if not dialect.typed:
        reader = reader.schema(frame.select("id", *by_name).schema)
    return {by_name[name]: one for name, one in spark_found(reader.load(url), list(by_name)).items()}


def read_by_others(
    frame: Any, columns: Sequence[Column], dialect: Dialect, url: str
) -> Iterator[tuple[str, dict[Column, Found]]]:
    """What each other reader of the format finds."""
    by_name = {column.name: column for column in columns}
    fields = []
    for name in ("id", *by_name):
        try:
            fields.append(arrow_schema(frame.select(name).schema).field(0))
        except HoldfastError:
            continue  # Arrow has no such type
    files = Files(_data_files(url), pa.schema(fields), list(by_name))
    for reader in READERS:
        if callable(reader.formats[dialect.format]):
            found = reader.read(dialect.format, files)
            yield reader.name, {by_name[name]: one for name, one in found.items()}


def _data_files(url: str) -> list[str]:
    root = Path(url)
    found = (path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(str(p) for p in found if not any(q.startswith(("_", ".")) for q in p.relative_to(root).parts))


def outcome(frame: Any, column: Column, found: Found, rows: int, *, types: bool) -> Outcome:
    """What was found beside what went in; `types` where the reader speaks of types in Spark's words."""
    if found.error:
        return Outcome(error=found.error)
    wanted = frame.schema[column.name].dataType.simpleString() if types else found.type
    return Outcome("", found.type, wanted, found.values, expected(column, rows))
