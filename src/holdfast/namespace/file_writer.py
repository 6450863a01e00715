"""Write a file of the namespace from start to end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from holdfast.errors import InvalidRequestError
from holdfast.namespace.blobs import BlobStore, BlobWriter
from holdfast.namespace.inode import Extent, Inode

__all__ = ["FileWriter", "Publication"]

Publication = Callable[[tuple[Extent, ...], dict[str, bytes], bool], Inode]
"""Called with new extents, the bytes of small blobs by name, and whether the file is complete; returns the inode."""


class FileWriter:
    """A file that is being written.

    Guarantee: `close` makes the content durable, then publishes it in one transaction. A writer that is discarded, or
    that dies, publishes nothing but what `sync` has published.

    Args:
        file_id: what the names of the blobs begin with.
        inline_bytes: content up to this size goes into the database.
        publish: publishes what was written since the last call.
        renew: called from time to time while bytes come in; for a writer with a lease, it renews the lease.
    """

    def __init__(
        self,
        blobs: BlobStore,
        file_id: int,
        *,
        inline_bytes: int,
        publish: Publication,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        self._blobs = blobs
        self._file_id = file_id
        self._inline_bytes = inline_bytes
        self._publish = publish
        self._renew = renew
        self._small = bytearray()
        self._blob: BlobWriter | None = None
        self._is_open = True
        self.written_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes; return their number.

        Raises:
            InvalidRequestError: the file is closed.
        """
        if not self._is_open:
            raise InvalidRequestError("the file is closed: open it again to write to it")
        view = memoryview(data).cast("B")
        if self._blob is None and len(self._small) + len(view) <= self._inline_bytes:
            self._small += view
        else:
            if self._blob is None:
                self._blob = self._blobs.open_write(self._file_id)
                self._blob.write(bytes(self._small))
                self._small.clear()
            self._blob.write(view)
        self.written_bytes += len(view)
        self._renew()
        return len(view)

    def sync(self) -> None:
        """Publish what was written so far. Each call makes an extent, so do not call it for every line."""
        self._flush(closes=False)

    def close(self) -> Inode | None:
        """Publish the rest and end the file; return its inode, or None if it was closed before."""
        if not self._is_open:
            return None
        try:
            return self._flush(closes=True)
        finally:
            self._is_open = False

    def discard(self) -> None:
        """Give the file up. Does nothing after `close`."""
        if self._is_open:
            self._is_open = False
            if self._blob is not None:
                self._blob.discard()

    def _flush(self, *, closes: bool) -> Inode:
        extents: tuple[Extent, ...] = ()
        data: dict[str, bytes] = {}
        if self._blob is not None:
            extents = (self._blob.close(),)
            self._blob = None
        elif self._small:
            name = self._blobs.new_name(self._file_id)
            data[name] = bytes(self._small)
            extents = (Extent(name, len(self._small), inline=True),)
        inode = self._publish(extents, data, closes)
        self._small.clear()
        return inode

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()
