"""Define the file objects of the filesystem, and its transaction, which publishes files together.

Text and compression are layers around a file; none of them may publish a file whose block has failed.
"""

from __future__ import annotations

import inspect
import io
import sys
import threading
from collections.abc import Callable
from opcode import opmap
from types import FrameType
from typing import Any, NoReturn

from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile
from fsspec.transaction import Transaction

from holdfast.commit.text_file import SequentialFile, TextFile
from holdfast.errors import InvalidRequestError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import FeatureUnsupportedError, PathExistsError, PathNotFoundError
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import MOST_INLINE_BYTES, FileWriter
from holdfast.runtime.process import run_deferred_finalizers, run_or_defer_finalizer

_APPEND_ATTEMPTS = 10
_LEAVES_WITH_ERROR = opmap.get("WITH_EXCEPT_START")


def is_closed_by_failure() -> bool:
    """Return whether a failed ``with`` block closes the file; call this in the file's method `close`.

    The result is True if an ``__exit__`` that received an error called `close`, perhaps through other `close` methods,
    or if a failed ``with`` statement called it through an ``__exit__`` that is not written in Python. It is False in
    any other case, even in an ``except`` or ``finally`` clause: there the file may be complete and must be kept.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "close":
        frame = frame.f_back
    if frame is None:
        return False
    if frame.f_code.co_name == "__exit__":
        return _is_called_with_exception(frame)
    return frame.f_code.co_code[frame.f_lasti] == _LEAVES_WITH_ERROR


def _is_called_with_exception(frame: FrameType) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(
        isinstance(one, BaseException) for value in given for one in (value if isinstance(value, tuple) else (value,))
    )


class WritingText(TextFile):
    """A text file over a `WritingNamespaceFile`. If its last reference is dropped while it is open, the file is
    discarded.
    """

    def __del__(self) -> None:
        if not self.closed and isinstance(self.buffer, WritingNamespaceFile):
            run_or_defer_finalizer(self.buffer.discard)


def open_binary_or_text(open_binary: Callable[..., Any], path: str, mode: str, options: dict[str, Any]) -> Any:
    """Open a file, binary or text, so that it is discarded and not published if its ``with`` block fails.

    Args:
        open_binary: fsspec's own `open`, which knows nothing about discarding.
        options: what the caller gave besides the mode.

    Raises:
        FeatureUnsupportedError: the file would be compressed while it is written.
    """
    run_deferred_finalizers()
    text = {name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options}
    if "r" not in mode and get_compression(path, options.pop("compression", None)) is not None:
        raise FeatureUnsupportedError(
            "a file is compressed by its writer: open it without compression, and wrap it, as in gzip.open(file, 'wb')",
            path=path,
        )
    file = open_binary(path, mode if "b" in mode else mode.replace("t", "") + "b", **options)
    return file if "b" in mode else WritingText(file, **text)


# --- files of a namespace ---------------------------------------------------------------------------------------------
class ReadingNamespaceFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec ships no types
    """A file opened for reading: its content at the time of opening; uses fsspec's caches. Unpickling it opens the path
    again.
    """

    def __init__(self, fs: Any, path: str, reader: FileReader, details: dict[str, Any], **options: Any) -> None:
        self._reader = reader
        super().__init__(fs, path, "rb", **{**options, "size": reader.size})
        self.details = details

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._reader.read(start, max(end - start, 0))

    def __reduce__(self) -> Any:
        return _reopen_file, (self.fs, self.path, self.blocksize, self.cache.name, self.loc)


def _reopen_file(fs: Any, path: str, block_size: int, cache_type: str, position: int) -> Any:
    file = fs.open(path, "rb", block_size=block_size, cache_type=cache_type)
    file.seek(position)
    return file


class WritingNamespaceFile(SequentialFile, io.RawIOBase):
    """A file opened for writing from start to end.

    Guarantee: the file appears, complete, when `close` returns; if it waits for a transaction, when that ends. Leaving
    a ``with`` block with an error discards the file, and so does dropping the last reference to an open file. Both hold
    also if the block, or the last reference, is that of an object around this one, such as `fsspec.OpenFile` or a text
    file, which only calls `close`.

    Attributes:
        namespace, writer: the file's namespace, and the namespace's writer for the file.

    Args:
        prepare: called by `close` instead of publishing the file, if it waits for `commit`.
    """

    _is_dropped = False
    """Whether `close` has to discard the file."""

    def __init__(
        self,
        fs: Any,
        path: str,
        mode: str,
        namespace: Namespace,
        writer: FileWriter,
        prepare: Callable[[FileWriter], object] | None,
    ) -> None:
        super().__init__()
        self.fs = fs
        self.namespace = namespace
        self.path = path
        self.mode = mode
        self.autocommit = prepare is None
        self.writer = writer
        self._prepare = prepare

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.writer.position

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        return self.writer.write(data)

    def read(self, *_args: Any) -> NoReturn:
        raise io.UnsupportedOperation("this file is only written: close it, then open it to read it")

    def close(self) -> None:
        if self.closed:
            return
        if self._is_dropped or is_closed_by_failure():
            run_or_defer_finalizer(self.discard)
            return
        try:
            if self._prepare is None:
                self.writer.close()
            else:
                self._prepare(self.writer)
        except BaseException:
            self.discard()
            raise
        super().close()

    def commit(self) -> None:
        """Publish a closed file that waits for its transaction. fsspec's transactions call this."""
        self.close()
        self.writer.close()

    def discard(self) -> None:
        """Discard the file, unless it is published; also if it is closed and waits for its transaction."""
        self.writer.discard()
        super().close()

    def _dealloc_warn(self, _source: object) -> None:
        """Note that the text or the buffer around this file is dropped; Python calls this just before its `close`."""
        self._is_dropped = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if vars(self):  # if not, __init__ failed
            run_or_defer_finalizer(self.discard)


