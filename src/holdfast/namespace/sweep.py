"""Find blobs and records that no file refers to, and nothing ever will, and give them to the collector.

A writer that dies leaves blobs that were durable already; no record names them, so no collector finds them. A sweep
lists all blobs, then takes one snapshot of the database, and deletes a blob of the listing only if

- no inode of the snapshot refers to it, in the tree or in a deleted tree, nor a pending upload, and no garbage note
  names it;
- it is older than the safety age, by the store's own clock: files are published after their blobs, and a publication
  that comes later than that is refused (`Publish`);
- no lease of its file exists: the writer could still publish it; nor did one when the sweep began
  (`find_leased_files`), as a database that loses its newest commits could have it again;
- it is younger than the last repair of a damaged record, which may have named it: such blobs are left to the next
  repair (`fsck.damage`).

The order matters. A blob of the listing that is in use at the snapshot is named by it, and one that is not in use can
be published only by its own writer. With several snapshots instead of one, a file could be renamed from what is not
read yet to what was read already, and its blobs would look unowned.

The collector deletes what is noted a safety age later, not at once: a database that loses its newest commits, in a
failover, could have the lease of a writer again, whose bytes would be gone.

Blobs that were never finished are given up (`_abort_abandoned_uploads`). Nothing else is deleted directly: the sweep
notes the blobs as garbage, in transactions that no repair can overtake (`maintenance`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from holdfast.errors import CorruptDataError
from holdfast.namespace.blobs import BlobStore, file_id_in_blob_name
from holdfast.namespace.fsck.check import CheckedNamespace, hold_maintenance_lock
from holdfast.namespace.fsck.findings import Progress, ignore_progress
from holdfast.namespace.fsck.survey import (
    CLOSING_S,
    NamespaceSurvey,
    add_blobs,
    find_leased_files,
    open_survey,
    pack_id,
    unpack_name,
)
from holdfast.namespace.keys import garbage_key
from holdfast.namespace.maintenance import MaintenanceLock, read_damage_time_s
from holdfast.namespace.operation import Changes
from holdfast.namespace.view import SeenRecord, View
from holdfast.stores.base import UploadInfo, iter_uploads, multipart

T = TypeVar("T")

_PAGE = 500


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Counts what a sweep has found.

    Attributes:
        blobs, blob_bytes: objects that no file refers to.
        records: times, renames and quota counters of directories that do not exist; they are deleted.
        uploads: uploads of blobs that were never completed; they are aborted.
    """

    blobs: int = 0
    blob_bytes: int = 0
    records: int = 0
    uploads: int = 0


def sweep_namespace(
    subject: CheckedNamespace, progress: Progress = ignore_progress, *, closing_s: float = CLOSING_S
) -> SweepResult:
    """Find blobs that no file refers to and note them as garbage, which the collector deletes later; delete stray
    records. Safe at any time.

    Raises:
        ConflictError: another process sweeps or repairs: wait.
        CorruptDataError: an inode cannot be read, so it is unknown what it refers to; nothing happened. Run fsck.
        InvalidRequestError: the blobs belong to another namespace; nothing happened.
        FencedError: another process has taken over.

    Crash: some of the blobs are noted; the next sweep finds the others.
    """
    with hold_maintenance_lock(subject, "sweep", progress) as (lock, report):
        age_s = max(subject.safety_age_s, closing_s)
        store_now_s = subject.blobs.read_store_clock_s()
        leased = find_leased_files(subject.database)
        lock.rewrite_root()
        with open_survey(int(subject.environment.clock.now_s() * 1000)) as survey:
            add_blobs(
                survey,
                subject.blobs,
                store_now_s,
                age_s,
                report,
                with_young=False,
                after_s=read_damage_time_s(subject.database),
            )
            uploads = _find_old_uploads(subject.blobs, store_now_s, age_s)
            now_s = max(subject.environment.clock.now_s(), store_now_s)
            with subject.database.snapshot() as reader:
                survey.read_records(reader, report, without=b"s", leased=leased)
            if damaged := sum(1 for _ in survey.query("damaged-record")):
                raise CorruptDataError(
                    "records cannot be read, so it is unknown which blobs are in use: run holdfast namespace fsck "
                    "--repair",
                    records=damaged,
                )
            blobs, blob_bytes = _mark_unowned_as_garbage(survey, lock, int(now_s * 1000), progress)
            records = _delete_orphaned_directory_records(survey, lock)
            return SweepResult(
                blobs, blob_bytes, records, _abort_abandoned_uploads(subject.blobs, survey, lock, uploads)
            )


