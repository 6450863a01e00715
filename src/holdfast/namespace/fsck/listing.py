"""List the blobs in the object store."""

from __future__ import annotations

from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.fsck.blob_table import YOUNG, BlobTable
from holdfast.namespace.fsck.progress import Progress
from holdfast.stores.base import iter_objects

CLOSING_S = 600
"""How old an unowned blob must be in any case before anything is done with it: so long may a writer need from its last
byte to the transaction that publishes the file."""

_PAGE = 1000


def list_blobs(
    blobs: BlobStore,
    store_now_s: float,
    age_s: float,
    progress: Progress,
    *,
    with_young: bool = True,
    after_s: float = -1.0,
) -> BlobTable:
    """Return the blobs in the store; those without a date are young.

    Args:
        store_now_s: the time of the store's clock.
        age_s: younger blobs are marked as such.
        with_young: False leaves them out.
        after_s: blobs from up to this time of the store's clock are left out.
    """
    table = BlobTable()
    prefix = blobs.key("")
    for number, info in enumerate(iter_objects(blobs.store, prefix), 1):
        is_young = not info.modified_at_s or info.modified_at_s > store_now_s - age_s
        if (with_young or not is_young) and info.modified_at_s > after_s:
            table.add(info.key[len(prefix) :], info.size_bytes, YOUNG if is_young else 0)
        if number % _PAGE == 0:
            progress("objects", number, 0)
    table.sort()
    return table
