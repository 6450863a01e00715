"""Implement `stocator`: tasks write to the final directory under attempt names; ``_SUCCESS`` lists files that count.

The real Stocator runs below FileOutputCommitter and learns from its renames which attempts have committed; here the
task reports show that. These guarantees of ARCHITECTURE.md do not hold:

- C2: files of attempts that do not count are visible until the job commit deletes those that it finds.
- C4: every file is visible as soon as it is written; only readers that rely on ``_SUCCESS`` wait for the job commit.
- C5, C6: an attempt that continues after its abort, or after the job's end, adds files that nothing deletes.
- C8, C9: no decision is logged, and mode ``overwrite`` deletes data before the first task runs; files of a dead job
  stay visible.

Source: paper 000, XII.B and Table V.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.committer import CONSISTENT_LISTING, MULTIPART, Committer, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible_files, start_truncating_job
from holdfast.commit.ids import AttemptId, FileOwner, JobId
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.sinks import UploadSink
from holdfast.commit.success_file import has_job_succeeded, write_success_report
from holdfast.commit.task import AttemptContext, make_totals_commit, sum_reported_totals
from holdfast.errors import HoldfastError
from holdfast.guarantees import EMPTIED, NO_RECORD, STILL_WRITING, TWO_DRIVERS, UNKNOWN, no, yes
from holdfast.stores.base import iter_uploads, multipart
from holdfast_checker.specimens.direct import open_uploaded_file

_MARK = re.compile(r"(\d{17}-[0-9a-f]{12})-attempt-([0-9a-f]{12})")


# --- names ------------------------------------------------------------------------------------------------------------
def _format_attempt_ids(owner: FileOwner) -> str:
    return f"{owner.job}-attempt-{owner.attempt}"


def _file_name_of_attempt(owner: FileOwner, number: int, extension: str) -> str:
    return f"part-{owner.task:05d}-{_format_attempt_ids(owner)}-c{number:03d}{extension}"


def _insert_ids_into_path(path: str, owner: FileOwner) -> str:
    """Return `path` with the ids of the job and the attempt in its last segment, before the first dot. Idempotent."""
    directory, slash, name = path.rpartition("/")
    if _parse_owner(path) == (owner.job, owner.attempt):
        return path
    stem, dot, extension = name.partition(".")
    return f"{directory}{slash}{stem}-{_format_attempt_ids(owner)}{dot}{extension}"


def _parse_owner(path: str) -> tuple[JobId, AttemptId] | None:
    """Return the ids of the last job and attempt in a file's name, where `_insert_ids_into_path` has put them."""
    found = _MARK.findall(path.rpartition("/")[2])
    return (JobId(found[-1][0]), AttemptId(found[-1][1])) if found else None


def _make_job_path_filter(job: JobId) -> Callable[[str], bool]:
    return lambda path: (_parse_owner(path) or ("", ""))[0] == job


def _abort_uploads_and_delete_files(ctx: CommitContext, in_scope: Callable[[str], bool]) -> None:
    """Abort pending uploads, then delete visible files."""
    store = multipart(ctx.store)
    for upload in list(iter_uploads(store, ctx.prefix)):
        if in_scope(upload.key):
            store.abort_upload(upload.key, upload.upload_id)
    delete_visible_files(ctx, in_scope)


def _files_and_uploads_of_job(ctx: CommitContext, job: JobId) -> Iterator[tuple[str, AttemptId]]:
    for path, _info in layout.iter_visible(ctx.store, ctx.prefix):
        owner = _parse_owner(path)
        if owner is not None and owner[0] == job:
            yield path, owner[1]


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Write the names of the accepted attempts' files to ``_SUCCESS``, then delete the files of all other attempts.

    Guarantee: for readers that take the file names from ``_SUCCESS``, all of the job's files appear at one moment.
    Idempotent.

    Crash: files of attempts that were not accepted may still be visible.
    """
    present = reports.check(job)
    winners = {commit.attempt for commit in present}
    with measure.stage("job_stage_list_files"):
        paths = sorted(path for path, attempt in _files_and_uploads_of_job(measure.ctx, job.job) if attempt in winners)

    totals = sum_reported_totals(present)
    outcome = write_success_report(measure, job, totals=totals, tasks=len(present), paths=paths, limit=len(paths))
    of_job = _make_job_path_filter(job.job)
    try:
        with measure.stage("job_stage_cleanup"):
            _abort_uploads_and_delete_files(
                measure.ctx, lambda path: of_job(path) and (_parse_owner(path) or ("", ""))[1] not in winners
            )
    except HoldfastError as error:
        left = (
            "files of attempts that do not count may be left: delete the files that _SUCCESS does not name "
            f"({error.message})"
        )
        outcome = replace(outcome, finished=False, pending_reason=left)
    return outcome


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort the job's uploads and delete its files, unless ``_SUCCESS`` names the job.

    Attempts that are still writing leave files, which violates C5 (abortable).
    """
    committed = has_job_succeeded(measure.ctx, job.job)
    if not committed:
        _abort_uploads_and_delete_files(measure.ctx, _make_job_path_filter(job.job))
    return JobOutcome(job=job.job, committed=committed)


def open_file(scope: AttemptContext, path: str) -> UploadSink:
    """Open a multipart upload to the final directory, under a file name that contains the ids of job and attempt."""
    target = _insert_ids_into_path(path, scope.owner)
    return open_uploaded_file(scope, target)


def commit_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Return the attempt's commit message, and do nothing else: the files are already at their final paths."""
    return make_totals_commit(scope.owner, files)


def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the files that an attempt has written so far. If it is still writing, its later files stay."""
    _abort_uploads_and_delete_files(ctx, lambda path: _parse_owner(path) == (owner.job, owner.attempt))


_GUARANTEES = {
    "speculative-tasks": yes("names contain the attempt", unless=STILL_WRITING),
    "recoverable-job": no("no record says which tasks had finished"),
    "abortable-task": yes("its files are found by their names"),
    "abortable-job": yes("its files are deleted by their names"),
    "uncommitted-output-observable": yes("files are written to their final place"),
    "committed-output-observable": yes("files are written to their final place"),
    "atomic-task-commit": yes("there is nothing to do"),
    "atomic-job-commit": yes("it is one put of _SUCCESS, which names the files"),
    "partitioned-executor": no("it writes into the destination, even after the job's end"),
    "C1": yes("names contain the attempt, so none is replaced", unless=TWO_DRIVERS),
    "C2": yes("the job commit deletes the files of other attempts", unless=STILL_WRITING),
    "C3": yes("the messages say which attempts' files go into _SUCCESS"),
    "C4": no("files appear while tasks run"),
    "C5": no("a slow task continues to write"),
    "C6": no("a slow attempt writes into the destination"),
    "C7": yes("the names of its files contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("its commit, run again, deletes files that late attempts have added"),
    "replaced-data": no(EMPTIED),
}

STOCATOR = Committer(
    name="stocator",
    summary="tasks write to the final directory under names of their attempt; _SUCCESS names the files that count",
    source="paper 000 (XII.B, Table V)",
    needs=(MULTIPART, CONSISTENT_LISTING),
    guarantees=_GUARANTEES,
    setup=start_truncating_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_file,
    commit_task=commit_task,
    leaves_records=False,
    name_file=_file_name_of_attempt,
    abort_task=abort_task,
)
