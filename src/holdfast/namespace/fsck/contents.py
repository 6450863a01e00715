"""Read all blobs of a listing, and find those that are damaged."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import NotFoundError
from holdfast.namespace.blobs import BlobStore, writer_of
from holdfast.namespace.frames import content_bytes, find_damage, stored_range
from holdfast.namespace.fsck.blob_table import BlobRow, BlobTable
from holdfast.namespace.fsck.progress import Progress
from holdfast.runtime import Runner

_PIECE = 1024 * 1024
"""How much of a blob is read at once, beside other blobs."""


def find_damaged(blobs: BlobStore, table: BlobTable, runner: Runner, progress: Progress) -> Mapping[str, int]:
    """Return the damaged blobs, with the position in their content from which on they are.

    Garbage is read too: nobody knows yet what it is. A blob that somebody deletes meanwhile is not damaged.
    """

    def damage(row: BlobRow) -> tuple[BlobRow, int | None]:
        return row, _damage(blobs, row)

    found: dict[str, int] = {}
    done = 0
    ours = (row for row in table.rows_without(0) if writer_of(row.name) is not None)
    for row, position in runner.map(damage, ours):
        done += row.size
        progress("bytes of blobs", done, table.bytes)
        if position is not None:
            found[row.name] = position
    return found


def _damage(blobs: BlobStore, row: BlobRow) -> int | None:
    length = content_bytes(row.size)
    for start in range(0, length, _PIECE):
        try:
            stored = blobs.store.get(blobs.key(row.name), *stored_range(start, min(_PIECE, length - start)))
        except NotFoundError:
            return None
        position = find_damage(row.name, start, stored)
        if position is not None:
            return position
    return None
