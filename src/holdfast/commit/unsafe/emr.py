"""`emr`: delayed uploads that the *task* commit completes (paper 000, XII.C; Table V). Here for comparison.

It saves the job commit's work and the records, and gives up, by the names of ARCHITECTURE.md:

- C4: the files of every committed task are visible while the job runs.
- C5: they stay when the job fails or is aborted; somebody has to delete them by hand.
- C2, C3: a task commit completes its uploads side by side and may die halfway; the next attempt writes files of the
  same names over these, and if it writes fewer, some of the dead one's stay. A slow attempt replaces an accepted one's.
- C6: it does so also after the job is committed.
- C8, C9: nothing records a decision, and mode ``overwrite`` deletes before the first task runs.

Source: paper 000, XII.C and Table V; facts on EMRFS, which is closed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit.attempt_names import file_job, file_name
from holdfast.commit.committer import MULTIPART, Action, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC_JOB_PREFIX
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_ends import start_over, succeed
from holdfast.commit.layout import folders, is_hidden
from holdfast.commit.magic.recovery import magic_jobs
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import complete_all, pending_of_entry
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit, Totals
from holdfast.commit.staging.layout import staged_jobs
from holdfast.commit.task import TaskScope, TaskSteps, totals_of
from holdfast.commit.two_phase.manifests import check_messages
from holdfast.commit.two_phase.publication import open_upload
from holdfast.errors import AccessDeniedError, HoldfastError
from holdfast.stores.base import UploadInfo, iter_objects, iter_uploads, multipart

__all__ = ["EMR"]


# --- tasks ------------------------------------------------------------------------------------------------------------
def _commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Show the attempt's files, side by side.

    Raises:
        HoldfastError: some are visible now, the others are not; the next attempt has to write over them.

    Crash: the same; the uploads of the others wait until the job ends.
    """
    measure, owner = scope.measure, scope.owner
    pendings = tuple(
        pending_of_entry(measure.ctx, file, owner, uri=encode_uri(measure.ctx.url, file.path)) for file in files
    )
    with measure.stage("task_stage_complete_uploads"):
        one = PendingSet(job_id=owner.job, commits=pendings)
        complete_all(measure, [one], lambda found: found, revert=False)
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals_of(files))


def _abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """The sinks have aborted what still waited; what a dead process left goes with the job, what is visible stays."""


# --- the driver -------------------------------------------------------------------------------------------------------
def _commit_job(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """Write ``_SUCCESS``, which names no files because tasks report none, then abort what failed attempts left."""
    reported = check_messages(job, commits, tasks)
    totals = sum((commit.totals for commit in reported), Totals())
    outcome = succeed(measure, job, totals=totals, tasks=len(reported), paths=())
    with measure.stage("job_stage_cleanup"):
        left = _abort_waiting(measure, job.job)
    return replace(outcome, finished=not left, pending_reason=left)


def _abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort what still waits; the files of committed tasks stay (C5 does not hold)."""
    left = _abort_waiting(measure, job.job)
    return JobOutcome(job=job.job, committed=False, finished=not left, pending_reason=left)


def _abort_waiting(measure: Measure, job: JobId) -> str:
    try:
        _abort_uploads(measure.ctx, job)
    except HoldfastError as error:
        return f"pending uploads may be left, run holdfast recover: {error.message}"
    return ""


def _job_uploads(ctx: CommitContext) -> dict[JobId, list[UploadInfo]]:
    """Pending uploads to final places under names as the classic committers give them, by job.

    Those below hidden directories are of committers that move whole files from there.
    """
    jobs: dict[JobId, list[UploadInfo]] = {}
    for upload in iter_uploads(multipart(ctx.store), ctx.prefix):
        job = file_job(upload.key)
        if job is not None and not is_hidden(upload.key[len(ctx.prefix) :]):
            jobs.setdefault(job, []).append(upload)
    return jobs


def _abort_uploads(ctx: CommitContext, job: JobId) -> None:
    store = multipart(ctx.store)
    waiting = _job_uploads(ctx).get(job, [])
    for _done in ctx.runner.map(lambda upload: store.abort_upload(upload.key, upload.upload_id), waiting):
        pass


def _has_magic_below(ctx: CommitContext, job: JobId, uploads: list[UploadInfo]) -> bool:
    """Whether it is a job of `magic` in another destination (C7): its directory is above all its files."""
    common = posixpath.commonprefix([upload.key for upload in uploads])

    def is_magic_home(folder: str) -> bool:
        try:
            return next(iter_objects(ctx.store, f"{folder}{MAGIC_JOB_PREFIX}{job}/", page_size=2), None) is not None
        except AccessDeniedError:
            if folder.startswith(ctx.prefix):
                raise
            return False  # credentials for this destination alone, as in `holdfast.commit.two_phase.live_jobs`

    return any(is_magic_home(folder) for folder in folders(common))


def _leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """Jobs that have nothing but uploads: those of `emr`, and of any classic committer whose records are gone.

    So does a live job of `emr`, or of `staging-*` where its shared directory is not at hand: only age tells it apart.
    """
    if ctx.store.capabilities.multipart is None:
        return
    recorded = {*magic_jobs(ctx), *staged_jobs(ctx)}
    for job, uploads in sorted(_job_uploads(ctx).items()):
        if job not in recorded and not _has_magic_below(ctx, job, uploads):
            yield Leftover(
                committer="emr",
                job=job,
                active_at_s=max(upload.initiated_at_s for upload in uploads),
                action=Action.BACK,
                reason="its uploads wait and no record says what for",
                finish=partial(_abort_uploads, ctx, job),
                uploads=len(uploads),
            )


EMR = Committer(
    name="emr",
    summary="uploads to the final names, which each task's commit completes",
    source="paper 000 (XII.C, Table V)",
    needs=(MULTIPART,),
    modes=frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE}),
    start=start_over,
    task=TaskSteps(name_file=file_name, open_file=open_upload, commit=_commit_task, abort=_abort_task),
    commit=_commit_job,
    abort=_abort_job,
    leftovers=_leftovers,
    unsafe="every task shows its files before the job is decided, and they stay when it dies halfway or the job fails",
)
