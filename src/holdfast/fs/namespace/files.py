"""Provide the file objects of a namespace, and let the files of a ``with fs.transaction`` block appear in one step."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from fsspec.spec import AbstractBufferedFile
from fsspec.transaction import Transaction

from holdfast.errors import InvalidRequestError
from holdfast.fs.files import NewFile, is_closed_by_failure
from holdfast.namespace import Namespace
from holdfast.namespace.errors import PathExistsError, PathNotFoundError
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import MOST_INLINE_BYTES, FileWriter
from holdfast.runtime.process import finalize

_APPEND_ATTEMPTS = 10


class ReadingNamespaceFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec ships no types
    """A file as it was when it was opened, read in ranges with fsspec's caches. A pickled one is opened anew."""

    def __init__(self, fs: Any, path: str, reader: FileReader, details: dict[str, Any], **options: Any) -> None:
        self._reader = reader
        super().__init__(fs, path, "rb", **{**options, "size": reader.size})
        self.details = details

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._reader.read(start, max(end - start, 0))

    def __reduce__(self) -> Any:
        return _reopened, (self.fs, self.path, self.blocksize, self.cache.name, self.loc)


def _reopened(fs: Any, path: str, block_size: int, cache_type: str, position: int) -> Any:
    file = fs.open(path, "rb", block_size=block_size, cache_type=cache_type)
    file.seek(position)
    return file


class WritingNamespaceFile(NewFile, io.RawIOBase):
    """A file that is written from start to end.

    Guarantee: the file appears, complete, when `close` returns; if it waits for a transaction, when that ends. Leaving
    a ``with`` block with an error discards the file, and so does dropping the last reference to an open file.

    Attributes:
        namespace, writer: the file as its namespace knows it.

    Args:
        prepare: called by `close` instead of publishing the file, if it waits for `commit`.
    """

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
            finalize(self.discard)
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
        """Publish a file that waits for it; fsspec's transactions call this."""
        self.close()
        self.writer.close()

    def discard(self) -> None:
        """Discard the file, even if it is closed and waits for `commit`."""
        self.writer.discard()
        super().close()


def open_append(namespace: Namespace, path: str, permission: int, *, waits: bool) -> FileWriter:
    """Open a file to append to it, or a new one; while the file waits for its transaction, a new one stays hidden."""
    for _ in range(_APPEND_ATTEMPTS):
        try:
            return namespace.append(path)
        except PathNotFoundError:
            pass
        try:
            create = namespace.create if waits else namespace.create_with_lease
            return create(path, mode=permission)
        except PathExistsError:
            continue  # somebody has just created it
    raise PathExistsError("the file is created and deleted again and again: repeat later", path=path)


class NamespaceTransaction(Transaction):  # type: ignore[misc]  # fsspec ships no types
    """The files that were opened for writing since the transaction began.

    Guarantee: when it completes, the files of one namespace appear in one step: all of them, or none if one of them is
    impossible. Files in several namespaces appear in one step for each. A block that ends with an error discards all
    files. Everything but the files takes effect at once: new directories, renames, deletions.
    """

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self.fs: Any = fs
        self._lock = threading.Lock()
        self._inline_bytes = 0

    def start(self) -> None:
        """Begin: files that are opened for writing from now on wait for `complete`.

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
        """Make the content of a file durable. Small files go into the database, as long as one step can take them."""
        with self._lock:
            inline = self._inline_bytes + file.written_bytes <= MOST_INLINE_BYTES
            if inline and file.is_small:
                self._inline_bytes += file.written_bytes
        file.prepare(inline=inline)

    def complete(self, commit: bool = True) -> None:
        """Publish all files, or discard them.

        Raises:
            InvalidRequestError: a file is not closed, or was opened twice; none appears.
            HoldfastError: a file is impossible: see `Namespace.publish_many`.
        """
        files: list[WritingNamespaceFile] = list(self.files)
        try:
            if commit:
                self._publish(files)
        finally:
            for file in files:
                file.discard()  # has no effect on those that were published
            self.files.clear()
            self._inline_bytes = 0
            self.fs._intrans = False
            self.fs._transaction = None

    def _publish(self, files: list[WritingNamespaceFile]) -> None:
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
