"""Check a namespace that is in use, from one snapshot of its database and a listing of its blobs.

The listing comes first. A blob is durable before a file refers to it, so every reference in the snapshot that the
listing does not explain is either a blob that is younger than the listing, for which the store is asked, or one that is
missing. And no blob in the listing can look unowned because its file was renamed meanwhile: a snapshot has each file
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.namespace.blobs import BlobStore, compute_stored_range, content_size, find_damaged_frame
from holdfast.namespace.configuration import load_configuration
from holdfast.namespace.fsck.findings import FINDING_KINDS, Finding, Progress, Report, ignore_progress
from holdfast.namespace.fsck.survey import (
    NamespaceSurvey,
    add_blobs,
    make_stored_blob_row,
    open_survey,
    pack_name,
    unpack_name,
)
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record

MOST_FINDINGS = 10_000
"""How many findings of a kind are reported one by one; a repair works in rounds of so many."""

_UNCONFIRMED = 1000
_PIECE = 1024 * 1024
"""How much of a blob is read at once, beside other blobs."""


@dataclass(frozen=True, slots=True)
class CheckedNamespace:
    """The database, blobs and settings of a namespace that `check`, `repair` or `sweep` works on.

    Attributes:
        safety_age_s: the age in seconds from which a blob that no file refers to is unowned.
        identity: of the namespace.
    """

    database: Backend
    blobs: BlobStore
    environment: Environment
    safety_age_s: int
    identity: str = ""


@contextmanager
def hold_maintenance_lock(
    subject: CheckedNamespace, work: str, progress: Progress
) -> Iterator[tuple[MaintenanceLock, Progress]]:
    """Hold the maintenance lock of a namespace during the block; yield it, and a progress callback that renews it.

    Raises:
        ConflictError: another process repairs or sweeps: wait.
        FencedError: another process has taken over.
        InvalidRequestError: the blobs belong to another namespace; nothing happened.
    """
    subject.blobs.hold()
    with MaintenanceLock.hold(subject.database, subject.environment, work) as lock:
        load_configuration(subject.database, subject.identity)  # now that losing it loses the lock

        def renew_and_show_progress(stage: str, done: int, total: int) -> None:
            lock.renew_if_due()
            progress(stage, done, total)

        yield lock, renew_and_show_progress


def check(
    subject: CheckedNamespace,
    progress: Progress = ignore_progress,
    *,
    reads: bool = False,
    store_now_s: float | None = None,
    leased: Collection[int] = (),
) -> Report:
    """Check a namespace for damage and leftovers; return a report of the findings. Changes nothing.

    Guarantee: what is reported was true at one moment. The namespace may be in use.

    Args:
        reads: whether to read the blobs of the object store too, before the snapshot begins; those in the database are
            always read.
        store_now_s: the time of the store's clock; None takes this process's clock.
        leased: see `Survey.read_records`.

    Raises:
        InvalidRequestError: the blobs belong to another namespace.
        StorageFullError: the temporary file of the check cannot be written.
    """
    subject.blobs.check_claim()
    now_s = subject.environment.clock.now_s()
    with open_survey(int(now_s * 1000)) as survey:
        store_now_s = now_s if store_now_s is None else store_now_s
        add_blobs(survey, subject.blobs, store_now_s, subject.safety_age_s, progress)
        if reads:
            _find_damaged_blobs(subject, survey, progress)
        with subject.database.snapshot() as reader:
            survey.read_records(reader, progress, leased=leased)
        _add_late_blobs(subject, survey)
        totals: dict[str, int] = {}
        findings: list[Finding] = []
        for kind in FINDING_KINDS:
            rows = survey.query(kind)
            shown = [survey.to_finding(kind, row) for row in islice(rows, MOST_FINDINGS)]
            if rest := sum(1 for _ in rows):
                totals[kind] = len(shown) + rest
            findings += shown
        findings = _leave_out_changed_findings(subject, findings)
        totals = {**Counter(finding.kind.name for finding in findings), **totals}
        return Report(
            counts=survey.counts(),
            findings=findings,
            totals={kind: totals[name] for name, kind in FINDING_KINDS.items() if name in totals},
            has_read_blobs=reads,
        )


def _find_damaged_blobs(subject: CheckedNamespace, survey: NamespaceSurvey, progress: Progress) -> None:
    """Read all blobs of the listing, and note where damage begins in their content.

    Garbage is read too: it is not known yet what it is. A blob that is deleted meanwhile is not damaged.
    """

    def find_damage(row: tuple[bytes, int]) -> tuple[str, int, int | None]:
        name, size = unpack_name(row[0]), row[1]
        length = content_size(size)
        for start in range(0, length, _PIECE):
            stored_start, stored_length = compute_stored_range(start, min(_PIECE, length - start))
            try:
                stored = subject.blobs.store.get(subject.blobs.key(name), stored_start, stored_length)
            except NotFoundError:
                break
            position = find_damaged_frame(name, start, stored)
            if position is not None:
                return name, size, position
        return name, size, None

    ((total,),) = survey.query("object_bytes")
    found: dict[str, int] = {}
    done = 0
    for name, size, position in subject.environment.runner.map(find_damage, survey.query("objects")):
        done += size
        progress("bytes of blobs", done, total)
        if position is not None:
            found[name] = position
    for name, position in found.items():
        survey.query("note damage", name=pack_name(name), position=position)


def _add_late_blobs(subject: CheckedNamespace, survey: NamespaceSurvey) -> None:
    """Ask the store for the blobs that the listing did not show: most of them are younger than the listing."""
    after = b""
    while unlisted := [row[0] for row in survey.query("unlisted", after=after, limit=_UNCONFIRMED)]:
        after = unlisted[-1]
        sizes = _read_blob_sizes(subject, [unpack_name(blob) for blob in unlisted])
        survey.add_rows([make_stored_blob_row(blob, size) for blob, size in sizes.items() if size is not None])


def _read_blob_sizes(subject: CheckedNamespace, blobs: Sequence[str]) -> Mapping[str, int | None]:
    """Ask the store for the sizes of blobs; None for one that does not exist."""

    def read_size(blob: str) -> int | None:
        try:
            return subject.blobs.store.head(subject.blobs.key(blob)).size_bytes
        except NotFoundError:
            return None

    return dict(zip(blobs, subject.environment.runner.map(read_size, blobs), strict=True))


def _leave_out_changed_findings(subject: CheckedNamespace, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what others have changed beside the check.

    A missing object is none if its file has been deleted or changed since the snapshot. An unowned one is none if it
    was garbage that a collector deleted, with the note about it, between the listing and the snapshot.
    """
    sizes = _read_blob_sizes(
        subject, [one.blob for one in findings if one.kind.name == "unowned-blob" and not one.keys]
    )
    keys = {one.keys[0] for one in findings if one.kind.name == "missing-blob"}
    records = subject.database.get_many(keys) if keys else {}
    return [
        one
        for one in findings
        if not (one.kind.name == "unowned-blob" and not one.keys and sizes[one.blob] is None)
        and not (one.kind.name == "missing-blob" and not _inode_refers_to_blob(one, records.get(one.keys[0])))
    ]


def _inode_refers_to_blob(finding: Finding, record: Record | None) -> bool:
    try:
        extents = () if record is None else decode_inode(finding.keys[0], record.value).extents
    except CorruptDataError:
        return True
    return any(extent.blob == finding.blob for extent in extents)
