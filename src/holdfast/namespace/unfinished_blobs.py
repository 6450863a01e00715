"""Abort the uploads of blobs whose writers have died: a store keeps their bytes, and no listing of objects shows them.

On S3 these are multipart uploads, and in a directory hidden files. Nothing refers to an unfinished blob, so no record
tells of it. It is given up if

- it is older than the safety age, by the store's own clock: a blob that is finished later could not be published, since
  an upload has the date of its beginning, and a hidden file that of its last write;
- no lease of its file exists, nor did one when the sweep began (`leased_files`): a lease lets a writer take as long as
  it likes.

The uploads are listed before the leases are read, so a writer that began earlier is seen with its lease. If a database
loses its newest commits, and has a lease again that had ended before the sweep, the sweep has lost its lock: so it
renews the lock just before.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from holdfast.namespace.blobs import BlobStore, writer_of
from holdfast.stores.base import UploadInfo, iter_uploads, multipart


def list_unfinished(blobs: BlobStore, store_now_s: float, age_s: float) -> list[UploadInfo]:
    """Return the uploads of blobs that are older than `age_s`; those without a date are young.

    Some servers, such as MinIO, list no uploads: those delete old uploads themselves.

    Args:
        store_now_s: the time of the store's clock, seconds since the epoch.
    """
    if blobs.store.capabilities.multipart is None:
        return []
    return [
        upload
        for upload in iter_uploads(multipart(blobs.store), blobs.key(""))
        if upload.initiated_at_s and upload.initiated_at_s <= store_now_s - age_s
    ]


def abandoned(blobs: BlobStore, uploads: Iterable[UploadInfo], leases: Container[int]) -> Iterator[UploadInfo]:
    """Yield the uploads whose writers have no lease, without those of what is no blob of a namespace.

    Args:
        leases: ids of the files that have one.
    """
    for upload in uploads:
        writer = writer_of(blobs.name_of(upload.key))
        if writer is not None and writer not in leases:
            yield upload


def abort_unfinished(blobs: BlobStore, uploads: Iterable[UploadInfo]) -> None:
    """Abort uploads.

    Crash: some are aborted; the next sweep finds the others.
    """
    for upload in uploads:
        multipart(blobs.store).abort_upload(upload.key, upload.upload_id)
