"""Let a job read and delete only its own directories (``+own-directory``).

Closes the hole "shared _temporary".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, list_children
from holdfast.commit.file_output.layout import (
    TEMPORARY,
    job_attempt_dir,
    job_record,
)
from holdfast.commit.file_output.merging import merge_paths_v2
from holdfast.commit.file_output.v1 import list_v1_tasks
from holdfast.commit.hadoop_names import attempt_owner, task_number
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord, TaskCommit
from holdfast.commit.task_commits import check_messages, reported_totals
from holdfast.errors import ConflictError
from holdfast_checker.committers.variants.variant import Variant


def _clean_up_own(ctx: CommitContext, job: JobRecord) -> None:
    """Delete the job's record and the directories whose names contain its id."""
    ctx.store.delete(ctx.key(job_record(job)))
    home = job_attempt_dir(job.job_attempt)
    attempts = f"{home}/{TEMPORARY}"
    for directory in list_v1_tasks(ctx, job):
        if task_number(job.job, directory.rpartition("/")[2]) is not None:
            delete_dir(ctx, directory)
    for name, _is_directory in list_children(ctx, attempts):
        owner = attempt_owner(name)
        if owner is not None and owner.job == job.job:
            delete_dir(ctx, f"{attempts}/{name}")


class OwnDirectory(Variant):
    """The variant ``+own-directory`` of `file-v1`, which reads and deletes only its own directories."""

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit like `file-v1`, but file by file and only from its own directories: other jobs may be merging too."""
        measure = Measure(ctx)
        ctx = measure.ctx
        totals = reported_totals(check_messages(job, commits, tasks))
        own = [one for one in list_v1_tasks(ctx, job) if task_number(job.job, one.rpartition("/")[2]) is not None]
        if totals.files and not own:
            raise ConflictError("the job has no committed task: run it again", job=job.job)
        for directory in own:
            merge_paths_v2(ctx, directory)
        outcome = succeed(measure, job, totals=totals, tasks=len(own), paths=())
        _clean_up_own(ctx, job)
        return outcome

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        committed = has_succeeded(ctx, job.job)
        _clean_up_own(ctx, job)
        return JobOutcome(job=job.job, committed=committed)
