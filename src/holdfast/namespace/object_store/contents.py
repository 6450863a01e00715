"""Store the bytes of objects before the transaction that creates the objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from holdfast.errors import ConflictError, FencedError, HoldfastError, InvalidRequestError
from holdfast.namespace.expiry import Expiry
from holdfast.namespace.inode import Extent
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.operations.files import Publish
from holdfast.namespace.paths import ROOT


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of the objects of a namespace."""

    namespace: Namespace

    def template(self) -> Publish:
        """Return a file without path, id and content."""
        configuration = self.namespace.configuration
        return Publish(
            path=ROOT,
            file_id=0,
            overwrite=True,
            replication=configuration.replication,
            block_size=configuration.block_size,
        )

    def store(self, file_id: int, data: bytes, *, inline: bool = True) -> tuple[tuple[Extent, ...], dict[str, bytes]]:
        """Store bytes; return the extents, and what is still to be written into the database.

        Args:
            inline: whether small content goes into the database.
        """
        blobs = self.namespace.blobs
        if not data:
            return (), {}
        if inline and len(data) <= self.namespace.configuration.inline_bytes:
            extent, stored = blobs.small(file_id, data)
            return (extent,), stored
        writer = blobs.open_write(file_id)
        try:
            writer.write(data)
            return (writer.close(),), {}
        except BaseException:
            writer.discard()
            raise

    @contextmanager
    def unless_refused(self, extents: Collection[Extent], expiry: Expiry) -> Iterator[None]:
        """Delete blobs if the block is refused, because no file refers to them then. They stay if that is unknown."""
        try:
            yield
        except (InvalidRequestError, ConflictError, FencedError):
            # What is old may belong to a file by now, to which a repair has given it; else a sweep deletes it.
            if not expiry.is_near():
                with suppress(HoldfastError):  # what is left is garbage
                    self.namespace.blobs.delete_many([one.blob for one in extents if not one.inline])
            raise
