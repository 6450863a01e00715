"""Define readers as values: what each reads from a directory, and what it cannot read at all."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet

from tests.matrix.canonical import MARK, canonical

__all__ = ["READERS", "Files", "Found", "Reader", "in_halves", "spark_found", "spark_rows", "table_found"]


@dataclass(frozen=True)
class Found:
    """What a reader returned for a column: its type under the reader's name, and its values in the order of `id`.

    Attributes:
        type: the type.
        values: the values.
        error: the reader's message if it cannot read the column; then type and values are empty.
    """

    type: str = ""
    values: Sequence[Any] = ()
    error: str = ""


# --- Spark ------------------------------------------------------------------------------------------------------------
def shown(sql: str, kind: Any, depth: int = 0) -> str | None:
    """Return SQL for a value that turns everything that Arrow lacks into marked text; None if there is no such part."""
    word = kind.simpleString()
    name = type(kind).__name__
    if name == "YearMonthIntervalType":
        return f"concat('{MARK}m:', cast(cast(cast({sql} as interval month) as int) as string))"
    if name in ("CalendarIntervalType", "VariantType", "GeometryType"):
        text = {
            "C": f"'c:', cast({sql} as string)",
            "V": f"'v:', to_json({sql})",
            "G": f"'g:', lower(hex(st_asbinary({sql})))",
        }
        return f"concat('{MARK}', {text[name[0]]})"
    if name in ("CharType", "VarcharType") or (name == "NullType" and depth):
        return f"cast({sql} as string)"  # nulls in arrays become wrong Arrow arrays (Spark 4.3)
    if name.endswith("UDT"):
        return f"concat('{MARK}u:', cast({sql} as string))"
    if word.startswith("struct") and name == "StructType":
        parts = [(one.name, shown(f"{sql}.`{one.name}`", one.dataType, depth), f"{sql}.`{one.name}`") for one in kind]
        if all(part is None for _, part, _ in parts):
            return None
        return (
            f"if({sql} is null, null, named_struct({', '.join(f'{n!r}, {part or same}' for n, part, same in parts)}))"
        )
    if name == "ArrayType":
        part = shown(f"x{depth}", kind.elementType, depth + 1)
        return part and f"transform({sql}, x{depth} -> {part})"
    if name == "MapType":
        for function, part in (
            ("transform_keys", shown(f"k{depth}", kind.keyType, depth + 1)),
            ("transform_values", shown(f"v{depth}", kind.valueType, depth + 1)),
        ):
            sql = f"{function}({sql}, (k{depth}, v{depth}) -> {part})" if part else sql
        return sql if sql.startswith("transform_") else None
    return None


def spark_found(frame: Any, columns: Sequence[str]) -> dict[str, Found]:
    """Return what a DataFrame contains; if a column breaks the query, read the columns one by one."""
    wanted = [name for name in columns if name in frame.columns]
    missing = {name: Found(error="the column is not there") for name in columns if name not in frame.columns}
    return missing | in_halves(wanted, functools.partial(spark_rows, frame))


def spark_rows(frame: Any, names: Sequence[str]) -> dict[str, Found]:
    """Return what a DataFrame contains, or raise if any of the columns cannot be read."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    order = ["id"] if "id" in kinds else []
    shows = [f"{shown(f'`{name}`', kinds[name]) or f'`{name}`'} as `{name}`" for name in names]
    table = frame.selectExpr(*order, *shows).toArrow()
    return _table_found(table, names, {name: kinds[name].simpleString() for name in names})


def in_halves(names: Sequence[str], read: Callable[[Sequence[str]], dict[str, Found]]) -> dict[str, Found]:
    """Read the columns together; if that fails, bisect down to the columns that fail alone."""
    if not names:
        return {}
    try:
        return read(names)
    except Exception as error:  # noqa: BLE001  # any error is the result for the column
        if len(names) == 1:
            return {names[0]: Found(error=_sentence(error))}
    middle = len(names) // 2
    return in_halves(names[:middle], read) | in_halves(names[middle:], read)


def _sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    named = [line for line in lines if "Error: " in line and "holdfast" in line]
    return f"{type(error).__name__}: {(named or lines)[-1 if named else 0][:300]}"


