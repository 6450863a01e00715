"""Hadoop's jobs in `recover`, `uploads` and `verify`: found by all, touched only by `recover` and on request (C7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.commit.attempt_names import file_job
from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop_jobs.file_jobs import file_job_of, find_file_jobs
from holdfast.commit.hadoop_jobs.set_ending import judge_set_jobs
from holdfast.commit.hadoop_jobs.set_jobs import find_set_jobs
from holdfast.commit.hadoop_jobs.set_look import recorded_uploads
from holdfast.commit.hadoop_jobs.values import Foreign, HadoopLeftover, Resolution, ids_in
from holdfast.commit.layout import job_of
from holdfast.commit.recovery_report import RecoveryReport, end_leftover, is_quiet
from holdfast.stores.base import UploadInfo, iter_uploads, multipart

__all__ = ["Owner", "describe", "end_hadoop_jobs", "find_hadoop_jobs", "find_upload_owners"]


class Owner(NamedTuple):
    """Whose an upload is."""

    job: str
    committer: str


def find_hadoop_jobs(
    ctx: CommitContext, resolution: Resolution | None = None, *, insist: bool = False
) -> Iterator[HadoopLeftover]:
    """Jobs of Hadoop's committers on this destination, each with what may be done about it; live ones are among them.

    Args:
        resolution: what a person wants done; None: nothing.
        insist: commit jobs although nobody knows whether all of their tasks had committed.
    """
    yield from judge_set_jobs(ctx, list(find_set_jobs(ctx)), resolution, insist=insist)
    yield from find_file_jobs(ctx, resolution, insist=insist)


def describe(left: Leftover) -> str:
    """A job that is not over, in one sentence, and what to do about it if it is dead."""
    return (
        f"job {left.job} of Hadoop ({left.committer}) is not over: {left.reason}; running, or dead (then run holdfast "
        "recover --foreign abort, or --foreign commit)"
    )


def end_hadoop_jobs(
    ctx: CommitContext, report: RecoveryReport, foreign: Foreign, *, dry_run: bool, insist: bool
) -> None:
    """Say what dead jobs of Hadoop there are, and end them if somebody wishes so; what was done goes into `report`.

    A job that is through and has only left its directory is mentioned only if it is to be ended. An upload under a name
    that tells nobody's job may be of a live job's task: while there is a young one, no job counts as dead.
    """
    newest_stray_s: float | None = None
    for found in find_hadoop_jobs(ctx, foreign.resolution, insist=insist):
        leftover = found.leftover
        if foreign.resolution is None and found.is_over:
            continue
        if newest_stray_s is None:
            newest_stray_s = _newest_stray(ctx)
        active_at_s = max(leftover.active_at_s, newest_stray_s)
        is_alive = not is_quiet(active_at_s, ctx.clock.now_s(), foreign.older_than_s)
        end_leftover(report, leftover, is_alive=is_alive, dry_run=dry_run, is_foreign=True)


def find_upload_owners(ctx: CommitContext, uploads: Sequence[UploadInfo]) -> Mapping[tuple[str, str], Owner]:
    """Which of the pending uploads are of jobs of Hadoop: by their records, else by the names of the files."""
    owners: dict[tuple[str, str], Owner] = {}
    for upload in uploads:
        job = file_job_of(upload.key[len(ctx.prefix) :])
        if job is not None:
            owners[upload.key, upload.upload_id] = Owner(job, "hadoop-file")
    found = list(find_set_jobs(ctx))
    jobs = {one.job: Owner(one.job, one.committer) for one in found}
    for upload in uploads:
        for job in ids_in(upload.key):
            if job in jobs:
                owners.setdefault((upload.key, upload.upload_id), jobs[job])
    if len(owners) < len(uploads):
        for one in found:
            for ids in recorded_uploads(ctx, one):
                owners.setdefault(ids, jobs[one.job])
    return owners


def _newest_stray(ctx: CommitContext) -> float:
    """When the newest upload was started of which nobody knows whose it is; 0 if there is none."""
    if ctx.store.capabilities.multipart is None:
        return 0.0
    found = iter_uploads(multipart(ctx.store), ctx.prefix)
    strays = [one for one in found if job_of(one.key) is None and file_job(one.key) is None]
    owners = find_upload_owners(ctx, strays) if strays else {}
    return max((one.initiated_at_s for one in strays if (one.key, one.upload_id) not in owners), default=0.0)
