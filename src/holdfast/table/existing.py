"""Inspect a directory without a log before the first rows are added to it.

The write is refused only if it would make the table unreadable or hide a column: if the files have another format,
another partitioning, or columns that do not fit. To record such files in the log as a table is called *adopting* them.
CSV and JSON files are not adopted: types inferred from their values would be a guess.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.commit import CommitContext, VisibleFile
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, FormatOptions, format_of_bytes, format_of_path, get_format
from holdfast.formats.columns.arrow_types import is_binary, is_list, is_string
from holdfast.formats.columns.conversion import transform_child_fields
from holdfast.formats.columns.types import check_unique_names
from holdfast.formats.schema_json import arrow_schema_from_json, arrow_schema_to_json
from holdfast.stores.base import ObjectInfo
from holdfast.table.contract import TableRecord
from holdfast.table.files import ListedFile, add_path_to_errors, file_opener
from holdfast.table.partition import parse_partition_path
from holdfast.table.partition_values import parse_partition_values
from holdfast.table.widening import AppendRules, MismatchError, make_fields_nullable, map_by_folded_name, merge_fields
from holdfast.wording import OR_OVERWRITE

Fields = list[Mapping[str, Any]]


def arrow_to_table_fields(schema: Iterable[pa.Field]) -> Fields:
    """Convert Arrow fields to the fields of a table's record (Spark's schema JSON).

    Raises:
        InvalidRequestError: Spark has no type for a column.
    """
    return list(make_fields_nullable([_table_field(column) for column in schema]))


def _table_field(column: pa.Field) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(arrow_schema_to_json(pa.schema([column])))["fields"][0]
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"Spark has no type for a column of the existing files: use another destination, {OR_OVERWRITE}",
            column=column.name,
            type=str(column.type),
        ) from error
    return found


def has_expected_arrow_types(schema: pa.Schema, fields: Fields) -> bool:
    """Check whether a file stores columns with the Arrow types that Holdfast would write for `fields`."""
    ours = arrow_schema_from_json(json.dumps({"type": "struct", "fields": fields}))
    return all(_stored_field(one).type == _stored_field(other).type for one, other in zip(schema, ours, strict=True))


def _stored_field(field: pa.Field) -> pa.Field:
    """Return the field with the type in which files store its values; it may differ from Arrow's type in memory."""
    kind = field.type.value_type if pat.is_dictionary(field.type) else field.type
    if is_string(kind):
        kind = pa.string()
    elif is_binary(kind):
        kind = pa.binary()
    elif is_list(kind):
        kind = pa.list_(_stored_field(kind.value_field.with_name("element")))
    else:
        kind = transform_child_fields(kind, _stored_field)
    return pa.field(field.name, kind, True)


_BITS = 256


class FileSetFingerprint:
    """A number that identifies a set of files by their paths, sizes and times, regardless of their order."""

    def __init__(self) -> None:
        self._sum = 0

    def iter_and_add_files(self, files: Iterable[tuple[str, ObjectInfo]]) -> Iterator[tuple[str, ObjectInfo]]:
        """Yield files unchanged, and add the non-empty ones that Holdfast did not write to the fingerprint."""
        for path, info in files:
            if info.size_bytes and file_owner(path) is None:
                text = f"{path}\0{info.size_bytes}\0{info.modified_at_s!r}"
                self._sum += int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), "big")
            yield path, info

    def text(self) -> str:
        """Return the fingerprint as a hexadecimal string, to be stored in a log record."""
        return f"{self._sum % 2**_BITS:064x}"


def foreign_fingerprint(files: Iterable[tuple[str, ObjectInfo]]) -> str:
    """Return the fingerprint of the files in a listing that Holdfast did not write; see `FileSetFingerprint`."""
    found = FileSetFingerprint()
    deque(found.iter_and_add_files(files), maxlen=0)
    return found.text()


def _read_columns(
    ctx: CommitContext,
    files: Iterable[ListedFile],
    file_format: FileFormat[Any],
    options: FormatOptions,
    given: TableRecord,
) -> tuple[Fields, bool]:
    """Return the columns of the files, then the partition columns, named like the directories and typed like the rows.

    Columns come in order of appearance, each with a type that fits the values of all files. Text files have the one
    column of the rows.

    Args:
        files: the existing files, none of them empty.
        options: the format options of the rows to write.
        given: the table that the rows alone would form, with its partition columns spelled like the directories.

    Returns:
        The columns, and whether all files store them as Holdfast would, so that all readers return the same values.

    Raises:
        InvalidRequestError: the files contradict each other; the error says which.
    """
    partition_by = {name.lower() for name in given.partition_by}
    fields = map_by_folded_name(given.fields)
    directories = [{**fields[name.lower()], "name": name} for name in given.partition_by]
    if file_format.is_text:
        mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
        return [*mine, *directories], False

    open_file = file_opener(ctx)

    def read_file_columns(file: ListedFile) -> tuple[ListedFile, Fields, bool]:
        with add_path_to_errors(file.path), open_file(file) as source:
            schema = file_format.read_schema(source, options)
            check_unique_names(schema)
            found = arrow_to_table_fields(schema)
            return file, found, has_expected_arrow_types(schema, found)

    plain = True
    rules = AppendRules(file_format=file_format, merge=True, written=True)
    columns: dict[str, tuple[Mapping[str, Any], ListedFile]] = {}  # a column, and the file from which its type comes
    for file, found, is_ours in ctx.runner.map(read_file_columns, files):
        plain = plain and is_ours
        for one in found:
            name = str(one["name"]).lower()
            if name in partition_by:
                continue
            known, first = columns.get(name, (one, file))
            try:
                (merged,) = merge_fields([known], [{**one, "name": known["name"]}], rules)
            except MismatchError as error:
                raise InvalidRequestError(
                    "two of the existing files have different types of a column: use another destination, "
                    f"{OR_OVERWRITE}",
                    column=error.path,
                    first=first.path,
                    first_type=error.known,
                    other=file.path,
                    other_type=error.given,
                ) from error
            columns[name] = (merged, first if merged == known else file)
    return [*(column for column, _ in columns.values()), *directories], plain


