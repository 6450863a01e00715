"""Inspect a directory without a log before the first rows are added to it.

The write is refused only if it would make the table unreadable or hide a column: if the files have another format,
another partitioning, or columns that do not fit (`holdfast.table.adopted`).
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.commit import CommitContext, VisibleFile
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, FormatOptions, format_of_bytes, format_of_path, get_format
from holdfast.formats.lines.values import is_rounded
from holdfast.table.adopted import adopted_columns
from holdfast.table.contract import TableRecord
from holdfast.table.fingerprint import Fingerprint
from holdfast.table.partition import parse_partition_path, segment
from holdfast.table.values import parse_float, parse_values
from holdfast.wording import OR_OVERWRITE


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
