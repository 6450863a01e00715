"""Let the files of a ``with fs.transaction`` block appear in one step."""

from __future__ import annotations

import threading
from typing import Any

from fsspec.transaction import Transaction

from holdfast.errors import InvalidRequestError
from holdfast.fs.namespace.files import WritingNamespaceFile
from holdfast.namespace import Namespace
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.operations.batch import MOST_INLINE_BYTES


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
