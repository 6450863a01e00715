"""Report and recover Hadoop's jobs: part of `recover`, `uploads` and `verify`; only `recover` changes anything (C7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.dead_jobs.file_output_jobs import file_output_job_of, hadoop_file_leftovers
from holdfast.commit.hadoop.dead_jobs.hadoop_job import ids_in
from holdfast.commit.hadoop.dead_jobs.s3a_recovery import s3a_leftovers
from holdfast.commit.hadoop.dead_jobs.s3a_state import find_s3a_jobs, recorded_uploads
from holdfast.commit.ids import file_job
from holdfast.commit.layout import job_of
from holdfast.commit.leftovers import (
    ForeignJobPolicy,
    ForeignJobs,
    ForeignLeftover,
    Leftover,
    RecoveryReport,
    Resolution,
    UploadOwner,
    end_leftover,
    is_quiet,
)
from holdfast.stores.base import UploadInfo, iter_uploads, multipart


def find_hadoop_jobs(
    ctx: CommitContext, resolution: Resolution | None = None, insist: bool = False
) -> Iterator[ForeignLeftover]:
    """List the jobs of Hadoop's committers on this destination, including live jobs, each with a recovery action.

    Args:
        resolution: how the user wants dead jobs to end; None to leave them alone.
        insist: commit jobs even if it is unknown whether all of their tasks had committed.
    """
    yield from s3a_leftovers(ctx, list(find_s3a_jobs(ctx)), resolution, insist=insist)
    yield from hadoop_file_leftovers(ctx, resolution, insist=insist)


def describe(left: Leftover) -> str:
    """Return one sentence about an unfinished job, and how to end it if it is dead."""
    return (
        f"Hadoop job {left.job} ({left.committer}) is unfinished: {left.reason}; it is running, or dead (then run "
        "holdfast recover --foreign abort, or --foreign commit)"
    )


def end_hadoop_jobs(
    ctx: CommitContext, report: RecoveryReport, foreign: ForeignJobPolicy, dry_run: bool, insist: bool
) -> None:
    """Report dead Hadoop jobs, and end them if the policy has a resolution; add the results to `report`.

    A finished job that left only its directory is reported only if the policy has a resolution. An upload whose name
    identifies no job may belong to a task of a live job, so no job counts as dead while such an upload is recent.
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


def find_upload_owners(ctx: CommitContext, uploads: Sequence[UploadInfo]) -> Mapping[tuple[str, str], UploadOwner]:
    """Return the owner of each upload whose path, file name or record shows that it belongs to a Hadoop job."""
    owners: dict[tuple[str, str], UploadOwner] = {}
    for upload in uploads:
        job = file_output_job_of(upload.key[len(ctx.prefix) :])
        if job is not None:
            owners[upload.key, upload.upload_id] = UploadOwner(job, "hadoop-file")
    found = list(find_s3a_jobs(ctx))
    jobs = {one.job: UploadOwner(one.job, one.committer) for one in found}
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
    """Return the start time of the newest upload that belongs to no known job; 0 if none exists."""
    if ctx.store.capabilities.multipart is None:
        return 0.0
    found = iter_uploads(multipart(ctx.store), ctx.prefix)
    strays = [one for one in found if job_of(one.key) is None and file_job(one.key) is None]
    owners = find_upload_owners(ctx, strays) if strays else {}
    return max((one.initiated_at_s for one in strays if (one.key, one.upload_id) not in owners), default=0.0)


HADOOP_JOBS = ForeignJobs(find=find_hadoop_jobs, describe=describe, end=end_hadoop_jobs, owners=find_upload_owners)
