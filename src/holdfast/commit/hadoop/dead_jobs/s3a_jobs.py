"""Find dead jobs of Hadoop's magic committer, and abort them on request.

    <destination>/__magic_job-<uuid>/job-<uuid>/00/task_….pendingset                     from 3.4 on
    <destination>/__magic_job-<uuid>/job-<uuid>/00/tasks/attempt_…/__base/<path>.pending
    <destination>/__magic/job-<uuid>/00/…                                                until 3.3

The layouts were recorded from runs of Hadoop 3.4.1 and 3.5.0, except for the older magic directory, which follows
Hadoop's documentation. Hadoop does not mark files as its own: `hadoop.completion.is_upload_visible` says which file
counts as the job's. An abort deletes visible files only if their names carry the job's id; files with other names may
belong to another job that wrote the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from holdfast.commit.codec import decode_record, require_valid
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import Upload, abort_selected_uploads, bucket_name
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.pending import (
    MAGIC,
    MAGIC_JOB_PREFIX,
    SinglePending,
    decode_pending,
    decode_pendingset,
    is_pending_path,
    is_pendingset_path,
)
from holdfast.commit.hadoop.pending_recovery import (
    JobUploadState,
    JobWithPendingSets,
    choose_recovery_action,
    has_names_without_job_id,
    inspect_jobs,
    make_leftover,
)
from holdfast.commit.ids import is_job_id, job_in_file_name
from holdfast.commit.layout import job_in_key
from holdfast.commit.leftovers import ForeignLeftover, RecoveryAction
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import iter_objects, multipart

_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:job|application)_\d+_\d+)(?![0-9A-Za-z])"
)
_MAGIC_DIR = re.compile(rf"({MAGIC_JOB_PREFIX}([^/]+)|{MAGIC}/(?:job-)?([^/]+))/(.*)", re.DOTALL)
_MAGIC_SET = re.compile(r"(?:.*/)?\d+/[^/]+")


def extract_job_ids_from_path(path: str) -> tuple[str, ...]:
    """Return the ids of Spark writes and YARN jobs in the last segment of `path`."""
    return tuple(_ID.findall(path.rpartition("/")[2]))


# --- finding ----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _ListedJob:
    """The facts about a job that the keys in a listing show."""

    job: str
    sets: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    active_at_s: float = 0.0


def find_s3a_jobs(ctx: CommitContext) -> list[JobWithPendingSets]:
    """List the jobs of Hadoop's magic committer on this destination, including live jobs.

    Jobs whose ids Holdfast generated are skipped: Holdfast's own committer `magic` recovers them, even if Hadoop ran
    their tasks.
    """
    if ctx.store.capabilities.multipart is None:
        return []
    jobs: dict[str, _ListedJob] = {}
    for info in iter_objects(ctx.store, ctx.key(MAGIC), markers=True):
        match = _MAGIC_DIR.fullmatch(info.key[len(ctx.prefix) :])
        job = "" if match is None else match[2] or match[3]
        if match is None or is_job_id(job):
            continue
        noted = jobs.setdefault(match[1], _ListedJob(job))
        noted.active_at_s = max(noted.active_at_s, info.modified_at_s)
        in_job = "/tasks/" not in match[4] and _MAGIC_SET.fullmatch(match[4]) is not None
        if in_job and is_pendingset_path(info.key):
            noted.sets.append(info.key)
        elif not in_job and is_pending_path(info.key):
            noted.attempts.append(info.key)
    return [
        JobWithPendingSets(
            committer="hadoop-magic",
            job=noted.job,
            active_at_s=noted.active_at_s,
            sets=partial(sorted, noted.sets),
            load=partial(_load_uploads, ctx, noted.job),
            attempts=noted.attempts,
            ids_of=extract_job_ids_from_path,
            clean_up=partial(_clean_up_dead_job, noted.job, directory),
        )
        for directory, noted in sorted(jobs.items())
    ]


def _load_uploads(ctx: CommitContext, job: str, key: str) -> Sequence[SinglePending]:
    """Load one record's uploads, and check that each belongs to this destination and to no Holdfast job."""
    found: Sequence[SinglePending]
    try:
        data, bucket = ctx.store.get(key), bucket_name(ctx.url)
    except NotFoundError:
        return ()  # the job is running, or another process is ending it
    if is_pending_path(key):
        found = [decode_pending(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job)]
    else:
        found = decode_pendingset(key, data, bucket=bucket, prefix=ctx.prefix, job_id=job).commits

    def refuse_holdfast_uploads() -> None:
        # A forged record must not make recovery end an upload of a Holdfast job (C7).
        own = [one.key for one in found if job_in_key(one.key) is not None or job_in_file_name(one.key) is not None]
        require_valid(not own, f"it names a file of a Holdfast job: {own[:1]}")

    decode_record(key, refuse_holdfast_uploads)
    return found