def table_found(table: Any, names: Sequence[str], schema: Any) -> dict[str, Found]:
    """Return what an Arrow table of Spark's rows contains; `schema` is Spark's."""
    kinds = {field.name: field.dataType for field in schema.fields}
    if table is None:
        return {name: Found(kinds[name].simpleString()) for name in names}
    table = table.take(pa.compute.sort_indices(table["id"])) if "id" in table.column_names else table
    found = {}
    for name in names:
        if name not in kinds:
            found[name] = Found(error="the column is not there")
            continue
        try:
            found[name] = Found(kinds[name].simpleString(), canonical(table.column(name), kinds[name]))
        except Exception as error:  # noqa: BLE001  # any error is the result for the column
            found[name] = Found(error=_sentence(error))
    return found


def _table_found(table: Any, names: Sequence[str], types: Mapping[str, str] | None = None) -> dict[str, Found]:
    rows = range(table.num_rows)
    if "id" in table.column_names:
        rows = pa.compute.sort_indices(table["id"].cast(pa.int64())).to_pylist()
    found = {}
    for name in names:
        try:
            column = table.column(name)
            values = canonical(column)  # before sorting: Arrow's take fails for lists that contain only nulls
            found[name] = Found((types or {}).get(name, str(column.type)), [values[row] for row in rows])
        except Exception as error:  # noqa: BLE001  # any error is the result for the column
            found[name] = Found(error=_sentence(error))
    return found


# --- others -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Files:
    """A directory as readers other than Spark read it.

    Attributes:
        paths: its files.
        schema: the Arrow schema, for formats without types; fields that Arrow lacks are missing.
        names: the columns.
    """

    paths: Sequence[str]
    schema: Any
    names: Sequence[str]


Read = Callable[[Files, Sequence[str]], Any]
"""Returns an Arrow table of some columns (and `id`)."""


@dataclass(frozen=True)
class Reader:
    """A reader other than Spark.

    Attributes:
        name: its name.
        formats: a function to read each format, or the reason why there is none.
    """

    name: str
    formats: Mapping[str, Read | str]

    def read(self, format_name: str, files: Files) -> dict[str, Found]:
        """Return what the reader finds."""
        how = self.formats[format_name]
        assert callable(how)

        def some(names: Sequence[str]) -> dict[str, Found]:
            return _table_found(how(files, ["id", *names]), names)

        return in_halves(files.names, some)


def _each(read: Callable[[str, Sequence[str]], Any]) -> Read:
    def whole(files: Files, names: Sequence[str]) -> Any:
        return pa.concat_tables([read(path, names) for path in files.paths], promote_options="permissive")

    return whole


def _typed(files: Files, names: Sequence[str]) -> dict[str, Any]:
    known = {field.name: field.type for field in files.schema}
    return {name: known[name] for name in names if name in known}


