"""Pending uploads below a url, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit import CommitContext
from holdfast.commit.alive import OverJobs
from holdfast.commit.ids import file_owner
from holdfast.errors import UnsupportedError
from holdfast.stores.base import UploadInfo, iter_uploads, multipart

__all__ = ["PendingUpload", "find_pending"]


@dataclass(frozen=True)
class PendingUpload:
    """An upload and what its key tells of its owner.

    Attributes:
        path: relative to the url.
        job: empty if Holdfast did not start it.
        state: ``over`` (nobody will complete it), ``unfinished`` (its job may), or ``other tool``.
    """

    upload: UploadInfo
    path: str
    job: str
    state: str
    age_s: float


def find_pending(ctx: CommitContext) -> list[PendingUpload]:
    """Every pending upload below the context's prefix, oldest first.

    Guarantee: an upload of a job that can still commit is never called ``over``, also where the url is a parent of the
    job's destination.

    Raises:
        UnsupportedError: the store keeps no uploads.
    """
    if ctx.store.capabilities.multipart is None:
        raise UnsupportedError("this place keeps no pending uploads: give an s3:// url", url=ctx.url)
    found = list(iter_uploads(multipart(ctx.store), ctx.prefix))
    jobs = OverJobs(ctx)
    now_s = ctx.clock.now_s()
    pending = []
    for upload in found:
        owner = file_owner(upload.key)
        job = "" if owner is None else owner.job
        state = "other tool"
        if owner is not None:
            state = "over" if jobs.is_over(owner.job, upload.key) else "unfinished"
        age_s = max(now_s - upload.initiated_at_s, 0.0)
        pending.append(PendingUpload(upload, upload.key[len(ctx.prefix) :], job, state, age_s))
    return sorted(pending, key=lambda one: -one.age_s)
