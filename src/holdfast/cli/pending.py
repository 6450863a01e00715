"""Pending uploads below a url, and whose they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from holdfast.commit import COMMITTERS, TWO_PHASE, CommitContext, JobId
from holdfast.commit.attempt_names import file_job
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.hadoop_jobs import find_upload_owners
from holdfast.commit.intents import find_announcers
from holdfast.commit.layout import job_of
from holdfast.commit.recovery import find_leftovers
from holdfast.commit.two_phase.live_jobs import OverJobs
from holdfast.commit.two_phase.pending_uploads import NOTES, find_listing, find_uploads
from holdfast.commit.unsafe.emr import EMR
from holdfast.errors import CorruptDataError, UnsupportedError
from holdfast.stores.base import UploadInfo

__all__ = ["HADOOPS", "PendingUpload", "find_pending"]

HADOOPS = "Hadoop's"
"""State of an upload of a job of Hadoop's committers, dead or alive: only `holdfast recover --foreign` ends it."""


@dataclass(frozen=True)
class PendingUpload:
    """An upload and what its key tells of its owner.

    Attributes:
        path: relative to the url.
        job: empty if Holdfast did not start it.
        committer: of the job; empty if that is not known here.
        state: ``over`` (nobody will complete it), ``unfinished`` (its job may), ``unknown`` (its job keeps no record
            below this url), ``Hadoop's`` (of a job of its committers) or ``other tool``.
    """

    upload: UploadInfo
    path: str
    job: str
    committer: str
    state: str
    age_s: float


def find_pending(ctx: CommitContext) -> tuple[list[PendingUpload], str]:
    """Every pending upload below the context's prefix, oldest first; and a sentence on what may be missing, or none.

    Guarantee: an upload of a job that can still commit is never called ``over``, also where the url is a parent of the
    job's destination.

    Raises:
        UnsupportedError: the store keeps no uploads.
    """
    if ctx.store.capabilities.multipart is None:
        raise UnsupportedError("this place keeps no pending uploads: give an s3:// url", url=ctx.url)
    uploads = find_uploads(ctx)
    found = uploads.uploads
    # A server that shows nothing may show nothing ever.
    note = uploads.note if found else NOTES[find_listing(ctx)]
    jobs = OverJobs(ctx)
    leftovers = _leftovers(ctx) if any(file_job(upload.key) for upload in found) else {}
    announcers = find_announcers(ctx, found)
    hadoops = find_upload_owners(ctx, found)
    now_s = ctx.clock.now_s()
    pending = []
    for upload in found:
        job, committer, state = "", "", "other tool"
        owners = sorted(_owners(upload, announcers))
        if owners:
            live = [owner for owner in owners if not jobs.is_over(owner, upload.key)]
            job, committer, state = (live or owners)[-1], TWO_PHASE.name, "unfinished" if live else "over"
        elif (classic := file_job(upload.key)) is not None:
            job, leftover = classic, leftovers.get(classic)
            if leftover is not None and leftover.committer == EMR.name:
                leftover = (
                    None  # it has nothing but uploads: so has a live job of others that has committed no task yet
                )
            committer = leftover.committer if leftover is not None else ""
            state = "unknown" if leftover is None else "over" if leftover.action is Action.CLEAN else "unfinished"
        elif (foreign := hadoops.get((upload.key, upload.upload_id))) is not None:
            job, committer, state = foreign.job, foreign.committer, HADOOPS
        age_s = max(now_s - upload.initiated_at_s, 0.0)
        pending.append(PendingUpload(upload, upload.key[len(ctx.prefix) :], job, committer, state, age_s))
    return sorted(pending, key=lambda one: -one.age_s), note


def _owners(upload: UploadInfo, announcers: Mapping[str, set[JobId]]) -> Collection[JobId]:
    """The jobs of `two_phase` that an upload may be of: as its key tells, else as they have announced."""
    job = job_of(upload.key)
    return announcers.get(upload.key, ()) if job is None else (job,)


def _leftovers(ctx: CommitContext) -> dict[str, Leftover]:
    """Jobs without a log, by id: they say nothing of themselves but what they have left."""
    found: dict[str, Leftover] = {}
    for committer in COMMITTERS.values():
        try:
            leftovers = find_leftovers(ctx, committer)
        except CorruptDataError:
            continue  # its uploads stay unknown; holdfast recover says what is wrong
        for leftover in leftovers:
            found.setdefault(leftover.job, leftover)
    return found
