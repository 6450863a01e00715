"""Clean up after jobs that have ended: abort their pending uploads, then delete their folders.

A job's cleanup deletes the job's own leftovers first, and then any leftovers of zombies and dead jobs that it finds on
the way. After a decision this extra work is limited, so that one job does not pay for the leftovers of thousands of
others; `recover` has no limit.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.intents import QUIET_S, unreported_intents
from holdfast.commit.leftovers import is_job_quiet
from holdfast.commit.records import JobRecord
from holdfast.commit.two_phase.manifests import load_manifest_list
from holdfast.commit.two_phase.pending_uploads import LiveJobs, UploadRecords
from holdfast.commit.two_phase.publication import PublicationMethod, find_job_publication
from holdfast.commit.two_phase.records import LogEntry, dead_batches
from holdfast.errors import InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.stores.base import batched_keys
from holdfast.stores.probe import UploadListingMode

_log = logging.getLogger(__name__)

_LIMIT = 10_000
"""How many pending uploads of all jobs together one job inspects after its decision: ten pages."""


def clean_up_decided_job(ctx: CommitContext, entry: LogEntry) -> None:
    """Clean up after a decided job that has no other work left, and after other jobs that have ended.

    Guarantee, crash: as for `clean_up_ended_jobs`. If the store refuses to list or to delete something, a warning is
    logged, and the leftovers stay until `recover`. The decision still counts as done; if it did not, every later job
    would retry the cleanup.
    """
    with log_refused_cleanup(ctx, entry.record):
        clean_up_ended_jobs(
            ctx,
            LiveJobs(ctx, [entry.job], dead_batches(entry)),
            find_job_publication(entry.record),
            _infer_upload_listing(entry.record),
            limit=_LIMIT,
            decided=entry,
        )


def clean_up_ended_job(
    ctx: CommitContext, job: JobRecord, decided: LogEntry | None = None, reported: Collection[str] = ()
) -> None:
    """Clean up after a job that can no longer be committed, or after attempts of a job whose decision is done.

    Guarantee, crash: as for `clean_up_decided_job`.

    Args:
        decided: the job's decision, if the caller knows it: it says which other jobs of streams have ended too.
        reported: see `clean_up_ended_jobs`.
    """
    dead = {} if decided is None else dead_batches(decided)
    with log_refused_cleanup(ctx, job):
        jobs = LiveJobs(ctx, [job.job], dead)
        clean_up_ended_jobs(
            ctx, jobs, find_job_publication(job), _infer_upload_listing(job), limit=_LIMIT, reported=reported
        )


@contextlib.contextmanager
def log_refused_cleanup(ctx: CommitContext, job: JobRecord) -> Iterator[None]:
    """Log a warning instead of an error if the store refuses optional work for a job that has ended."""
    try:
        yield
    except (InvalidRequestError, UnsupportedError) as error:
        _log.warning(
            "job %s has ended, but the store refuses a part of its cleanup: check its policy, then run "
            "holdfast recover %s (%s)",
            job.job,
            ctx.url,
            error,
        )


def _infer_upload_listing(job: JobRecord) -> UploadListingMode:
    """Return how the server lists uploads, according to the job's record, which saves a request to the server."""
    return UploadListingMode.BY_KEY if job.announced else UploadListingMode.BY_DIRECTORY


def clean_up_ended_jobs(
    ctx: CommitContext,
    jobs: LiveJobs,
    publication: PublicationMethod,
    listing: UploadListingMode,
    *,
    quiet_s: float = QUIET_S,
    limit: int | None = None,
    decided: LogEntry | None = None,
    reported: Collection[str] = (),
) -> tuple[int, int]:
    """Abort the pending uploads of jobs that have ended, then delete their folders, including those of zombies.

    Guarantee: a job's ``job.json`` and its intent records are deleted only after a sweep (which aborts leftover
    uploads) that began after these records were listed. So the uploads that the records protect or announce no longer
    exist. Intent records stay if their attempt has not reported, because it may be alive, and if the sweep spared
    uploads that they announce.

    Args:
        listing: how the server lists pending uploads.
        quiet_s: an attempt that has not written anything for this long is considered dead.
        limit: how many uploads of the server's listing to inspect; None for all (see `UploadRecords`).
        decided: the decision of the job to clean up after, if there is one; its committed uploads are already
            completed.
        reported: keys of manifests that a transaction has deleted: their attempts have reported.

    Returns:
        The numbers of aborted uploads and of deleted folders.

    Crash: may leave a folder without ``job.json``, which the next job or `recover` deletes.
    """
    prefix = ctx.key(layout.JOBS)
    keys: set[str] = set()
    left = UploadRecords(listing=listing, limit=limit)
    for job, objects in layout.iter_job_folders(ctx.store, ctx.prefix):
        if jobs.has_ended(job, prefix):
            folder = UploadRecords()
            for info in objects:
                keys.add(info.key)
                folder.note(info)
            if decided is not None and job == decided.job:
                folder.manifests = _leftover_manifests(ctx, decided, folder.manifests)
            left.manifests.update(folder.manifests)
            left.intents.update(folder.intents)
    left.unreported = unreported_intents(left.intents, keys.union(reported))
    aborted, contested = publication.sweep(ctx, jobs.has_ended, left)
    now_s = ctx.clock.now_s()
    may_live = {key for key in left.unreported if not is_job_quiet(left.intents[key], now_s, quiet_s)}
    retained = left.intents.keys() if contested else may_live
    deleted = sorted(keys - retained)  # sorted, so that after a crash job.json is left: attempts/ sorts before it
    for batch in batched_keys(deleted):
        ctx.store.delete_many(batch)
    return aborted, len({key[len(prefix) :].partition("/")[0] for key in deleted})


def _leftover_manifests(ctx: CommitContext, entry: LogEntry, manifests: dict[str, float]) -> dict[str, float]:
    """Return the manifests that the decision does not name."""
    if entry.manifests is None:
        return manifests
    if len(manifests) == entry.tasks:
        return {}  # each task has at least one manifest, so all of these are committed
    try:
        named = {ctx.key(ref.key) for ref in load_manifest_list(ctx, entry.manifests, None)}
    except NotFoundError:
        return {}  # another process has already cleaned up
    return {key: at_s for key, at_s in manifests.items() if key not in named}