def infer_existing_table(
    ctx: CommitContext, given: TableRecord, schema: pa.Schema, options: FormatOptions, *, limit: int | None = None
) -> TableRecord | None:
    """Inspect the files at a destination that has no log, and return them as a table; None if it has no files.

    Args:
        given: the table that the rows to add would form.
        schema: the Arrow schema of the rows.
        options: the format options of the rows.
        limit: the maximum number of files to inspect; None to inspect all files.

    Raises:
        InvalidRequestError: the files are not a table, or the rows cannot be added to it; the error says why.
    """
    others = FileSetFingerprint()
    listed = others.iter_and_add_files(iter_visible(ctx.store, ctx.prefix))
    files = (VisibleFile(path, info.size_bytes, info.etag) for path, info in listed if info.size_bytes)
    first = next(files, None)
    if first is None:
        return None
    name = format_of_path(first.path) or _sniff_format(ctx, first)
    if name is None:
        raise InvalidRequestError(
            f"the destination holds files that are not a table: use another destination, {OR_OVERWRITE}",
            file=first.path,
        )
    file_format = get_format(name)
    directories = tuple(parse_partition_path(first.path))
    values: list[set[str | None]] = [set() for _ in directories]
    alike = _iter_checked_files(itertools.islice(itertools.chain((first,), files), limit), first, file_format, values)
    record = replace(given, file_format=file_format.name, partition_by=directories)
    if file_format.name != given.file_format or _fold_names(directories) != _fold_names(given.partition_by):
        deque(alike, maxlen=0)
        return record  # the contract refuses the write, and describes the destination
    if not file_format.tells_types:
        raise InvalidRequestError(
            f"the destination holds {name} files that no log describes, and they do not tell their types: load them "
            f"into a new table, use another destination, {OR_OVERWRITE}",
            file=first.path,
        )
    fields, plain = _read_columns(ctx, alike, file_format, options, replace(given, partition_by=directories))
    deque(alike, maxlen=0)
    _require_partition_values(values, directories, schema)
    return replace(record, fields=fields, adopted=others.text() if plain and limit is None else "")


def _fold_names(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _iter_checked_files(
    files: Iterable[VisibleFile], first: VisibleFile, file_format: FileFormat[Any], values: Sequence[set[str | None]]
) -> Iterator[VisibleFile]:
    """Yield the files, after checking that each has the format and the partition columns of the first one.

    The values in the directories' names are added to `values`, a set for each partition column.
    """
    directories = tuple(parse_partition_path(first.path))
    for file in files:
        found = parse_partition_path(file.path)
        if tuple(found) != directories:
            raise InvalidRequestError(
                "the destination's directories have different partition columns: use another destination, "
                f"{OR_OVERWRITE}",
                first=first.path,
                other=file.path,
            )
        for seen, value in zip(values, found.values(), strict=True):
            seen.add(value)
        if format_of_path(file.path) not in (None, file_format.name):
            raise InvalidRequestError(
                f"the destination holds files of different formats: use another destination, {OR_OVERWRITE}",
                first=first.path,
                other=file.path,
            )
        yield file


def _sniff_format(ctx: CommitContext, file: VisibleFile) -> str | None:
    """Detect the format from the first bytes, because Hive's files have no extension."""
    longest = max(len(one.magic) for one in FORMATS.values())
    return format_of_bytes(ctx.store.get(ctx.key(file.path), 0, min(longest, file.size_bytes), file.etag))


def _require_partition_values(values: Sequence[set[str | None]], directories: Sequence[str], schema: pa.Schema) -> None:
    """Check that the value of each directory fits the type of its column exactly; if not, readers would fail."""
    folded = {name.lower(): name for name in schema.names}
    for name, seen in zip(directories, values, strict=True):
        column = folded.get(name.lower())
        if column is None:
            continue
        parse_partition_values(sorted(value for value in seen if value is not None), schema.field(column).type, column)
