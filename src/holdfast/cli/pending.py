"""Pending uploads below a url, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.commit import CommitContext
from holdfast.commit.ids import file_owner
from holdfast.commit.layout import job_record
from holdfast.errors import NotFoundError, UnsupportedError
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

    Guarantee: an upload of a job that can still commit is never called ``over``. The url may be a parent of the job's
    destination (``s3://bucket`` of ``s3://bucket/flights``): so the job's record is looked for in every folder above
    the upload. It is there before the first upload of its job, and goes after the last.

    Raises:
        UnsupportedError: the store keeps no uploads.
    """
    if ctx.store.capabilities.multipart is None:
        raise UnsupportedError("this place keeps no pending uploads: give an s3:// url", url=ctx.url)
    found = list(iter_uploads(multipart(ctx.store), ctx.prefix))
    announced: dict[str, bool] = {}
    now_s = ctx.clock.now_s()
    pending = []
    for upload in found:
        owner = file_owner(upload.key)
        job = "" if owner is None else owner.job
        state = "other tool"
        if owner is not None:
            records = [folder + job_record(owner.job) for folder in _folders(ctx.prefix, upload.key)]
            state = "unfinished" if any(_exists(ctx, key, announced) for key in records) else "over"
        age_s = max(now_s - upload.initiated_at_s, 0.0)
        pending.append(PendingUpload(upload, upload.key[len(ctx.prefix) :], job, state, age_s))
    return sorted(pending, key=lambda one: -one.age_s)


def _folders(prefix: str, key: str) -> Iterator[str]:
    """Every folder from `prefix` down to the one that holds `key`: one of them is the job's destination."""
    yield prefix
    for position, character in enumerate(key):
        if character == "/" and position >= len(prefix):
            yield key[: position + 1]


def _exists(ctx: CommitContext, key: str, known: dict[str, bool]) -> bool:
    if key not in known:
        try:
            ctx.store.head(key)
            known[key] = True
        except NotFoundError:
            known[key] = False
    return known[key]
