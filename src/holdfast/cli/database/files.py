"""Write tables to files, from one snapshot, with bounded memory; a file appears when it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holdfast.cli.database.forms import json_text, row_form
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.cli.fs.places import Entry, Sink
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.records import Database, Row, Value
from holdfast.records.snapshot import DatabaseSnapshot
from holdfast.runtime import SystemIds

if TYPE_CHECKING:
    from holdfast.commit import Progress

_BATCH_BYTES = 1024 * 1024
_EVERY_ROWS = 1000


@dataclass
class Exported:
    """What was written."""

    rows: int = 0
    size_bytes: int = 0


def export_table(database: Database, table: str, path: str, *, overwrite: bool, progress: Progress) -> Exported:
    """Write all rows of a table to a local file.

    Guarantee: the file has all rows of one snapshot. It appears under its name when it is complete, in one step.

    Raises:
        InvalidRequestError: the name of the file tells no format, or the file cannot be written.
        ConflictError: the file exists, and may not be replaced.
        HoldfastError: see `DatabaseSnapshot.scan`.

    Crash: a hidden file (``.holdfast-…``) is left beside the file.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in _WRITERS:
        raise InvalidRequestError("the ending of a file chooses its format: use .jsonl, .csv or .parquet", file=path)
    place = LocalPlace(SystemIds())
    if os.path.isdir(path):
        raise InvalidRequestError("this is a directory: name a file in it", file=path)
    if not overwrite and os.path.lexists(path):
        raise ConflictError("the file exists: replace it with --overwrite, or choose another name", file=path)
    with database.snapshot() as snapshot:
        snapshot.table(table)  # before there is a file
        sink = _Counting(place.create(path, Entry(path, is_directory=False), overwrite=overwrite, preserve=False))
        try:
            rows = _WRITERS[ending](snapshot, table, sink, progress)
            sink.close()
        finally:
            sink.discard()
    return Exported(rows, sink.size_bytes)


class _Counting:
    """A file that counts what is written to it."""

    def __init__(self, inner: Sink) -> None:
        self._inner = inner
        self.size_bytes = 0

    def write(self, data: bytes | memoryview, /) -> int:
        self.size_bytes += len(data)
        self._inner.write(bytes(data))
        return len(data)

    def close(self) -> None:
        self._inner.close()

    def discard(self) -> None:
        self._inner.discard()


def _write_lines(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress) -> int:
    number = waiting_bytes = 0
    lines: list[bytes] = []
    for row, columns in _told(snapshot.scan(table), "rows", 0, progress):
        number += 1
        lines.append(f"{json_text(row_form(row, columns))}\n".encode())
        waiting_bytes += len(lines[-1])
        if waiting_bytes > _BATCH_BYTES:
            sink.write(b"".join(lines))
            lines, waiting_bytes = [], 0
    sink.write(b"".join(lines))
    return number


def _write_columns(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress, name: str) -> int:
    """Read the table twice: what is in its columns, and then the values."""
    from holdfast.cli.database.columns import find_columns, iter_batches
    from holdfast.formats import get_format

    chosen = get_format(name)
    found = find_columns(_told(snapshot.scan(table), "columns", 0, progress), has_bytes=name != "csv")
    options = chosen.parse_options({"header": "true", "escape": '"'} if name == "csv" else {}).options
    writer = chosen.open_writer(sink, found.schema, options)
    for batch in iter_batches(found, _told(snapshot.scan(table), "rows", found.rows, progress)):
        try:
            writer.write(batch)
        except InvalidRequestError as error:  # its advice names an option that this command does not have
            what = error.message.partition(":")[0]
            raise InvalidRequestError(f"{what}: export to a .jsonl file", **error.variables) from error
    writer.close()
    return found.rows


def _told(
    rows: Iterator[tuple[Row, dict[str, Value]]], stage: str, total: int, progress: Progress
) -> Iterator[tuple[Row, dict[str, Value]]]:
    for number, row in enumerate(rows):
        if number % _EVERY_ROWS == 0:
            progress(stage, number, total)
        yield row


def _write_csv(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress) -> int:
    return _write_columns(snapshot, table, sink, progress, "csv")


def _write_parquet(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress) -> int:
    return _write_columns(snapshot, table, sink, progress, "parquet")


_Write: TypeAlias = "Callable[[DatabaseSnapshot, str, _Counting, Progress], int]"
_WRITERS: dict[str, _Write] = {".jsonl": _write_lines, ".csv": _write_csv, ".parquet": _write_parquet}
