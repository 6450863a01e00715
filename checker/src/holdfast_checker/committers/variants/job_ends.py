"""Change how jobs commit and abort (``+remembers``, ``+replaces-last``, ``+takes-back``).

Closes the holes "commit forgets", "overwrite empties first", "unsaid success" and "abort leaves a half".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_visible
from holdfast.commit.hadoop_names import file_job
from holdfast.commit.job_success import has_succeeded
from holdfast.commit.records import JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast_checker.committers.variants.variant import Variant

_OVERWRITING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})


class Remembers(Variant):
    """The variant ``+remembers``: the job commit can be repeated."""

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit. If the job's ``_SUCCESS`` exists already, only clean up, like an abort."""
        if has_succeeded(ctx, job.job):
            return self.base.abort_job(ctx, job)
        return self.base.commit_job(ctx, job, commits, tasks)


class ReplacesLast(Variant):
    """The variant ``+replaces-last``: replaced data are deleted after the job's own files are complete."""

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        job = self.base.setup_job(ctx, SaveMode.APPEND if mode in _OVERWRITING else mode, details)
        return None if job is None else replace(job, mode=mode)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit as if the job appended, then delete the files that were visible before and are not the job's.

        Crash: old and new data may both be visible, and nothing deletes the old data.
        """
        if job.mode not in _OVERWRITING:
            return self.base.commit_job(ctx, job, commits, tasks)
        before = {path for path, _info in layout.iter_visible(ctx.store, ctx.prefix)}
        outcome = self.base.commit_job(ctx, replace(job, mode=SaveMode.APPEND), commits, tasks)
        now = [path for path, _info in layout.iter_visible(ctx.store, ctx.prefix)]
        partitions = {path.rpartition("/")[0] for path in now if file_job(path) == job.job}
        whole = job.mode is SaveMode.OVERWRITE
        delete_visible(
            ctx,
            lambda path: (
                path in before and file_job(path) != job.job and (whole or path.rpartition("/")[0] in partitions)
            ),
        )
        return outcome


class TakesBack(Variant):
    """The variant ``+takes-back``: the abort deletes the job's visible files."""

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Delete the visible files whose names contain the job's id, unless its ``_SUCCESS`` exists; then abort."""
        if not has_succeeded(ctx, job.job):
            delete_visible(ctx, lambda path: file_job(path) == job.job)
        return self.base.abort_job(ctx, job)