def find_unowned_objects(survey: NamespaceSurvey) -> Iterator[tuple[str, int]]:
    """Yield name and size in bytes of each blob of the object store that no file refers to and no writer can still
    publish.
    """
    return ((unpack_name(name), size) for name, size in survey.query("unowned"))


def _mark_unowned_as_garbage(
    survey: NamespaceSurvey, lock: MaintenanceLock, since_ms: int, progress: Progress
) -> tuple[int, int]:
    """Note unowned blobs as garbage; return their number and size."""
    blobs = blob_bytes = 0
    for rows in _split_into_batches(find_unowned_objects(survey), _PAGE):
        notes = {garbage_key(since_ms, name): b"" for name, _ in rows}
        lock.commit(Changes(None, values=notes), View((), {}))
        blobs += len(rows)
        blob_bytes += sum(size for _, size in rows)
        progress("unowned blobs", blobs, 0)
    return blobs, blob_bytes


def _delete_orphaned_directory_records(survey: NamespaceSurvey, lock: MaintenanceLock) -> int:
    """Delete records of directories that do not exist; return their number."""
    records = 0
    strays = itertools.chain.from_iterable(map(survey.query, ("stray-time", "stray-place", "stray-usage")))
    for rows in _split_into_batches(strays, _PAGE):
        # A database that has lost its newest commits may have the quota of a stray counter again.
        seen = {key: SeenRecord(version, None) for key, _, _, version, _ in rows if version}
        if lock.commit(Changes(None, deletes={row[0] for row in rows}), View((), seen)):
            records += len(rows)
    return records


# --- blobs that were never finished -----------------------------------------------------------------------------------
def _find_old_uploads(blobs: BlobStore, store_now_s: float, age_s: float) -> list[UploadInfo]:
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


def _abort_abandoned_uploads(
    blobs: BlobStore, survey: NamespaceSurvey, lock: MaintenanceLock, uploads: Iterable[UploadInfo]
) -> int:
    """Abort the uploads whose writers have no lease; return their number. What is no blob of a namespace stays.

    On S3 these are multipart uploads, and in a directory hidden files: a store keeps their bytes, and no listing of
    objects shows them. A blob that is finished later than the safety age could not be published, since an upload has
    the date of its beginning, and a hidden file that of its last write; but a lease lets a writer take as long as it
    likes. The uploads are listed before the leases are read, so a writer that began earlier is seen with its lease.

    Crash: some are aborted; the next sweep finds the others.
    """
    leased = {packed for (packed,) in survey.query("leased")}
    given_up = 0
    writers = ((upload, file_id_in_blob_name(blobs.name_of(upload.key))) for upload in uploads)
    abandoned = (one for one, writer in writers if writer is not None and pack_id(writer) not in leased)
    for batch in _split_into_batches(abandoned, _PAGE):
        # As for blobs: a process that has lost the lock gives up nothing. If a database has lost its newest commits,
        # and has a lease again that had ended before the sweep, the lock is lost too.
        lock.commit(Changes(None), View((), {}))
        for upload in batch:
            multipart(blobs.store).abort_upload(upload.key, upload.upload_id)
        given_up += len(batch)
    return given_up


def _split_into_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
