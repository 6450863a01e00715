"""Find the pending uploads below a url, and the job that each upload belongs to."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import job_in_file_name
from holdfast.commit.intents import find_owning_jobs
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.recovery import UNKNOWN, find_leftovers
from holdfast.commit.registry import FOREIGN
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.commit.two_phase.pending_uploads import NOTES, LiveJobs, find_listing_support, find_uploads
from holdfast.errors import CorruptDataError, HoldfastError, UnsupportedError
from holdfast.stores.base import UploadInfo


class UploadState(str, enum.Enum):
    """Whether the job that started a pending upload can still complete it.

    Attributes:
        OVER: the job has ended, so nothing will complete the upload.
        UNFINISHED: the job may still commit, and needs the upload.
        UNKNOWN: a Holdfast job started the upload, but no record of that job is below this url.
        HADOOP: a job of Hadoop's committers started the upload. The job may be dead or alive; only ``holdfast recover
            --foreign`` ends it.
        OTHER_TOOL: neither Holdfast nor Hadoop started the upload.
    """

    OVER = "over"
    UNFINISHED = "unfinished"
    UNKNOWN = "unknown"
    HADOOP = "Hadoop's"
    OTHER_TOOL = "other tool"


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """A pending upload and its owner.

    Attributes:
        path: the path to which the file is being uploaded, relative to the url.
        job: the job's id; empty if another tool started the upload.
        committer: the committer of the job; empty if it is unknown.
    """

    upload: UploadInfo
    path: str
    job: str
    committer: str
    state: UploadState
    age_s: float


def find_pending_uploads(ctx: CommitContext) -> tuple[list[PendingUpload], str]:
    """Find every pending upload below the context's prefix, oldest first.

    Guarantee: an upload of a job that can still commit is never reported as ``OVER``, even if the url is a parent of
    the job's destination.

    Returns:
        The uploads, and a sentence that says which uploads the list may lack (empty if the list is complete).

    Raises:
        UnsupportedError: the store has no multipart uploads.
    """
    if ctx.store.capabilities.multipart is None:
        raise UnsupportedError("this store has no pending uploads: give an s3:// url", url=ctx.url)
    found, note = find_uploads(ctx)
    # An empty listing proves nothing, because some servers list no uploads at all.
    note = note if found else NOTES[find_listing_support(ctx)]
    owners = _UploadOwners(ctx, found)
    now_s = ctx.clock.now_s()
    pending = []
    for upload in found:
        job, committer, state = owners.owner_of(upload)
        age_s = max(now_s - upload.initiated_at_s, 0.0)
        pending.append(PendingUpload(upload, upload.key[len(ctx.prefix) :], job, committer, state, age_s))
    return sorted(pending, key=lambda one: -one.age_s), note


class _UploadOwners:
    """The jobs that own a destination's pending uploads; their records are read once for all uploads."""

    def __init__(self, ctx: CommitContext, uploads: Sequence[UploadInfo]) -> None:
        self._live = LiveJobs(ctx)
        self._leftovers = _map_leftovers(ctx) if any(job_in_file_name(upload.key) for upload in uploads) else {}
        self._owners_of = find_owning_jobs(ctx, uploads)
        self._foreign = {ids: owner for system in FOREIGN for ids, owner in system.owners(ctx, uploads).items()}

    def owner_of(self, upload: UploadInfo) -> tuple[str, str, UploadState]:
        """Return the job, its committer, and the state of the upload."""
        jobs = self._owners_of(upload.key)
        if jobs:
            live = [job for job in jobs if not self._live.has_ended(job, upload.key)]
            return (live or jobs)[-1], TWO_PHASE.name, UploadState.UNFINISHED if live else UploadState.OVER
        job = job_in_file_name(upload.key)
        if job is not None:
            return job, *self._find_owner_without_log(job)
        foreign = self._foreign.get((upload.key, upload.upload_id))
        if foreign is not None:
            return foreign.job, foreign.committer, UploadState.HADOOP
        return "", "", UploadState.OTHER_TOOL

    def _find_owner_without_log(self, job: str) -> tuple[str, UploadState]:
        """Return the committer of a job that is not in the log, and the state of its uploads."""
        leftover = self._leftovers.get(job)
        if leftover is None or leftover.committer == UNKNOWN:
            return "", UploadState.UNKNOWN
        return (
            leftover.committer,
            UploadState.OVER if leftover.action is RecoveryAction.CLEAN else UploadState.UNFINISHED,
        )


def _map_leftovers(ctx: CommitContext) -> dict[str, Leftover]:
    """Map job ids to the leftover data of jobs whose committers keep no log; nothing else shows these jobs."""
    found: dict[str, Leftover] = {}
    for leftover in find_leftovers(ctx, on_error=_tolerate_corrupt_record):
        found.setdefault(leftover.job, leftover)
    return found


def _tolerate_corrupt_record(_committer: str, error: HoldfastError) -> None:
    """Leave the uploads of a committer's jobs UNKNOWN; holdfast recover reports the corrupt record."""
    if not isinstance(error, CorruptDataError):
        raise error
