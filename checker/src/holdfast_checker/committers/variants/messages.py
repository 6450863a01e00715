"""Let the driver's messages say which attempts count (``+messages``).

Closes the holes "last set wins", "displaced directory" and "mixed merge".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.commit.committer import Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir
from holdfast.commit.file_output.layout import (
    require_attempt,
)
from holdfast.commit.file_output.v1 import FILE_V1, commit_v1_attempt
from holdfast.commit.hadoop.pending import TASK_ATTEMPT_ID, PendingSet, encode_pendingset
from holdfast.commit.hadoop_names import attempt_name, attempt_owner
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.magic.committer import MAGIC
from holdfast.commit.magic.layout import pendingset_path as magic_set_path
from holdfast.commit.magic.sets import clean_up as clean_up_magic
from holdfast.commit.magic.sets import load_pendingset as load_magic_set
from holdfast.commit.manifest.committer import MANIFEST
from holdfast.commit.manifest.job import finish_job
from holdfast.commit.manifest.loading import check_reported, load_manifests, require_open
from holdfast.commit.manifest.renaming import make_room, rename_files
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import abort_all, complete_all, succeed_with
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.staging.committer import STAGING_PARTITIONED
from holdfast.commit.staging.layout import pendingset_path as staging_set_path
from holdfast.commit.staging.layout import require_job, scratch_context, scratch_dir, shared_context
from holdfast.commit.staging.uploading import upload_files
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages, report_task
from holdfast.errors import ConflictError
from holdfast_checker.committers.variants.variant import Variant


class _MagicByMessages(Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit like `magic`, but take each task's pending set from the task's message.

        A pending set that is too large for a message is read from the store, and must have the etag that the message
        contains.
        """
        measure = Measure(ctx)
        ctx = measure.ctx
        reported = check_messages(job, commits, tasks)

        def load(commit: TaskCommit) -> PendingSet:
            path = magic_set_path(job.job, commit.task)
            data = commit.manifest_data()
            if data is None and ctx.store.head(ctx.key(path)).etag != commit.etag:
                raise ConflictError("another attempt has replaced a pending set: run the job again", path=path)
            return load_magic_set(measure, job.job, path, data)

        outcome = succeed_with(measure, job, complete_all(measure, reported, load))
        left = clean_up_magic(measure, job.job, with_sets=False)
        return replace(outcome, finished=not left, pending_reason=left)


class _ManifestByMessages(Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit like `manifest`, but fail before anything is visible if an unreported attempt left a manifest."""
        measure = Measure(ctx)
        ctx = measure.ctx
        present = check_messages(job, commits, tasks)
        require_open(ctx, job)
        loaded = load_manifests(ctx, job)
        check_reported(job, loaded, present)
        accepted = {FileOwner(job.job, commit.task, commit.attempt) for commit in present}
        for file in loaded.files():
            if not accepted.intersection(map(attempt_owner, file.source.split("/"))):
                raise ConflictError("another attempt has replaced a manifest: run the job again", path=file.source)
        make_room(measure, job, loaded)
        rename_files(measure, job, loaded)
        return finish_job(measure, job, loaded)


class _RenamedByDriver(Variant):
    """A variant that leaves the rename of an attempt's directory to the driver, which knows which attempt counts."""

    def _home(self, ctx: CommitContext, job: JobId) -> CommitContext:
        return ctx

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Rename the directories of the attempts that reported, then commit like the base committer."""
        for commit in check_messages(job, commits, tasks):
            if commit.totals.files:
                owner = FileOwner(job.job, commit.task, commit.attempt)
                commit_v1_attempt(self._home(ctx, job.job), job, owner, commit.totals.files)
        return self.base.commit_job(ctx, job, commits, tasks)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Commit the task like `file-v1`, but without the rename."""
        require_attempt(scope.ctx, scope.job, scope.owner, len(files))
        return report_task(scope.owner, files)


class _StagingByMessages(_RenamedByDriver):
    def __init__(self, base: Committer, suffix: str, summary: str) -> None:
        super().__init__(base, suffix, summary)
        if base is STAGING_PARTITIONED:
            self.modes = base.modes - {SaveMode.FAIL}

    def _home(self, ctx: CommitContext, job: JobId) -> CommitContext:
        return shared_context(ctx, job)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Commit the task like `staging-*`, but without the rename of the pending set."""
        measure, owner, job = scope.measure, scope.owner, scope.job
        if files:
            ctx = measure.ctx
            require_job(ctx, job.job)
            pendings = upload_files(measure, owner, files)
            shared = shared_context(ctx, job.job)
            found = PendingSet(
                job_id=owner.job,
                commits=tuple(pendings),
                extra_data={TASK_ATTEMPT_ID: attempt_name(owner)},
                statistics=measure.statistics(),
            )
            try:
                shared.store.put(shared.key(staging_set_path(job, owner)), encode_pendingset(found))
            except Exception:
                abort_all(measure, pendings)
                raise
            delete_dir(scratch_context(ctx), scratch_dir(job.job, owner))
        return report_task(owner, files)


def messages(base: Committer) -> Committer:
    """Derive the variant ``+messages`` of a committer."""
    kinds: dict[Committer, type[Variant]] = {
        MAGIC: _MagicByMessages,
        MANIFEST: _ManifestByMessages,
        FILE_V1: _RenamedByDriver,
    }
    summary = f"{base.name}, where the driver's messages say which attempts count"
    return kinds.get(base, _StagingByMessages)(base, "messages", summary)
