"""Implement `emr`: delayed uploads that the *task* commit completes (paper 000, XII.C; Table V). For comparison only.

The job commit has almost nothing to do, and the committer stores no records. These guarantees of ARCHITECTURE.md do not
hold:

- C4: the files of every committed task are visible while the job runs.
- C5: files of committed tasks stay visible if the job fails or is aborted; the user must delete them.
- C2, C3: a task commit completes its uploads in parallel and may die halfway. The next attempt replaces only files with
  the same names; if it writes fewer files, some files of the dead attempt stay. A slow attempt replaces the files of an
  accepted attempt.
- C6: a slow attempt replaces files even after the job is committed.
- C8, C9: no decision is logged, and mode ``overwrite`` deletes data before the first task runs.

Source: paper 000, XII.C and Table V, and published facts about EMRFS, which is closed source.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.commit.committer import MULTIPART, Committer, TaskReports, leave_attempt_to_cleanup
from holdfast.commit.context import Measure
from holdfast.commit.destination import start_truncating_job
from holdfast.commit.hadoop.completion import build_pending_record, complete_all_uploads
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import JobId
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit, Totals
from holdfast.commit.success_file import write_success_report
from holdfast.commit.task import AttemptContext, abort_uploads_with_job_id, count_totals, open_upload
from holdfast.errors import HoldfastError
from holdfast.guarantees import BOTH_COMMIT, EMPTIED, IN_TASK_COMMIT, NO_RECORD, UNDONE_BY_HAND, UNKNOWN, no, yes


def _abort_pending_uploads(measure: Measure, job: JobId) -> str:
    try:
        abort_uploads_with_job_id(measure.ctx, job)
    except HoldfastError as error:
        return f"pending uploads may be left, run holdfast recover: {error.message}"
    return ""


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Write ``_SUCCESS``, without file names, since tasks report none; then abort the uploads of failed attempts."""
    reported = reports.check(job)
    totals = sum((commit.totals for commit in reported), Totals())
    outcome = write_success_report(measure, job, totals=totals, tasks=len(reported), paths=())
    with measure.stage("job_stage_cleanup"):
        left = _abort_pending_uploads(measure, job.job)
    return replace(outcome, finished=not left, pending_reason=left)


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort the job's pending uploads; the files of committed tasks stay visible, which violates C5 (abortable)."""
    left = _abort_pending_uploads(measure, job.job)
    return JobOutcome(job=job.job, committed=False, finished=not left, pending_reason=left)


def commit_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Complete the attempt's uploads in parallel.

    Raises:
        HoldfastError: some files may already be visible although others are not; the next attempt must replace
            them.

    Crash: some files are visible; the uploads of the others are pending until the job ends.
    """
    measure, owner = scope.measure, scope.owner
    pending = tuple(
        build_pending_record(measure.ctx, one, owner, uri=encode_uri(measure.ctx.url, one.path)) for one in files
    )
    with measure.stage("task_stage_complete_uploads"):
        one = PendingSet(job_id=owner.job, commits=pending)
        complete_all_uploads(measure, [one], lambda found: found, revert=False)
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=count_totals(files))


_GUARANTEES = {
    "speculative-tasks": yes("the uploads of an attempt that does not commit stay pending", unless=BOTH_COMMIT),
    "recoverable-job": yes("the output of committed tasks is in place"),
    "abortable-task": yes("its uploads are aborted", unless=IN_TASK_COMMIT),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is a pending upload", unless=IN_TASK_COMMIT),
    "committed-output-observable": yes("the task commit completes its uploads"),
    "atomic-task-commit": no("it completes one upload after the other"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("its task commit completes uploads, even after the job's end"),
    "C1": yes("every committed file is in place", unless=BOTH_COMMIT),
    "C2": no("a task commit that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts that commit are mixed"),
    "C4": no("files appear with each task commit"),
    "C5": no("a slow task may commit afterwards"),
    "C6": no("a slow task commit completes its uploads"),
    "C7": yes("the names of its files and uploads contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("a task commit that is run again fails, because its uploads are already completed"),
    "replaced-data": no(EMPTIED),
}

EMR = Committer(
    name="emr",
    summary="uploads to the final names, which each task's commit completes",
    source="paper 000 (XII.C, Table V)",
    needs=(MULTIPART,),
    guarantees=_GUARANTEES,
    setup=start_truncating_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_upload,
    commit_task=commit_task,
    leaves_records=False,
    abort_task=leave_attempt_to_cleanup,
)