def _pyarrow_csv(files: Files, names: Sequence[str]) -> Any:
    options = {
        "parse_options": pa.csv.ParseOptions(escape_char="\\", double_quote=False, newlines_in_values=True),
        "convert_options": pa.csv.ConvertOptions(
            column_types=_typed(files, names),
            include_columns=list(names),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    }
    return pa.concat_tables([pa.csv.read_csv(path, **options) for path in files.paths])


def _pyarrow_json(files: Files, names: Sequence[str]) -> Any:
    schema = pa.schema(list(_typed(files, names).items()))
    options = pa.json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore")
    return pa.concat_tables([pa.json.read_json(path, parse_options=options) for path in files.paths])


def _holds_null(kind: Any) -> bool:
    below = (kind.field(index).type for index in range(kind.num_fields)) if pa.types.is_nested(kind) else ()
    return pa.types.is_null(kind) or any(map(_holds_null, below))


def _sound(column: Any) -> Any:
    """Return the column, with untyped nulls below other types rebuilt: pandas slices them wrongly in small files."""
    kind = column.type
    if not pa.types.is_nested(kind) or not _holds_null(kind):
        return column
    return pa.array([row for chunk in column.chunks for row in _rows(chunk)], kind)


def _rows(array: Any, count: int = 0) -> list[Any]:
    """Return the values; an array of nulls may have a wrong length, so it gets `count` values."""
    kind = array.type
    if pa.types.is_null(kind):
        return [None] * count
    if not _holds_null(kind):
        return list(array.to_pylist())
    if pa.types.is_struct(kind):
        nulls = [None] * len(array)
        parts = [nulls if pa.types.is_null(one.type) else _rows(array.field(one.name)) for one in kind]
        found: list[Any] = [dict(zip(kind.names, row, strict=True)) for row in zip(*parts, strict=True)]
    else:
        ends = array.offsets.to_pylist()
        if pa.types.is_map(kind):
            below = list(zip(_rows(array.keys), _rows(array.items, len(array.keys)), strict=True))
        else:
            below = _rows(array.values, ends[-1])
        found = [below[start:end] for start, end in itertools.pairwise(ends)]
    return [row if there else None for row, there in zip(found, array.is_valid().to_pylist(), strict=True)]


def _pandas(read: Callable[[Any, str, Sequence[str]], Any]) -> Read:
    def whole(files: Files, names: Sequence[str]) -> Any:
        import pandas as pd

        frames = [read(pd, path, names) for path in files.paths]
        tables = [pa.table({name: _sound(frame[name].array.__arrow_array__()) for name in names}) for frame in frames]
        return pa.concat_tables(tables, promote_options="permissive")

    return whole


def _duckdb(function: str) -> Read:
    def whole(files: Files, names: Sequence[str]) -> Any:
        import duckdb

        listed = ", ".join(f"'{path}'" for path in files.paths)
        chosen = ", ".join(f'"{name}"' for name in names)
        with duckdb.connect() as connection:
            connection.execute("set timezone = 'UTC'")
            return connection.execute(f"select {chosen} from {function.format(files=f'[{listed}]')}").to_arrow_table()

    return whole


def _polars(read: Callable[[Any, str, Sequence[str]], Any]) -> Read:
    def whole(files: Files, names: Sequence[str]) -> Any:
        import polars as pl

        return pl.concat([read(pl, path, names) for path in files.paths], how="vertical").to_arrow()

    return whole


def _fastavro(files: Files, names: Sequence[str]) -> Any:
    import fastavro

    rows: list[Any] = []
    for path in files.paths:
        with open(path, "rb") as source:
            rows += [{name: row[name] for name in names} for row in fastavro.reader(source)]
    types = _typed(files, names)
    return pa.table({name: pa.array([row[name] for row in rows], types.get(name)) for name in names})


_NO_AVRO = "no Avro reader"
_NO_TYPES = "types are guessed"

READERS: tuple[Reader, ...] = (
    Reader(
        "pyarrow",
        {
            "parquet": _each(lambda path, names: pa.parquet.ParquetFile(path).read(columns=list(names))),
            "orc": _each(lambda path, names: pa.orc.ORCFile(path).read(columns=list(names))),
            "arrow": _each(lambda path, names: pa.ipc.open_file(path).read_all().select(list(names))),
            "csv": _pyarrow_csv,
            "json": _pyarrow_json,
            "avro": _NO_AVRO,
        },
    ),
    Reader(
        "pandas",
        {
            "parquet": _pandas(
                lambda pd, path, names: pd.read_parquet(path, columns=list(names), dtype_backend="pyarrow")
            ),
            "orc": _pandas(lambda pd, path, names: pd.read_orc(path, columns=list(names), dtype_backend="pyarrow")),
            "arrow": "refuses NOT NULL fields below a null: use pyarrow",
            "csv": _NO_TYPES,
            "json": _NO_TYPES,
            "avro": _NO_AVRO,
        },
    ),
    Reader(
        "DuckDB",
        {
            "parquet": _duckdb("read_parquet({files})"),
            "orc": "no ORC reader",
            "arrow": "reads through pyarrow only",
            "csv": _NO_TYPES,
            "json": _NO_TYPES,
            "avro": "downloads an extension",
        },
    ),
    Reader(
        "polars",
        {
            "parquet": _polars(lambda pl, path, names: pl.read_parquet(path, columns=list(names))),
            "orc": "no ORC reader",
            "arrow": _polars(lambda pl, path, names: pl.read_ipc(path, columns=list(names))),
            "csv": "no escape character",
            "json": _NO_TYPES,
            "avro": "panics on unknown types",
        },
    ),
    Reader(
        "fastavro",
        {"avro": _fastavro, **dict.fromkeys(("parquet", "orc", "arrow", "csv", "json"), "reads Avro only")},
    ),
)
