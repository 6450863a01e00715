"""The columns of files of others, once rows are to be added to them: those of all files, as one table has them.

Files that tell their columns are asked, each of them. Types in text files are a guess: there those of the rows hold, if
the files' values are of them.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.commit import CommitContext
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions
from holdfast.formats.arrow_schema import arrow_schema_of
from holdfast.formats.csv import header_names
from holdfast.formats.lines import codec_of_name
from holdfast.formats.spark_schema import spark_schema_json
from holdfast.table.contract import TableRecord
from holdfast.table.inferred import File, infer_files, look_at_files, naming
from holdfast.table.store_file import StoreFile
from holdfast.table.widening import MismatchError, Rules, fold, merge_fields, nullable_fields

__all__ = ["adopted_fields"]

_SELF_DESCRIBING = frozenset({"parquet", "orc", "avro", "arrow"})
_Fields = list[Mapping[str, Any]]


def adopted_fields(
    ctx: CommitContext,
    files: Iterable[File],
    file_format: FileFormat[Any],
    options: FormatOptions,
    given: TableRecord,
    *,
    most: int | None,
) -> _Fields:
    """The columns: those of the files, then the partition columns: names of the directories, types of the rows.

    Args:
        files: none of which is empty.
        options: with which the rows are written.
        given: what the rows look like, partitioned as the directories are.
        most: None to read all text files, else only the first one's first rows count.

    Raises:
        InvalidRequestError: the files do not agree with each other, or not with the rows; says which.
    """
    partition_by = {name.lower() for name in given.partition_by}
    mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
    given_fields = fold(given.fields)
    directories = [{**given_fields[name.lower()], "name": name} for name in given.partition_by]
    if file_format.name in _SELF_DESCRIBING:
        return [*_TypedFiles(ctx, file_format, options).columns(files, partition_by), *directories]
    if file_format.name in ("csv", "json"):
        looked_at = list(files if most is None else itertools.islice(files, 1))
        texts = _TextFiles(ctx, file_format, options, looked_at, whole=most is None)
        if file_format.name == "csv":
            texts.require_columns([str(one["name"]) for one in mine])
        else:
            mine = _with_theirs(mine, [one for one in texts.inferred() if one["name"].lower() not in partition_by])
        texts.require_values(replace(given, fields=mine))
    return [*mine, *directories]


def _fields_of(schema: pa.Schema) -> _Fields:
    return list(nullable_fields([_field_of(field) for field in schema]))


def _field_of(field: pa.Field) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(spark_schema_json(pa.schema([field])))["fields"][0]
    except InvalidRequestError as error:
        raise InvalidRequestError(
            "Spark has no type for a column of the files that are there: use another destination, or mode overwrite",
            column=field.name,
            type=str(field.type),
        ) from error
    return found


def _require_folded(fields: Sequence[Mapping[str, Any]]) -> None:
    if len(fold(fields)) < len(fields):
        raise InvalidRequestError(
            "the files that are there have columns whose names differ in case only: use another destination, or mode "
            "overwrite",
            columns=[str(one["name"]) for one in fields][:20],
        )


def _opener(ctx: CommitContext) -> Any:
    return lambda path, size_bytes: StoreFile(ctx.store, ctx.key(path), size_bytes)


# --- files that tell their columns ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Column:
    """A column and the file that its type is from."""

    field: Mapping[str, Any]
    file: File


@dataclass(frozen=True, slots=True)
class _TypedFiles:
    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions

    def columns(self, files: Iterable[File], partition_by: set[str]) -> _Fields:
        """Those of the first file, then further ones as they come; each of the type that holds all values."""

        def look(file: File, source: BinaryIO) -> tuple[File, _Fields]:
            fields = _fields_of(self.file_format.read_schema(source, self.options))
            _require_folded(fields)
            return file, fields

        columns: dict[str, _Column] = {}
        for file, fields in look_at_files(files, _opener(self.ctx), look, self.ctx.runner.map, footers=True):
            for field in fields:
                name = str(field["name"]).lower()
                if name not in partition_by:
                    new = _Column(field, file)
                    columns[name] = self._merged(columns[name], new) if name in columns else new
        return [column.field for column in columns.values()]

    def _merged(self, known: _Column, new: _Column) -> _Column:
        if {**new.field, "name": known.field["name"]} == known.field:
            return known
        rules = Rules(file_format=self.file_format.name, merge=True, written=True)
        try:
            field = merge_fields([known.field], [new.field], rules)[0]
        except MismatchError as error:
            if not self._has_rows(new.file):
                return known
            if not self._has_rows(known.file):
                return _Column({**new.field, "name": known.field["name"]}, new.file)
            raise InvalidRequestError(
                "two of the files that are there have different types of a column: use another destination, or mode "
                "overwrite",
                column=error.path,
                first=known.file.path,
                first_type=error.known,
                other=new.file.path,
                other_type=error.given,
            ) from error
        return known if field == known.field else _Column(field, new.file)

    def _has_rows(self, file: File) -> bool:
        """Whether there are values of the types that a file tells: a data frame without rows, say, has guessed ones."""
        with naming(file.path), _opener(self.ctx)(file.path, file.size_bytes) as source:
            schema = self.file_format.read_schema(source, self.options)
        with naming(file.path), _opener(self.ctx)(file.path, file.size_bytes) as source:
            batches = self.file_format.read_batches(source, schema, schema.names[:1], None, self.options, None)
            return any(batch.num_rows for batch in batches)


# --- text -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _TextFiles:
    """Files of CSV or JSON.

    Attributes:
        options: with which the rows are written.
        whole: whether to read the files to their end, or their first rows only.
    """

    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions
    files: Sequence[File]
    whole: bool

    def _options_of(self, path: str) -> Any:
        """The options with what the file's name tells; instants without a zone are a matter of each read."""
        texts: Any = self.options
        return replace(texts, codec=codec_of_name(path), time_zone=texts.time_zone or "UTC")

    def inferred(self) -> _Fields:
        """The columns that all values tell."""
        return _fields_of(
            infer_files(self.files, _opener(self.ctx), self.file_format, self._options_of, self.ctx.runner.map)
        )

    def require_values(self, table: TableRecord) -> None:
        """The files have to be readable with the table's types."""
        schema = arrow_schema_of(table.schema_json)

        def look(file: File, source: BinaryIO) -> None:
            options = self._options_of(file.path)
            try:
                batches = self.file_format.read_batches(source, schema, schema.names, None, options, None)
                deque(batches if self.whole else itertools.islice(batches, 1), maxlen=0)
            except (CorruptDataError, InvalidRequestError) as error:
                raise InvalidRequestError(
                    "the files that are there hold values that are not of the rows' types: cast the rows, use another "
                    "destination, or mode overwrite",
                    file=file.path,
                    reason=str(error),
                ) from error

        deque(look_at_files(self.files, _opener(self.ctx), look, self.ctx.runner.map), maxlen=0)

    def require_columns(self, names: Sequence[str]) -> None:
        """CSV's columns are told by position, and nothing but the first line tells whether there is a header.

        Files behind the first one may lack columns: these are null there.
        """
        with_header = self.file_format.reader_options(self.options).get("header") == "true"
        folded = [name.lower() for name in names]

        def look(file: File, source: BinaryIO) -> None:
            try:
                found = header_names(source, replace(self._options_of(file.path), header=True))
            except CorruptDataError as error:
                raise InvalidRequestError(
                    "the CSV files that are there do not parse with the options of this write: write with theirs, or "
                    "use mode overwrite",
                    file=file.path,
                ) from error
            here = [name.lower() for name in found]
            is_first = file is self.files[0]
            if with_header:
                fits = here == folded if is_first else len(set(here)) == len(here) and set(here) <= set(folded)
            else:
                fits = len(here) == len(folded) if is_first else len(here) <= len(folded)
                fits = fits and (not here or here != folded[: len(here)])
            if is_first and not with_header and here == folded:
                raise InvalidRequestError(
                    "the first line of the CSV files that are there holds the columns' names: write with header=true, "
                    "or use mode overwrite",
                    file=file.path,
                    there=found[:20],
                )
            if not fits:
                raise InvalidRequestError(
                    "the CSV files that are there have other columns, or were written with another header or "
                    "separator: write the same, or use mode overwrite",
                    file=file.path,
                    there=found[:20],
                    given=list(names[:20]),
                    header=with_header,
                )

        deque(look_at_files(self.files, _opener(self.ctx), look, self.ctx.runner.map), maxlen=0)


def _with_theirs(mine: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> _Fields:
    """The rows' fields as the files of JSON spell them, then those of the files that the rows lack."""
    _require_folded(theirs)
    found = fold(theirs)
    fields: _Fields = []
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
