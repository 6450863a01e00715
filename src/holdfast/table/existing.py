"""What a directory holds in which no log tells of a table: looked at before the first rows are added to it.

Only what would make the table unreadable or hide a column counts: another format, another partitioning, columns that
do not fit. Types in text files are a guess: there those of the rows hold, if the first file's values are of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from holdfast.commit import CommitContext
from holdfast.commit.layout import iter_visible
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, FormatOptions, format_of_name
from holdfast.formats.arrow_schema import arrow_schema_of
from holdfast.formats.lines import codec_of_name
from holdfast.formats.spark_schema import spark_schema_json
from holdfast.table.contract import TableRecord
from holdfast.table.partition import parse_partition_path
from holdfast.table.store_file import StoreFile
from holdfast.table.values import parse_values
from holdfast.table.widening import fold, nullable_fields

__all__ = ["find_existing"]

_SELF_DESCRIBING = frozenset({"parquet", "orc", "avro", "arrow"})
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro", b"ARROW1": "arrow"}
_LONGEST_MAGIC = max(map(len, _MAGIC))


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    size_bytes: int


def find_existing(
    ctx: CommitContext, given: TableRecord, schema: pa.Schema, options: FormatOptions, *, most: int | None = None
) -> TableRecord | None:
    """The table that a plain reader finds at the destination, None if there is no data.

    Args:
        given: what the rows to add look like.
        schema: the same as an Arrow schema.
        options: with which they are written: CSV does not tell its own.
        most: look at so many files; None for all.

    Raises:
        InvalidRequestError: what is there is no table, or none that the rows could be added to; says what is there.
    """
    files = (_File(path, info.size_bytes) for path, info in iter_visible(ctx.store, ctx.prefix) if info.size_bytes)
    first = next(files, None)
    if first is None:
        return None
    directories = tuple(parse_partition_path(first.path))
    values: list[set[str | None]] = [set() for _ in directories]
    file_format: FileFormat[Any] | None = None
    for file in itertools.islice(itertools.chain((first,), files), most):
        found = parse_partition_path(file.path)
        if tuple(found) != directories:
            raise InvalidRequestError(
                "the destination's directories are not partitioned alike: use another destination, or mode overwrite",
                first=first.path,
                other=file.path,
            )
        for seen, value in zip(values, found.values(), strict=True):
            seen.add(value)
        known = format_of_name(file.path)
        if known is None and file_format is None:
            known = _sniffed(ctx, file)
        if known is None and file_format is None:
            raise InvalidRequestError(
                "the destination holds files that are no table: use another destination, or mode overwrite",
                file=file.path,
            )
        if known is not None and file_format is not None and known.name != file_format.name:
            raise InvalidRequestError(
                "the destination holds files of two formats: use another destination, or mode overwrite",
                first=first.path,
                other=file.path,
            )
        file_format = file_format or known
    assert file_format is not None  # the first file gave it, or was refused
    record = replace(given, file_format=file_format.name, partition_by=directories)
    if file_format.name != given.file_format or _folded(directories) != _folded(given.partition_by):
        return record  # the contract says what is there
    _require_values(values, directories, given, schema)
    return replace(record, fields=_fields(ctx, first, file_format, options, given, directories))


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _opened(ctx: CommitContext, file: _File) -> Any:
    return StoreFile(ctx.store, ctx.key(file.path), file.size_bytes)


def _sniffed(ctx: CommitContext, file: _File) -> FileFormat[Any] | None:
    """The format by the first bytes: Hive gives its files no ending."""
    start = ctx.store.get(ctx.key(file.path), 0, min(_LONGEST_MAGIC, file.size_bytes))
    return next((FORMATS[name] for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def _require_values(
    values: Sequence[set[str | None]], directories: Sequence[str], given: TableRecord, schema: pa.Schema
) -> None:
    """Every directory has to name a value of its column's type, or nobody could read the table."""
    folded = {name.lower(): name for name in schema.names}
    for name, seen in zip(directories, values, strict=True):
        column = folded.get(name.lower())
        if column is not None:
            texts = sorted(value for value in seen if value is not None)
            parse_values(texts, schema.field(column).type, given.time_zone or "UTC", column)


