"""Implement `direct`: tasks write to the final names, and the commits do nothing. For comparison only.

Spark once had such a committer, and removed it. These guarantees of ARCHITECTURE.md do not hold:

- C1, C3: the attempts of a task write to the same names. The last attempt to close a file wins, no matter which attempt
  the driver accepted.
- C2: an attempt that died leaves files, and its retry replaces only the files with the same names.
- C4: everything is visible as soon as it is written.
- C5: nothing is deleted when an attempt or a job aborts.
- C6: an attempt that is still running after the job's end continues to write.
- C8, C9: no decision is logged, and mode ``overwrite`` deletes data before the first task runs.

Source: paper 000, XII.A and Table V.
"""

from __future__ import annotations

from holdfast.commit.committer import MULTIPART, Committer, TaskReports, leave_attempt_to_cleanup
from holdfast.commit.context import Measure
from holdfast.commit.destination import start_truncating_job
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord
from holdfast.commit.sinks import UploadSink
from holdfast.commit.success_file import has_job_succeeded, write_success_report
from holdfast.commit.task import AttemptContext, complete_upload, make_totals_commit, open_upload, sum_reported_totals
from holdfast.errors import ConflictError
from holdfast.guarantees import ANOTHER_ENDS, EMPTIED, NO_RECORD, UNDONE_BY_HAND, UNKNOWN, no, yes


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Write ``_SUCCESS``, which names no files because the driver does not know them. Idempotent."""
    present = reports.check(job)
    return write_success_report(measure, job, totals=sum_reported_totals(present), tasks=len(present), paths=())


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Do nothing: files of an aborted job stay visible, which violates C5 (abortable)."""
    return JobOutcome(job=job.job, committed=has_job_succeeded(measure.ctx, job.job))


def open_uploaded_file(scope: AttemptContext, path: str) -> UploadSink:
    """Open a file for writing by multipart upload; it appears at `path` once it is closed and the upload is completed.

    Raises (possibly later, from background work):
        ConflictError: another process aborted the upload.
    """
    ctx, attempt = scope.ctx, scope.owner.attempt

    def complete_upload_of_file(file: FileEntry) -> None:
        if not complete_upload(ctx, file, attempt):
            raise ConflictError("the upload of a file was aborted: run the task again", url=ctx.url, path=path)

    return open_upload(scope, path, on_uploaded=complete_upload_of_file)


_GUARANTEES = {
    "speculative-tasks": no("both write to the same names"),
    "recoverable-job": no("no record says which tasks had finished"),
    "abortable-task": no("its files may have replaced those of another attempt"),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": yes("files are written to their final place"),
    "committed-output-observable": yes("files are written to their final place"),
    "atomic-task-commit": yes("there is nothing to do"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("it writes into the destination, even after the job's end"),
    "C1": no("a second attempt replaces files, whether it counts or not"),
    "C2": no("an attempt that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts are mixed"),
    "C4": no("files appear while tasks run"),
    "C5": no("a slow task continues to write"),
    "C6": no("a slow attempt writes into the destination"),
    "C7": yes("the names of its files contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": yes("only the writing itself has an effect", unless=ANOTHER_ENDS),
    "replaced-data": no(EMPTIED),
}

DIRECT = Committer(
    name="direct",
    summary="tasks write to the final names; the commits do nothing",
    source="paper 000 (XII.A, Table V)",
    needs=(MULTIPART,),
    guarantees=_GUARANTEES,
    setup=start_truncating_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_uploaded_file,
    commit_task=lambda scope, files: make_totals_commit(scope.owner, files),  # the files are at their final paths
    leaves_records=False,
    abort_task=leave_attempt_to_cleanup,
)