def open_append(namespace: Namespace, path: str, permission: int, *, waits: bool) -> FileWriter:
    """Open a file for appending under a lease; create it if it does not exist.

    Args:
        permission: the mode of a new file.
        waits: whether a new file stays hidden until its transaction publishes it.

    Raises:
        PathExistsError: the file is created and deleted again and again. Repeat later.
    """
    for _ in range(_APPEND_ATTEMPTS):
        try:
            return namespace.append(path)
        except PathNotFoundError:
            pass
        try:
            create = namespace.create if waits else namespace.create_with_lease
            return create(path, mode=permission)
        except PathExistsError:
            continue  # another process has just created it
    raise PathExistsError("the file is created and deleted again and again: repeat later", path=path)


class NamespaceTransaction(Transaction):  # type: ignore[misc]  # fsspec ships no types
    """An fsspec transaction: the files that are opened for writing in it are published together when it completes.

    Guarantee: when it completes, the files of one namespace appear in one step: all of them, or none if one of them
    cannot be published. Files in several namespaces appear in one step for each. A block that ends with an error
    discards all files. Everything but the files takes effect at once: new directories, renames, deletions.
    """

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self.fs: Any = fs
        self._lock = threading.Lock()
        self._inline_bytes = 0

    def start(self) -> None:
        """Start the transaction: files that are opened for writing from now on wait for `complete`.

        Raises:
            InvalidRequestError: the filesystem has a transaction already, which goes on; or this one has ended.
        """
        if self.fs is None:
            raise InvalidRequestError("the transaction has ended: take a new one from fs.transaction")
        if self.fs._intrans:
            raise InvalidRequestError(
                "this filesystem has a transaction already, and transactions do not nest: remove the inner one, or "
                "give it a filesystem of its own, with skip_instance_cache=True"
            )
        super().start()

    def prepare(self, file: FileWriter) -> None:
        """Make the content of a written file durable; small files go into the database, up to the size limit of one
        commit.
        """
        with self._lock:
            inline = self._inline_bytes + file.written_bytes <= MOST_INLINE_BYTES
            if inline and file.is_small:
                self._inline_bytes += file.written_bytes
        file.prepare(inline=inline)

    def complete(self, commit: bool = True) -> None:
        """Publish all files of the transaction; with `commit` False, discard them.

        Raises:
            InvalidRequestError: a file is not closed, or was opened twice; none appears.
            HoldfastError: a file cannot be published: see `Namespace.publish_many`.
        """
        files: list[WritingNamespaceFile] = list(self.files)
        try:
            if commit:
                self._publish_files(files)
        finally:
            for file in files:
                file.discard()  # has no effect on those that were published
            self.files.clear()
            self._inline_bytes = 0
            self.fs._intrans = False
            self.fs._transaction = None

    def _publish_files(self, files: list[WritingNamespaceFile]) -> None:
        steps: dict[int, tuple[Namespace, dict[str, FileWriter]]] = {}
        for file in files:
            if not file.closed:
                raise InvalidRequestError(
                    "a file of the transaction is still open: close it before the end", path=file.path
                )
            if not file.writer.is_prepared:
                continue  # it was discarded
            _, writers = steps.setdefault(id(file.namespace), (file.namespace, {}))
            if file.path in writers and file.mode != "wb":
                raise InvalidRequestError(
                    "a file was written twice in one transaction: write it once", path=file.path, mode=file.mode
                )
            writers[file.path] = file.writer  # the last one replaces the others, as it would without a transaction
        for namespace, writers in steps.values():
            namespace.publish_many(list(writers.values()))
