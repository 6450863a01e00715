"""Read ranges of many files, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.namespace.file_reader import FileReader
from holdfast.runtime import Runner, SerialRunner


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a file; the positions are those of Python's slices."""

    path: str
    start: int | None
    end: int | None


def read_slice(reader: FileReader, start: int | None, end: int | None) -> bytes:
    """Read a part of a file; the positions are those of Python's slices."""
    first, last, _ = slice(start, end).indices(reader.size)
    return reader.read(first, max(last - first, 0))


def read_ranges(
    open_file: Callable[[str], FileReader], ranges: list[Range], runner: Runner, *, keep_errors: bool
) -> list[Any]:
    """Return the bytes of each range. All ranges of one file are from the same version of it.

    Args:
        keep_errors: whether an error takes the place of the bytes that it concerns, instead of being raised.
    """

    def attempted(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except HoldfastError as error:
            if not keep_errors:
                raise
            return error

    def read(one: Range) -> Any:
        reader = readers[one.path]
        return attempted(lambda: read_slice(reader, one.start, one.end)) if isinstance(reader, FileReader) else reader

    if len(ranges) < 2:
        runner = SerialRunner()
    paths = list(dict.fromkeys(one.path for one in ranges))
    readers = dict(zip(paths, runner.map(lambda path: attempted(lambda: open_file(path)), paths), strict=True))
    return list(runner.map(read, ranges))
