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

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import final

from holdfast.commit.committer import (
    CONSISTENT_LISTING,
    HIDDEN_WRITES,
    RENAME_DIR,
    RENAME_OR_COPY,
    Committer,
    Leftover,
)
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
from holdfast.commit.hadoop_names import file_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.success_file import FILENAME_LIMIT
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages, report_task, reported_totals
from holdfast.errors import NotFoundError


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


@final
class FileV1Committer(Committer):
    """Rename a directory at each task commit and merge the directories at job commit."""

    name = "file-v1"
    summary = "directories renamed at task commit, merged one by one at job commit; one job at a time in a destination"
    source = "papers 000 (III.B) and 001 (algorithm 1)"
    needs = (RENAME_DIR, CONSISTENT_LISTING, RENAME_OR_COPY, HIDDEN_WRITES)
    modes = frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE})

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return start_file_job(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Merge the committed directories one by one, write ``_SUCCESS``, then delete ``_temporary``.

        Args:
            commits: the reports of the tasks that ran in this attempt at the job; recovered tasks do not report.

        Raises:
            NotFoundError: the job's record no longer exists, because the job was already committed or aborted (scenario
                8), or the destination was renamed or deleted; or tasks wrote files that no longer exist.

        Crash: some files are visible. The job commit cannot be repeated; `holdfast recover` deletes these files.
        """
        with measured_commit(ctx, self.name, job) as measure:
            totals = reported_totals(check_messages(job, commits, tasks))
            require_job(measure.ctx, job)
            committed = list(list_v1_tasks(measure.ctx, job))
            if totals.files and not committed:
                raise NotFoundError(
                    "no output of the job exists, because a late attempt is replacing it or the job has ended: run it "
                    "again",
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
            outcome = clean_up(measure, job, succeed(measure, job, totals=totals, tasks=len(committed), paths=names))
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Delete ``_temporary`` with the job's directory in it. Files that a failed job commit has merged stay (C5)."""
        with measured_abort(ctx) as measure:
            committed = has_succeeded(measure.ctx, job.job)
            outcome = clean_up(measure, job, JobOutcome(job=job.job, committed=committed))
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return file_leftovers(ctx, committer=self.name)

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        return open_attempt_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        commit_v1_attempt(scope.ctx, scope.job, scope.owner, len(files))
        return report_task(scope.owner, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        abort_attempt(ctx, job, owner)


FILE_V1 = FileV1Committer()
