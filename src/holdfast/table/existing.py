"""Inspect a directory without a log before the first rows are added to it.

The write is refused only if it would make the table unreadable or hide a column: if the files have another format,
another partitioning, or columns that do not fit. To record such files in the log as a table is called *adopting* them.
If their format describes its columns, all files are inspected. Types inferred from text files would be a guess, so
text files get the types of the new rows, provided that their values fit these types (`table.existing_text`).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pat

from holdfast.commit import CommitContext, VisibleFile
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, FormatOptions, format_of_bytes, format_of_path, get_format
from holdfast.formats.columns.types import children
from holdfast.formats.lines.values import is_rounded
from holdfast.formats.spark.texts import parse_float
from holdfast.stores.base import ObjectInfo
from holdfast.table.contract import TableRecord
from holdfast.table.existing_fields import Fields, fields_of, is_plain, require_folded
from holdfast.table.existing_text import TextFiles, merge_json_fields
from holdfast.table.files import File, map_files, opener
from holdfast.table.partition import parse_partition_path, segment
from holdfast.table.partition_values import parse_values
from holdfast.table.widening import MismatchError, Rules, fold, merge_fields
from holdfast.wording import OR_OVERWRITE

_BITS = 256


class Fingerprint:
    """A number that identifies a set of files by their paths, sizes and times, regardless of their order."""

    def __init__(self) -> None:
        self._sum = 0

    def passing(self, files: Iterable[tuple[str, ObjectInfo]]) -> Iterator[tuple[str, ObjectInfo]]:
        """Yield the files unchanged, and add to the set those that are not empty and that Holdfast did not write."""
        for path, info in files:
            if info.size_bytes and file_owner(path) is None:
                text = f"{path}\0{info.size_bytes}\0{info.modified_at_s!r}"
                self._sum += int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), "big")
            yield path, info

    def text(self) -> str:
        """Return the number as a hexadecimal string, to be stored in a log record."""
        return f"{self._sum % 2**_BITS:064x}"


def fingerprint(files: Iterable[tuple[str, ObjectInfo]]) -> str:
    """Return the fingerprint of the files in a complete listing."""
    found = Fingerprint()
    deque(found.passing(files), maxlen=0)
    return found.text()


@dataclass(frozen=True, slots=True)
class TypedFiles:
    """Existing Parquet, ORC, Avro or Arrow files.

    Attributes:
        options: the format options of the rows to write.
        odd: the first files that store a column differently from Holdfast, such as in nanoseconds.
    """

    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions
    odd: list[str] = field(default_factory=list)

    def columns(self, files: Iterable[File], partition_by: set[str]) -> Fields:
        """Return the columns of all files in order of appearance, each with a type that fits all files' values."""

        def look(file: File, source: BinaryIO) -> tuple[File, Fields]:
            schema = self.file_format.read_schema(source, self.options)
            require_folded(schema)
            fields = fields_of(schema)
            if not self.odd and not is_plain(schema, fields):
                self.odd.append(file.path)
            return file, fields

        rules = Rules(file_format=self.file_format, merge=True, written=True)
        columns: dict[str, tuple[Mapping[str, Any], File]] = {}  # a column, and the file from which its type comes
        for file, fields in map_files(files, opener(self.ctx), look, self.ctx.runner.map, footers=True):
            for one in fields:
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
        return [column for column, _ in columns.values()]


@dataclass(frozen=True, slots=True)
class Adopted:
    """The columns of the existing files, as the table will record them.

    Attributes:
        fields: the columns.
        plain: whether all files store values as Holdfast would, so that all readers return the same values from them.
    """

    fields: Fields
    plain: bool


