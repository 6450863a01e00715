"""Report and abort Hadoop's jobs: part of `recover`, `uploads` and `verify`; only `recover` changes anything (C7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.dead_jobs.file_output_jobs import file_output_job_of, list_hadoop_file_leftovers
from holdfast.commit.hadoop.dead_jobs.s3a_jobs import (
    extract_job_ids_from_path,
    find_s3a_jobs,
    list_s3a_leftovers,
    load_recorded_uploads,
)
from holdfast.commit.ids import job_in_file_name
from holdfast.commit.layout import job_in_key
from holdfast.commit.leftovers import (
    ForeignJobPolicy,
    ForeignJobSupport,
    ForeignLeftover,
    Leftover,
    RecoveryReport,
    UploadOwner,
    end_leftover_job,
    is_job_quiet,
)
from holdfast.stores.base import UploadInfo, iter_uploads, multipart


def find_hadoop_jobs(ctx: CommitContext, abort: bool = False, insist: bool = False) -> Iterator[ForeignLeftover]:
    """List the jobs of Hadoop's committers on this destination, including live jobs, each with a recovery action.

    Args:
        abort: whether to abort dead jobs; otherwise they are only reported.
        insist: abort jobs even if records are lost.
    """
    yield from list_s3a_leftovers(ctx, abort, insist)
    yield from list_hadoop_file_leftovers(ctx, abort, insist)


def describe_leftover(left: Leftover) -> str:
    """Describe an unfinished job of Hadoop in one sentence, which also says how to end the job if it is dead."""
    return (
        f"Hadoop job {left.job} ({left.committer}) is unfinished: {left.reason}; it is running, or dead (then run "
        "holdfast recover --foreign, and the application again)"
    )


def handle_dead_hadoop_jobs(
    ctx: CommitContext, report: RecoveryReport, foreign: ForeignJobPolicy, dry_run: bool, insist: bool
) -> None:
    """Report dead Hadoop jobs, and abort them if the policy says so; add the results to `report`.

    A finished job that left only its directory is reported only if it is to be removed. An upload whose name identifies
    no job may belong to a task of a live job, so no job counts as dead while such an upload is recent.
    """
    newest_stray_s: float | None = None
    for found in find_hadoop_jobs(ctx, foreign.abort, insist):
        leftover = found.leftover
        if not foreign.abort and found.is_over:
            continue
        if newest_stray_s is None:
            newest_stray_s = _find_newest_stray_start_s(ctx)
        active_at_s = max(leftover.active_at_s, newest_stray_s)
        is_alive = not is_job_quiet(active_at_s, ctx.clock.now_s(), foreign.older_than_s)
        end_leftover_job(report, leftover, is_alive=is_alive, dry_run=dry_run, is_foreign=True)


def find_upload_owners(ctx: CommitContext, uploads: Sequence[UploadInfo]) -> Mapping[tuple[str, str], UploadOwner]:
    """Return the owner of each upload whose path, file name or record shows that it belongs to a Hadoop job."""
    owners: dict[tuple[str, str], UploadOwner] = {}
    found = find_s3a_jobs(ctx)
    jobs = {one.job: UploadOwner(one.job, one.committer) for one in found}
    for upload in uploads:
        ids = upload.key, upload.upload_id
        job = file_output_job_of(upload.key[len(ctx.prefix) :])
        if job is not None:
            owners[ids] = UploadOwner(job, "hadoop-file")
        for job in extract_job_ids_from_path(upload.key):
            if job in jobs:
                owners.setdefault(ids, jobs[job])
    if len(owners) < len(uploads):
        for one in found:
            for ids in load_recorded_uploads(ctx, one):
                owners.setdefault(ids, jobs[one.job])
    return owners


def _find_newest_stray_start_s(ctx: CommitContext) -> float:
    """Return the start time of the newest upload that belongs to no known job; 0 if none exists."""
    if ctx.store.capabilities.multipart is None:
        return 0.0
    found = iter_uploads(multipart(ctx.store), ctx.prefix)
    strays = [one for one in found if job_in_key(one.key) is None and job_in_file_name(one.key) is None]
    owners = find_upload_owners(ctx, strays) if strays else {}
    return max((one.initiated_at_s for one in strays if (one.key, one.upload_id) not in owners), default=0.0)


HADOOP_JOBS = ForeignJobSupport(
    find=find_hadoop_jobs, describe=describe_leftover, end=handle_dead_hadoop_jobs, owners=find_upload_owners
)
