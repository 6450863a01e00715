"""Cleaning up after jobs that are over: what still waits under their names, then what they kept beside their output.

A job's own records come first; what else is met on the way belongs to zombies and to jobs that died, and goes as well.
After a decision that is bounded, so that no job pays for what thousands of others left: `recover` takes all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.alive import OverJobs
from holdfast.commit.context import CommitContext
from holdfast.commit.intents import QUIET_S, is_intents, unreported_intents
from holdfast.commit.manifests import load_refs
from holdfast.commit.pending_uploads import is_manifest
from holdfast.commit.publication import PUBLICATIONS, Leftovers, Publication
from holdfast.commit.records import JobRecord, LogEntry
from holdfast.commit.recovery_report import is_quiet
from holdfast.commit.streams import dead_batches
from holdfast.errors import NotFoundError
from holdfast.stores.base import ObjectInfo, batched_keys
from holdfast.stores.probe import UploadListing

__all__ = ["clean_up", "clean_up_decided", "clean_up_job"]

_LIMIT = 10_000
"""Pending uploads of all jobs that one job looks at after its decision: ten pages."""


def clean_up_decided(ctx: CommitContext, entry: LogEntry) -> None:
    """Clean up after a decided job, whose files are visible or shall never be, and after what else is over.

    Guarantee, crash: as of `clean_up`.
    """
    clean_up(
        ctx,
        OverJobs(ctx, [entry.job], dead_batches(entry)),
        PUBLICATIONS[entry.record.publication],
        _listing(entry.record),
        limit=_LIMIT,
        decided=entry,
    )


def clean_up_job(ctx: CommitContext, job: JobRecord) -> None:
    """Clean up after a job that nobody can commit any more, or that is finished but for zombies.

    Guarantee, crash: as of `clean_up`.
    """
    clean_up(ctx, OverJobs(ctx, [job.job]), PUBLICATIONS[job.publication], _listing(job), limit=_LIMIT)


def _listing(job: JobRecord) -> UploadListing:
    """As it was found when the job started: nobody asks the server twice."""
    return UploadListing.BY_KEY if job.announced else UploadListing.BY_DIRECTORY


@dataclass(slots=True)
class _Folders:
    """What the folders of jobs that are over hold."""

    keys: set[str] = field(default_factory=set)
    manifests: dict[str, float] = field(default_factory=dict)
    intents: dict[str, float] = field(default_factory=dict)

    def note(self, objects: Iterable[ObjectInfo]) -> dict[str, float]:
        """Take a folder in; returns its manifests."""
        manifests = {}
        for info in objects:
            self.keys.add(info.key)
            if is_intents(info.key):
                self.intents[info.key] = info.modified_at_s
            elif is_manifest(info.key):
                manifests[info.key] = info.modified_at_s
        return manifests


def clean_up(
    ctx: CommitContext,
    over: OverJobs,
    publication: Publication,
    listing: UploadListing,
    *,
    quiet_s: float = QUIET_S,
    limit: int | None = None,
    decided: LogEntry | None = None,
) -> tuple[int, int]:
    """Sweep what jobs that are over have waiting, then delete their folders; also those of zombies that came later.

    Guarantee: a job's ``job.json`` and records of intents go only after a sweep that began when they were listed, so
    that what they protect or announce is gone by then. Records of intents stay if the attempt has not reported, for it
    may be alive, and if what they announce was spared.

    Args:
        listing: how the server lists pending uploads.
        quiet_s: an attempt that wrote nothing for so long is dead.
        limit: see `Leftovers`.
        decided: the decision of the job that this is about, whose committed files are settled.

    Returns:
        How many uploads were aborted, and how many folders went.

    Crash: a folder without its record, which belongs to nobody; the next job takes it.
    """
    prefix = ctx.key(layout.JOBS)
    found = _Folders()
    for job, objects in layout.iter_job_folders(ctx.store, ctx.prefix):
        if over.is_over(job, prefix):
            manifests = found.note(objects)
            if decided is not None and job == decided.job:
                manifests = _uncommitted(ctx, decided, manifests)
            found.manifests.update(manifests)
    unreported = unreported_intents(found.intents, found.keys)
    aborted, contested = publication.sweep(
        ctx,
        over.is_over,
        Leftovers(
            listing=listing,
            manifests=found.manifests,
            intents=tuple(found.intents),
            unreported=tuple(unreported),
            limit=limit,
        ),
    )
    now_s = ctx.clock.now_s()
    may_live = {key for key in unreported if not is_quiet(found.intents[key], now_s, quiet_s)}
    kept = found.intents.keys() if contested else may_live
    gone = sorted(found.keys - kept)  # a crash halfway leaves the later ones: job.json comes behind attempts/
    for batch in batched_keys(gone):
        ctx.store.delete_many(batch)
    return aborted, len({key[len(prefix) :].partition("/")[0] for key in gone})


def _uncommitted(ctx: CommitContext, entry: LogEntry, manifests: dict[str, float]) -> dict[str, float]:
    """The manifests of attempts that the decision does not name."""
    if entry.manifests is None:
        return manifests
    if len(manifests) == entry.tasks:
        return {}  # each task has reported once, so these are they
    try:
        named = {ctx.key(ref.key) for ref in load_refs(ctx, entry.manifests, None)}
    except NotFoundError:
        return {}  # somebody else has cleaned up before
    return {key: at_s for key, at_s in manifests.items() if key not in named}