def adopted_columns(
    ctx: CommitContext,
    files: Iterable[File],
    file_format: FileFormat[Any],
    options: FormatOptions,
    given: TableRecord,
    *,
    limit: int | None,
) -> Adopted:
    """Return the columns of the files, then the partition columns, named like the directories and typed like the rows.

    Args:
        files: the existing files, none of them empty.
        options: the format options of the rows to write.
        given: the table that the rows alone would form, with its partition columns spelled like the directories.
        limit: None to read all text files completely; with any other value, only the first rows of the first text file
            are read.

    Raises:
        InvalidRequestError: the files contradict each other or the rows; the error says which.
    """
    partition_by = {name.lower() for name in given.partition_by}
    mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
    given_fields = fold(given.fields)
    directories = [{**given_fields[name.lower()], "name": name} for name in given.partition_by]
    if not file_format.is_text:
        typed = TypedFiles(ctx, file_format, options)
        return Adopted([*typed.columns(files, partition_by), *directories], plain=not typed.odd)
    if file_format.inference is not None:
        looked_at = list(files if limit is None else itertools.islice(files, 1))
        texts = TextFiles(ctx, file_format, options, looked_at, whole=limit is None)
        if file_format.by_position:
            names = texts.require_columns([str(one["name"]) for one in mine])
            mine = [{**one, "name": name} for one, name in zip(mine, names, strict=True)]
        else:
            mine = merge_json_fields(
                mine, [one for one in children(texts.rows_type()) if one.name.lower() not in partition_by]
            )
        texts.require_values(replace(given, fields=mine))
    return Adopted([*mine, *directories], plain=False)  # Spark's reader may read others' text files differently


def find_existing(
    ctx: CommitContext, given: TableRecord, schema: pa.Schema, options: FormatOptions, *, limit: int | None = None
) -> TableRecord | None:
    """Return the table that the files at a destination without a log form, or None if there are none.

    Args:
        given: the table that the rows to add would form.
        schema: the Arrow schema of the rows.
        options: the format options of the rows; the existing CSV files are assumed to have the same.
        limit: the maximum number of files to inspect; only one is inspected if the format does not describe its
            columns. None to inspect all files.

    Raises:
        InvalidRequestError: the files are not a table, or the rows cannot be added to it; the error says why.
    """
    others = Fingerprint()
    listed = others.passing(iter_visible(ctx.store, ctx.prefix))
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
    alike = _alike(itertools.islice(itertools.chain((first,), files), limit), first, file_format, values)
    record = replace(given, file_format=file_format.name, partition_by=directories)
    if file_format.name != given.file_format or _folded(directories) != _folded(given.partition_by):
        deque(alike, maxlen=0)
        return record  # the contract refuses the write, and describes the destination
    found = adopted_columns(ctx, alike, file_format, options, replace(given, partition_by=directories), limit=limit)
    deque(alike, maxlen=0)
    _require_values(values, directories, given, schema)
    return replace(record, fields=found.fields, adopted=others.text() if found.plain and limit is None else "")


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _alike(
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


def _require_values(
    values: Sequence[set[str | None]], directories: Sequence[str], given: TableRecord, schema: pa.Schema
) -> None:
    """Check that the value of each directory fits the type of its column exactly; if not, readers would fail."""
    folded = {name.lower(): name for name in schema.names}
    for name, seen in zip(directories, values, strict=True):
        column = folded.get(name.lower())
        if column is None:
            continue
        kind = schema.field(column).type
        texts = sorted(value for value in seen if value is not None)
        parse_values(texts, kind, given.time_zone or "UTC", column)
        for text in texts:
            if _is_cut(text, kind):
                raise InvalidRequestError(
                    "the existing files hold values that do not fit the rows' types: cast the rows, use another "
                    f"destination, {OR_OVERWRITE}",
                    directory=segment(name, text),
                    type=str(kind),
                    reason="the type would round the value",
                )


_BEYOND_MICROSECONDS = re.compile(r"\.[0-9]{6}[0-9]*[1-9]")


def _is_cut(text: str, kind: pa.DataType) -> bool:
    """Check whether the type would change the value of a directory; only floats and timestamps can."""
    if pat.is_floating(kind):
        number = parse_float(text)
        assert number is not None, "the value was parsed before"
        return is_rounded(text, number, single=bool(pat.is_float32(kind)))
    return bool(pat.is_timestamp(kind) and _BEYOND_MICROSECONDS.search(text))
