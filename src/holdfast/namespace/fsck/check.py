"""Check a namespace that is in use, from one snapshot of its database and a listing of its blobs.

The listing comes first. A blob is durable before a file refers to it, so every reference in the snapshot that the
listing does not explain is either a blob that is younger than the listing, for which the store is asked, or one that is
missing. And no blob in the listing can look unowned because its file was renamed meanwhile: a snapshot has each file
once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.fsck.checkers import CHECKERS
from holdfast.namespace.fsck.checkers.blobs import MISSING_BLOBS, UNOWNED, is_in_progress, unreferenced
from holdfast.namespace.fsck.contents import find_damaged
from holdfast.namespace.fsck.facts import MOST_FINDINGS, Facts
from holdfast.namespace.fsck.findings import Finding, FindingKind, Suspect
from holdfast.namespace.fsck.listing import list_blobs
from holdfast.namespace.fsck.progress import Progress, silent
from holdfast.namespace.fsck.report import Counts, Report
from holdfast.namespace.fsck.second_look import look_up
from holdfast.namespace.fsck.survey import take_facts
from holdfast.namespace.inode import decode_inode
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked.

    Attributes:
        safety_age_s: how old an unowned blob must be before it is one.
        identity: of the namespace.
    """

    database: Backend
    blobs: BlobStore
    environment: Environment
    safety_age_s: int
    identity: str = ""


def check(
    subject: Subject,
    progress: Progress = silent,
    *,
    reads: bool = False,
    store_now_s: float | None = None,
    leased: Collection[int] = (),
) -> Report:
    """Check a namespace; changes nothing.

    Guarantee: what is reported was true at one moment. The namespace may be in use.

    Args:
        reads: whether to read all blobs too, before the snapshot begins: those in the database are read in any case.
        store_now_s: the time of the store's clock; None takes ours instead.
        leased: see `take_facts`.

    Raises:
        InvalidRequestError: the blobs belong to another namespace.
    """
    subject.blobs.check_claim()
    now_s = subject.environment.clock.now_s()
    objects = list_blobs(subject.blobs, now_s if store_now_s is None else store_now_s, subject.safety_age_s, progress)
    damaged = find_damaged(subject.blobs, objects, subject.environment.runner, progress) if reads else None
    with subject.database.snapshot() as reader:
        facts = take_facts(
            reader,
            objects,
            int(now_s * 1000),
            progress,
            confirm=lambda blobs: _sizes(subject, blobs),
            damaged=damaged,
            leased=leased,
        )
        totals: dict[FindingKind, int] = {}
        suspects: list[tuple[FindingKind, Suspect]] = []
        for checker in CHECKERS:
            found = checker.find(facts)
            shown = list(itertools.islice(found, MOST_FINDINGS))
            suspects += ((checker.kind, suspect) for suspect in shown)
            total = checker.total(facts) if checker.total else len(shown) + sum(1 for _ in found)
            if total > len(shown):
                totals[checker.kind] = total
        findings = _present(subject, look_up(reader, facts, suspects, progress))
    for kind, number in Counter(finding.kind for finding in findings).items():
        totals.setdefault(kind, number)
    return Report(counts=_counts(facts), findings=findings, totals=totals, has_read_blobs=reads)


def _sizes(subject: Subject, blobs: Sequence[str]) -> Mapping[str, int | None]:
    """Ask the store for the sizes of blobs; None for one that does not exist."""

    def size(blob: str) -> int | None:
        try:
            return subject.blobs.store.head(subject.blobs.key(blob)).size_bytes
        except NotFoundError:
            return None

    return dict(zip(blobs, subject.environment.runner.map(size, blobs), strict=True))


def _present(subject: Subject, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what others have changed beside the check.

    A missing object is none if its file has been deleted or changed since the snapshot. An unowned one is none if it
    was garbage that a collector deleted, with the note about it, between the listing and the snapshot.
    """
    unowned = [finding.blob for finding in findings if _is_unowned_object(finding)]
    gone = {blob for blob, size in _sizes(subject, unowned).items() if size is None}
    findings = [finding for finding in findings if not (_is_unowned_object(finding) and finding.blob in gone)]
    keys = {finding.keys[0] for finding in findings if finding.kind == MISSING_BLOBS.kind}
    records = subject.database.get_many(keys) if keys else {}
    return [
        finding
        for finding in findings
        if finding.kind != MISSING_BLOBS.kind or _refers(finding, records.get(finding.keys[0]))
    ]


def _is_unowned_object(finding: Finding) -> bool:
    return finding.kind == UNOWNED.kind and not finding.keys


def _refers(finding: Finding, record: Record | None) -> bool:
    try:
        extents = () if record is None else decode_inode(finding.keys[0], record.value).extents
    except CorruptDataError:
        return True
    return any(extent.blob == finding.blob for extent in extents)


def _counts(facts: Facts) -> Counts:
    return Counts(
        directories=facts.directories.count,
        files=facts.files,
        file_bytes=facts.file_bytes,
        blobs=facts.objects.count,
        blob_bytes=facts.objects.bytes,
        small_blobs=facts.data.count,
        small_blob_bytes=facts.data.bytes,
        in_progress=sum(is_in_progress(facts, row) for row in unreferenced(facts.objects)),
        garbage=facts.notes,
        deleted_trees=sum(1 for _ in facts.deleted),
        leases=len(facts.leases),
        quotas=len(facts.quotas),
    )
