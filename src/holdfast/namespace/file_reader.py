"""Read files of the namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.frames import content_of, stored_range
from holdfast.namespace.inode import Extent, Inode
from holdfast.namespace.keys import data_key
from holdfast.namespace.paths import NsPath
from holdfast.namespace.status import FileStatus, status_of
from holdfast.transactions.base import Backend


class FileReader:
    """The content of a file as it was when it was opened: later writes do not change it.

    A deleted file stays readable for the safety age of the namespace; a small one as long as the reader exists. Only a
    file of very many small blobs may be lost at once.

    Guarantee: what is read are the bytes that were written; damaged ones are an error.

    Args:
        path: the path under which it was opened, for messages.
        loaded: what the records of small blobs have, by name.
    """

    def __init__(self, store: Backend, blobs: BlobStore, path: str, inode: Inode, loaded: Mapping[str, bytes]) -> None:
        self._store = store
        self._blobs = blobs
        self._path = path
        self._loaded = loaded
        self.inode = inode
        self.size = inode.size

    def status(self, path: str) -> FileStatus:
        """Describe the file as it was when it was opened.

        Args:
            path: the path under which it was opened.
        """
        return status_of(NsPath.parse(path), self.inode)

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `start`, or fewer if the file ends earlier.

        Raises:
            InvalidRequestError: `start` or `length` is negative.
            CorruptDataError: a blob is missing, damaged or too short: see the message. Other ranges may be readable.
        """
        return b"".join(self.chunks(start, length, chunk_bytes=max(self.size, 1)))

    def chunks(
        self, start: int = 0, length: int | None = None, *, chunk_bytes: int = 8 * 1024 * 1024
    ) -> Iterator[bytes]:
        """Yield the bytes that `read` would return, in pieces of at most `chunk_bytes`."""
        if start < 0 or (length is not None and length < 0):
            raise InvalidRequestError("a range of a file begins at 0 and has no negative length", start=start)
        end = self.size if length is None else min(self.size, start + length)
        position = 0
        for extent in self.inode.extents:
            first, last = max(start - position, 0), min(end - position, extent.length)
            while first < last:
                count = min(chunk_bytes, last - first)
                yield self._piece(extent, first, count)
                first += count
            position += extent.length

    def _piece(self, extent: Extent, start: int, length: int) -> bytes:
        try:
            if extent.inline:
                return self._small_piece(extent, start, length)
            return self._blobs.read(extent.blob, start, length)
        except CorruptDataError as error:
            raise CorruptDataError(error.message, path=self._path, **error.variables) from error

    def _small_piece(self, extent: Extent, start: int, length: int) -> bytes:
        value = self._loaded.get(extent.blob)
        if value is None:
            key = data_key(extent.blob)
            record = self._store.get_many([key]).get(key)
            if record is None:
                raise CorruptDataError(
                    "the bytes of the file are missing: open it again, since it may have been deleted or replaced; if "
                    "that fails, run holdfast namespace fsck",
                    blob=extent.blob,
                )
            value = record.value
        first, count = stored_range(start, length)
        return content_of(extent.blob, start, length, value[first : first + count])
