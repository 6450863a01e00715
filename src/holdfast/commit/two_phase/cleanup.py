"""Cleaning up after jobs that are over: what still waits under their names, then what they kept beside their output.

A job's own records come first; what else is met on the way belongs to zombies and to jobs that died, and goes as well.
After a decision that is bounded, so that no job pays for what thousands of others left: `recover` takes all of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.intents import QUIET_S, unreported_intents
from holdfast.commit.records import JobRecord
from holdfast.commit.recovery_report import is_quiet
from holdfast.commit.two_phase.live_jobs import OverJobs
from holdfast.commit.two_phase.manifests import load_refs
from holdfast.commit.two_phase.pending_uploads import FolderRecords
from holdfast.commit.two_phase.publication import Leftovers, Publication, publication_of
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.streams import dead_batches
from holdfast.errors import InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.stores.base import batched_keys
from holdfast.stores.probe import UploadListing

__all__ = ["clean_up", "clean_up_decided", "clean_up_job", "refusals_told"]

_log = logging.getLogger(__name__)

_LIMIT = 10_000
"""Pending uploads of all jobs that one job looks at after its decision: ten pages."""


def clean_up_decided(ctx: CommitContext, entry: LogEntry) -> None:
    """Clean up after a decided job, whose files are visible or shall never be, and after what else is over.

    Guarantee, crash: as of `clean_up`. What the store refuses to list or to delete is logged and left to `recover`: the
    job is done all the same, or every later one would try again.
    """
    with refusals_told(ctx, entry.record):
        clean_up(
            ctx,
            OverJobs(ctx, [entry.job], dead_batches(entry)),
            publication_of(entry.record),
            _listing(entry.record),
            limit=_LIMIT,
            decided=entry,
        )


def clean_up_job(ctx: CommitContext, job: JobRecord) -> None:
    """Clean up after a job that nobody can commit any more, or that is finished but for zombies.

    Guarantee, crash: as of `clean_up_decided`.
    """
    with refusals_told(ctx, job):
        clean_up(ctx, OverJobs(ctx, [job.job]), publication_of(job), _listing(job), limit=_LIMIT)


@contextlib.contextmanager
def refusals_told(ctx: CommitContext, job: JobRecord) -> Iterator[None]:
    """Around work that a job that is over can do without: what the store refuses is logged, not raised."""
    try:
        yield
    except (InvalidRequestError, UnsupportedError) as error:
        _log.warning(
            "job %s is over, and the store refuses a part of its clean-up: look at its policy, then run holdfast "
            "recover %s (%s)",
            job.job,
            ctx.url,
            error,
        )


def _listing(job: JobRecord) -> UploadListing:
    """As it was found when the job started: nobody asks the server twice."""
    return UploadListing.BY_KEY if job.announced else UploadListing.BY_DIRECTORY


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
    keys: set[str] = set()
    records = FolderRecords()
    for job, objects in layout.iter_job_folders(ctx.store, ctx.prefix):
        if over.is_over(job, prefix):
            folder = FolderRecords()
            for info in objects:
                keys.add(info.key)
                folder.note(info)
            if decided is not None and job == decided.job:
                folder.manifests = _uncommitted(ctx, decided, folder.manifests)
            records.manifests.update(folder.manifests)
            records.intents.update(folder.intents)
    unreported = unreported_intents(records.intents, keys)
    aborted, contested = publication.sweep(
        ctx,
        over.is_over,
        Leftovers(
            listing=listing,
            manifests=records.manifests,
            intents=tuple(records.intents),
            unreported=tuple(unreported),
            limit=limit,
        ),
    )
    now_s = ctx.clock.now_s()
    may_live = {key for key in unreported if not is_quiet(records.intents[key], now_s, quiet_s)}
    kept = records.intents.keys() if contested else may_live
    gone = sorted(keys - kept)  # a crash halfway leaves the later ones: job.json comes behind attempts/
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
