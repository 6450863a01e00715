"""Infer the schema of files that do not contain one, from all values of all files, like stock Spark."""

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

T = TypeVar("T")
R = TypeVar("R")

_LARGE_BYTES = 1024 * 1024
_LARGE_AT_ONCE = 4  # each of these takes some dozen megabytes of memory; smaller files take less


class ForEach(Protocol):
    """Apply a function to each item: Python's `map`, or the concurrent `map` of a `holdfast.runtime.threads.Runner`."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]: ...


class File(Protocol):
    """A file as a listing returns it."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def etag(self) -> str: ...


def opener(ctx: CommitContext) -> Callable[[File], BinaryIO]:
    """Return a function that opens a listed file; its reads fail if the object was replaced after the listing."""

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
    """Infer a schema that can represent the values of all files.

    Args:
        files: the files, none of them empty.
        options_of: returns the format's options for the file at a path.
        each: applies a function to the files, concurrently if it can.

    Raises:
        CorruptDataError: a file does not have the format.
    """
    assert file_format.inference is not None, "only called for formats without types"
    return file_format.inference.schema(infer_types(files, open_file, file_format, options_of, each))


def infer_types(
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    file_format: FileFormat[Any],
    options_of: Callable[[str], FormatOptions],
    each: ForEach,
) -> Any:
    """Infer the types of all files, as findings that the format's `Inference` merges and turns into a schema."""
    inference = file_format.inference
    assert inference is not None, "only called for formats without types"
    found: Any = None
    looked = map_files(files, open_file, lambda file, source: inference.inspect(source, options_of(file.path)), each)
    for number, seen in enumerate(looked):
        found = inference.merge(found, seen) if number else seen
    return found


def map_files(
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    look: Callable[[File, BinaryIO], R],
    each: ForEach,
    *,
    footers: bool = False,
) -> Iterator[R]:
    """Apply a function to each opened file, and yield the results in the files' order.

    Args:
        footers: whether the function reads only a small part of each file, even of a large one. If it reads more, only
            a few large files are open at the same time.
    """
    large = threading.Semaphore(_LARGE_AT_ONCE)

    def opened(file: File) -> R:
        turn = large if file.size_bytes > _LARGE_BYTES and not footers else contextlib.nullcontext()
        with turn, naming_file(file.path), open_file(file) as source:
            return look(file, source)

    return each(opened, files)


@contextlib.contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Add the file's path to errors about a file's content."""

    try:
        yield
    except (CorruptDataError, InvalidRequestError, UnsupportedError) as error:
        if "file" not in error.variables:
            raise type(error)(error.message, **error.variables, file=path) from error
        raise
