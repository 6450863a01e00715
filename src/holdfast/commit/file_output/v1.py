"""Implement ``file-v1``, FileOutputCommitter's algorithm 1: tasks commit by renaming a directory, the job by merging.

These guarantees do not hold, as the papers describe:

- C1: if an attempt dies or hangs while its commit replaces an earlier attempt's directory, that directory is already
  deleted, at least in part. If the job commits then, the task's output is missing, and nothing reports this.
- C4: files appear one by one during the job commit; a job commit that dies leaves some of them visible.
- C3: if two attempts of one task both commit, the later commit counts, no matter which attempt the driver accepted, and
  even if it happens during the job commit.
- C5, C6: files that a failed job commit has merged stay visible. If an attempt commits after its job has ended, it
  leaves a directory that the next job in the destination mistakes for its own.
- C7: a job merges and then deletes everything below ``_temporary``, including the work of other jobs.
- C9: a job that died before its job commit can be recovered (`recover_v1_task`); a job that died during its job commit
  cannot be completed.

On a store that moves a directory file by file, the files of two attempts that commit at the same moment can mix (C2).

Sources: paper 000, III.B; paper 001, "Hadoop MR Commit algorithm 1".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from holdfast.commit.committer import CONSISTENT_LISTING, HIDDEN_WRITES, RENAME, RENAME_DIR, Committer, TaskReports
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, is_dir, list_children, list_files, move_dir
from holdfast.commit.file_output.layout import (
    TEMPORARY,
    abort_attempt,
    attempt_dir,
    clean_up,
    committed_dir,
    job_attempt_dir,
    open_attempt_file,
    require_attempt,
    require_job,
    start_file_job,
)
from holdfast.commit.file_output.merging import merge_paths_v1
from holdfast.commit.file_output.recovery import file_leftovers
from holdfast.commit.ids import FileOwner
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.success_file import FILENAME_LIMIT
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import report_task, reported_totals
from holdfast.errors import NotFoundError
from holdfast.guarantees import (
    ANOTHER_ENDS,
    APPEARS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DISPLACED,
    EMPTIED,
    ENDED,
    LAST_WINS,
    NO_RECORD,
    NOT_YET_VISIBLE,
    OR,
    PARTITIONED,
    TWO_DRIVERS,
    Answer,
    no,
    yes,
)


# --- task -------------------------------------------------------------------------------------------------------------
def commit_v1_attempt(ctx: CommitContext, job: JobRecord, owner: FileOwner, written: int) -> None:
    """Rename the attempt's directory to the task's directory.

    An attempt without files has nothing to commit (scenario 3).

    Guarantee: on a store that renames directories, the task's directory contains exactly the files of the last attempt
    to commit (scenario 7).

    Args:
        written: how many files the attempt has written, according to its own count.

    Raises:
        NotFoundError: the attempt wrote files, but they do not exist.
        PreconditionError: another attempt committed concurrently; the task counts as committed.

    Crash: an earlier attempt's directory may be deleted although this attempt's directory is not renamed yet.
    """
    if require_attempt(ctx, job, owner, written):
        target = committed_dir(job, owner.task)
        delete_dir(ctx, target)
        move_dir(ctx, attempt_dir(job, owner), target)


# --- job --------------------------------------------------------------------------------------------------------------
def list_v1_tasks(ctx: CommitContext, job: JobRecord) -> Iterator[str]:
    """List the directories of committed tasks by name: every directory of the job attempt except ``_temporary``."""
    directory = job_attempt_dir(job.job_attempt)
    for name, is_directory in list_children(ctx, directory):
        if is_directory and name != TEMPORARY:
            yield f"{directory}/{name}"


# --- recovery ---------------------------------------------------------------------------------------------------------
def next_attempt(job: JobRecord) -> JobRecord:
    """Return the record of the next job attempt, after the driver died. Committed tasks need not run again."""
    return replace(job, job_attempt=job.job_attempt + 1)


def recover_v1_task(ctx: CommitContext, job: JobRecord, task: int) -> bool:
    """Move a task's directory from the previous job attempt to this one; return whether there was a directory.

    A task that committed without output left no directory, so it runs again.

    Args:
        job: the record that `next_attempt` returned.

    Crash: the directory is at its old or its new path. Idempotent.
    """
    target = committed_dir(job, task)
    if job.job_attempt == 0:
        return False
    source = committed_dir(replace(job, job_attempt=job.job_attempt - 1), task)
    if not is_dir(ctx, source):
        return is_dir(ctx, target)  # recovered before
    delete_dir(ctx, target)
    move_dir(ctx, source, target)
    return True


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Merge the committed directories one by one, write ``_SUCCESS``, then delete ``_temporary``.

    Args:
        commits: the reports of the tasks that ran in this attempt at the job; recovered tasks do not report.

    Raises:
        NotFoundError: the job's record no longer exists, because the job was already committed or aborted (scenario
            8), or the destination was renamed or deleted; or tasks wrote files that no longer exist.

    Crash: some files are visible. The job commit cannot be repeated; `holdfast recover` deletes these files.
    """
    totals = reported_totals(reports.check(job))
    require_job(measure.ctx, job)
    committed = list(list_v1_tasks(measure.ctx, job))
    if totals.files and not committed:
        raise NotFoundError(
            "no output of the job exists, because a late attempt is replacing it or the job has ended: run it again",
            url=measure.ctx.url,
            job=job.job,
        )
    names: list[str] = []
    with measure.stage("job_stage_rename_files"):
        for done, directory in enumerate(committed, start=1):
            if len(names) < FILENAME_LIMIT:
                names += [path[len(directory) + 1 :] for path, _info in list_files(measure.ctx, directory)]
            merge_paths_v1(measure.ctx, directory)
            measure.ctx.progress("tasks", done, len(committed))
    return clean_up(measure, job, succeed(measure, job, totals=totals, tasks=len(committed), paths=names))


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Delete ``_temporary`` with the job's directory in it. Files that a failed job commit has merged stay (C5)."""
    committed = has_succeeded(measure.ctx, job.job)
    return clean_up(measure, job, JobOutcome(job=job.job, committed=committed))


def commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Rename the attempt's directory to the task's; see `commit_v1_attempt`."""
    commit_v1_attempt(scope.ctx, scope.job, scope.owner, len(files))
    return report_task(scope.owner, files)


_GUARANTEES: Mapping[str, Answer] = {
    "speculative-tasks": yes("each attempt has its own directory, and one per task remains", unless=BOTH_COMMIT),
    "recoverable-job": yes("the next attempt at the job reuses the directories of committed tasks"),
    "abortable-task": yes("its directory is deleted"),
    "abortable-job": yes(NOT_YET_VISIBLE),
    "uncommitted-output-observable": no("it is in a hidden directory"),
    "committed-output-observable": no("its files are renamed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory", unless=BOTH_COMMIT),
    "atomic-job-commit": no("it renames one file after the other"),
    "partitioned-executor": yes("its files stay in its directory", unless=PARTITIONED),
    "C1": yes("every task has one directory", unless=f"{DISPLACED}{OR}{TWO_DRIVERS}"),
    "C2": yes("a directory belongs to one attempt", unless=DISPLACED),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its directory is deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt writes stays hidden", unless=ANOTHER_ENDS),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C8": no(NO_RECORD),
    "C9": no("each rename loses where a file was and whose it is"),
    "C10": no(ENDED),
    "replaced-data": no(EMPTIED),
}

FILE_V1 = Committer(
    name="file-v1",
    summary="directories renamed at task commit, merged one by one at job commit; one job at a time in a destination",
    source="papers 000 (III.B) and 001 (algorithm 1)",
    needs=(RENAME_DIR, CONSISTENT_LISTING, RENAME, HIDDEN_WRITES),
    guarantees=_GUARANTEES,
    setup=start_file_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_attempt_file,
    commit_task=commit_task,
    abort_task=abort_attempt,
    find_leftovers=partial(file_leftovers, committer="file-v1"),
)