def _fields(
    ctx: CommitContext,
    first: _File,
    file_format: FileFormat[Any],
    options: FormatOptions,
    given: TableRecord,
    names: Sequence[str],
) -> list[Mapping[str, Any]]:
    """The columns: those of the first file, then the partition columns: directories' `names`, types of the rows."""
    partition_by = set(_folded(names))
    mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
    given_fields = fold(given.fields)
    directories = [{**given_fields[name.lower()], "name": name} for name in names]
    if file_format.name in _SELF_DESCRIBING:
        with _opened(ctx, first) as source:
            found = file_format.read_schema(source, options)
        theirs = nullable_fields(json.loads(spark_schema_json(found))["fields"])
        return [*(one for one in theirs if one["name"].lower() not in partition_by), *directories]
    if file_format.name == "csv":
        _require_csv_columns(ctx, first, file_format, options, [str(one["name"]) for one in mine])
    if file_format.name == "json":
        with _opened(ctx, first) as source:
            found = file_format.read_schema(source, _as_in(first, options))
        theirs = nullable_fields(json.loads(spark_schema_json(found))["fields"])
        mine = _with_theirs(mine, [one for one in theirs if one["name"].lower() not in partition_by])
    if file_format.name in ("csv", "json"):
        _require_values_of(ctx, first, file_format, options, replace(given, fields=mine))
    return [*mine, *directories]


def _as_in(first: _File, options: FormatOptions) -> Any:
    """The options with what the file's name tells; instants without a zone are a matter of each read."""
    texts: Any = options
    return replace(texts, codec=codec_of_name(first.path), time_zone=texts.time_zone or "UTC")


def _with_theirs(mine: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows' fields as the files spell them, then those of the files that the rows lack."""
    found = fold(theirs)
    fields: list[Mapping[str, Any]] = []
    for one in mine:
        other = found.pop(str(one["name"]).lower(), None)
        if other is not None:
            one = {**one, "name": other["name"], "type": _type_with_theirs(one["type"], other["type"])}
        fields.append(one)
    return [*fields, *found.values()]


def _type_with_theirs(mine: Any, theirs: Any) -> Any:
    kinds = [one.get("type") if isinstance(one, dict) else "" for one in (mine, theirs)]
    if kinds == ["struct", "struct"]:
        return {**mine, "fields": _with_theirs(mine["fields"], theirs["fields"])}
    if kinds == ["array", "array"]:
        return {**mine, "elementType": _type_with_theirs(mine["elementType"], theirs["elementType"])}
    return mine


def _require_values_of(
    ctx: CommitContext, first: _File, file_format: FileFormat[Any], options: FormatOptions, table: TableRecord
) -> None:
    """The first rows that are there have to be readable with the table's types."""
    schema = arrow_schema_of(table.schema_json)
    try:
        with _opened(ctx, first) as source:
            next(file_format.read_batches(source, schema, schema.names, None, _as_in(first, options), None), None)
    except (CorruptDataError, InvalidRequestError) as error:
        raise InvalidRequestError(
            "the files that are there hold values that are not of the rows' types: cast the rows, use another "
            "destination, or mode overwrite",
            file=first.path,
            reason=str(error),
        ) from error


def _require_csv_columns(
    ctx: CommitContext, first: _File, file_format: FileFormat[Any], options: FormatOptions, names: list[str]
) -> None:
    """CSV's columns are told by position, and nothing but the first line tells whether there is a header."""
    plain = replace(options, header=False, codec=codec_of_name(first.path))  # type: ignore[call-arg]  # of CSV
    with_header = file_format.reader_options(options).get("header") == "true"
    rows = _first_rows(ctx, first, file_format, plain)
    line = next(rows, [])
    found = [("" if one is None else str(one)) for one in line]
    looks_like_header = _folded(found) == _folded(names)
    if looks_like_header and not with_header:
        raise InvalidRequestError(
            "the first line of the CSV files that are there holds the columns' names: write with header=true, or use "
            "mode overwrite",
            file=first.path,
            there=found[:20],
        )
    if len(found) != len(names) or looks_like_header != with_header:
        raise InvalidRequestError(
            "the CSV files that are there have other columns, or were written with another header or separator: write "
            "the same, or use mode overwrite",
            file=first.path,
            there=found[:20],
            given=names[:20],
            header=with_header,
        )


def _first_rows(ctx: CommitContext, first: _File, file_format: FileFormat[Any], options: Any) -> Iterator[list[Any]]:
    try:
        with _opened(ctx, first) as source:
            found = file_format.read_schema(source, options)
        texts = pa.schema([(name, pa.string()) for name in found.names])
        with _opened(ctx, first) as source:
            batches = file_format.read_batches(source, texts, texts.names, None, options, None)
            for batch in batches:
                yield from (list(row.values()) for row in batch.slice(0, 1).to_pylist())
                return
    except CorruptDataError as error:
        raise InvalidRequestError(
            "the CSV files that are there do not parse with the options of this write: write with theirs, or use mode "
            "overwrite",
            file=first.path,
        ) from error
