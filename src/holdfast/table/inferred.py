"""The schema of files that do not tell theirs: inferred from every value of every file, as stock Spark does it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol, TypeVar, cast

import pyarrow as pa

from holdfast.commit import CommitContext
from holdfast.errors import CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.formats import FileFormat, FormatOptions
from holdfast.table.store_file import StoreFile

__all__ = ["File", "ForEach", "infer_files", "look_at_files", "naming", "opener", "what_files_tell"]

T = TypeVar("T")
R = TypeVar("R")

_LARGE_BYTES = 1024 * 1024
_LARGE_AT_ONCE = 4  # of each of these some dozen megabytes are in memory, of smaller ones less than that


class ForEach(Protocol):
    """`map`, or that of a `holdfast.runtime.runner.Runner`."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]: ...


class File(Protocol):
    """A file as a listing shows it."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def etag(self) -> str: ...


def opener(ctx: CommitContext) -> Callable[[File], BinaryIO]:
    """A function that opens a file of the destination: the one that was listed, and no other of its name."""

    def open_file(file: File) -> BinaryIO:
        return cast(BinaryIO, StoreFile(ctx.store, ctx.key(file.path), file.size_bytes, file.etag))

    return open_file


def infer_files(
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    file_format: FileFormat[Any],
    options_of: Callable[[str], FormatOptions],
    each: ForEach,
) -> pa.Schema:
    """The schema that holds the values of all files.

    Args:
        files: none of which is empty.
        options_of: the format's options for the file at a path.
        each: runs a function over the files, many at a time if it may.

    Raises:
        CorruptDataError: a file is not of the format.
    """
    assert file_format.inference is not None, "the caller asks formats without types only"
    return file_format.inference.schema(what_files_tell(files, open_file, file_format, options_of, each))


def what_files_tell(
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    file_format: FileFormat[Any],
    options_of: Callable[[str], FormatOptions],
    each: ForEach,
) -> Any:
    """Likewise, before the format's inference makes a schema of it: nulls have no type yet."""
    inference = file_format.inference
    assert inference is not None, "the caller asks formats without types only"
    found: Any = None
    looked = look_at_files(
        files, open_file, lambda file, source: inference.inspect(source, options_of(file.path)), each
    )
    for number, seen in enumerate(looked):
        found = inference.merge(found, seen) if number else seen
    return found


def look_at_files(
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    look: Callable[[File, BinaryIO], R],
    each: ForEach,
    *,
    footers: bool = False,
) -> Iterator[R]:
    """What a function sees in each file, in the files' order.

    Args:
        footers: whether little is read of a large file, too; else few large ones are open at once.
    """
    large = threading.Semaphore(_LARGE_AT_ONCE)

    def opened(file: File) -> R:
        turn = large if file.size_bytes > _LARGE_BYTES and not footers else contextlib.nullcontext()
        with turn, naming(file.path), open_file(file) as source:
            return look(file, source)

    return each(opened, files)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """An error in what a file holds says in which file that is."""
    try:
        yield
    except (CorruptDataError, InvalidRequestError, UnsupportedError) as error:
        if "file" not in error.variables:
            raise type(error)(error.message, **error.variables, file=path) from error
        raise