def load_recorded_uploads(ctx: CommitContext, job: JobWithPendingSets) -> set[Upload]:
    """Return the uploads that the job's readable records name, whether or not they are still pending."""

    def load_uploads(key: str) -> Sequence[SinglePending]:
        try:
            return job.load(key)
        except CorruptDataError:
            return ()  # the uploads that it named are unknown

    found = ctx.runner.map(load_uploads, (*job.sets(), *job.attempts))
    return {(one.key, one.upload_id) for pendings in found for one in pendings}


# --- ending -----------------------------------------------------------------------------------------------------------
def list_s3a_leftovers(ctx: CommitContext, abort: bool, insist: bool) -> Iterator[ForeignLeftover]:
    """List the leftover data of each job of Hadoop's magic committer at the destination, with a recovery action.

    Args:
        abort: whether to abort dead jobs; otherwise they are only reported.
        insist: abort a job even if one of its records cannot be read, so that the uploads that it names are unknown.
    """
    jobs = find_s3a_jobs(ctx)
    for job, found in zip(jobs, inspect_jobs(ctx, jobs), strict=True):
        leftover = make_leftover(ctx, job, found, partial(_choose_recovery_action, abort, insist))
        yield ForeignLeftover(leftover=leftover, is_over=_has_job_ended(found))


def _has_job_ended(found: JobUploadState) -> bool:
    """Check whether the job has ended: nothing is pending, and visible files, if there are any, are complete.

    Visible files are complete if ``_SUCCESS`` names the job, or if any ``_SUCCESS`` exists and no file is missing.
    """
    if found.damaged or found.uploads:
        return False
    return found.succeeded or not found.visible or (found.marked and not found.missing)


def _choose_recovery_action(
    abort: bool, insist: bool, job: JobWithPendingSets, found: JobUploadState
) -> tuple[RecoveryAction, str]:
    if found.damaged and abort and insist and not found.orphans:
        found = replace(found, damaged="")
    action, reason = choose_recovery_action(job, found)
    if found.damaged:
        reason = (
            f"{reason}: repair it, or abort the job with --foreign --accept-damage, after deleting visible files with "
            f"{job.job} in their names; then abort the uploads that only this record names with holdfast uploads abort "
            "--all-tools"
        )
    if not abort:
        return RecoveryAction.KEEP, reason
    if action in (RecoveryAction.FORWARD, RecoveryAction.BACK):
        if has_names_without_job_id(job, found):
            return RecoveryAction.KEEP, (
                f"{reason}; the names of visible files do not carry its id, so none is deleted: delete them yourself"
            )
        return RecoveryAction.BACK, reason
    return action, reason


def _clean_up_dead_job(job: str, directory: str, measure: Measure, found: JobUploadState) -> None:
    """Abort the job's pending uploads, then delete its records. Never touch uploads that no record or name identifies.

    Records are deleted after the uploads are aborted. If the driver is alive after all, it finds that its uploads are
    aborted, and fails. If the records were deleted first, the driver would find no sets and report success without any
    files.
    """
    ctx = measure.ctx
    store = multipart(ctx.store)
    for _done in ctx.runner.map(lambda upload: store.abort_upload(*upload), sorted(found.uploads)):
        pass
    abort_selected_uploads(
        measure,
        lambda pending: {
            upload for upload in pending if upload in found.uploads or job in extract_job_ids_from_path(upload[0])
        },
    )
    delete_dir(ctx, directory, unfinished=False)
