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

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import final

from holdfast.commit.committer import MULTIPART, Action, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC_JOB_PREFIX
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.hadoop_names import file_job, file_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.job_setup import new_truncating_job
from holdfast.commit.job_success import succeed
from holdfast.commit.layout import folders, is_hidden
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import complete_all, pending_of_entry
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit, Totals
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages, totals_of
from holdfast.commit.uploads import open_upload
from holdfast.errors import AccessDeniedError, HoldfastError
from holdfast.stores.base import UploadInfo, iter_objects, iter_uploads, multipart


def _abort_pending(measure: Measure, job: JobId) -> str:
    try:
        _abort_uploads(measure.ctx, job)
    except HoldfastError as error:
        return f"pending uploads may be left, run holdfast recover: {error.message}"
    return ""


def _job_uploads(ctx: CommitContext) -> dict[JobId, list[UploadInfo]]:
    """Return pending uploads to visible paths, grouped by the job ids in their file names.

    Uploads to hidden directories are left out: they belong to committers that later move the files.
    """
    jobs: dict[JobId, list[UploadInfo]] = {}
    for upload in iter_uploads(multipart(ctx.store), ctx.prefix):
        job = file_job(upload.key)
        if job is not None and not is_hidden(upload.key[len(ctx.prefix) :]):
            jobs.setdefault(job, []).append(upload)
    return jobs


def _abort_uploads(ctx: CommitContext, job: JobId) -> None:
    store = multipart(ctx.store)
    pending = _job_uploads(ctx).get(job, [])
    for _done in ctx.runner.map(lambda upload: store.abort_upload(upload.key, upload.upload_id), pending):
        pass


def _has_magic_below(ctx: CommitContext, job: JobId, uploads: list[UploadInfo]) -> bool:
    """Check whether `job` is a `magic` job, possibly of another destination (C7).

    If it is, one of the folders that contain all of its uploads also contains its magic directory.
    """
    common = posixpath.commonprefix([upload.key for upload in uploads])

    def is_magic_home(folder: str) -> bool:
        try:
            return next(iter_objects(ctx.store, f"{folder}{MAGIC_JOB_PREFIX}{job}/", page_size=2), None) is not None
        except AccessDeniedError:
            if folder.startswith(ctx.prefix):
                raise
            return False  # the credentials cover only this destination; see `holdfast.commit.two_phase.live_jobs`

    return any(is_magic_home(folder) for folder in folders(common))


@final
class EmrCommitter(Committer):
    """Upload to the final names, and complete the uploads in each task commit."""

    name = "emr"
    summary = "uploads to the final names, which each task's commit completes"
    source = "paper 000 (XII.C, Table V)"
    needs = (MULTIPART,)
    modes = frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE})
    adopts_uploads = True
    unsafe = (
        "every task publishes its files before the job commits, and they stay visible if the task dies halfway "
        "or the job fails"
    )

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return new_truncating_job(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Write ``_SUCCESS``, without file names, which tasks do not report; then abort uploads of failed attempts."""
        with measured_commit(ctx, self.name, job) as measure:
            reported = check_messages(job, commits, tasks)
            totals = sum((commit.totals for commit in reported), Totals())
            outcome = succeed(measure, job, totals=totals, tasks=len(reported), paths=())
            with measure.stage("job_stage_cleanup"):
                left = _abort_pending(measure, job.job)
            outcome = replace(outcome, finished=not left, pending_reason=left)
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Abort pending uploads; the files of committed tasks stay visible (C5 does not hold)."""
        with measured_abort(ctx) as measure:
            left = _abort_pending(measure, job.job)
            outcome = JobOutcome(job=job.job, committed=False, finished=not left, pending_reason=left)
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        """List jobs that have only uploads: jobs of `emr`, and any other jobs whose records are missing.

        A live job of `emr` looks the same as a dead one, and so does a job of `staging-*` whose shared directory is not
        accessible. Only the age of the uploads distinguishes them.
        """
        if ctx.store.capabilities.multipart is None:
            return
        for job, uploads in sorted(_job_uploads(ctx).items()):
            if job not in recorded and not _has_magic_below(ctx, job, uploads):
                yield Leftover(
                    committer="emr",
                    job=job,
                    active_at_s=max(upload.initiated_at_s for upload in uploads),
                    action=Action.BACK,
                    reason="its uploads are pending and it has no records",
                    recover=partial(_abort_uploads, ctx, job),
                    uploads=len(uploads),
                )

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink:
        return open_upload(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Complete the attempt's uploads in parallel.

        Raises:
            HoldfastError: some files may already be visible although others are not; the next attempt must replace
                them.

        Crash: some files are visible; the uploads of the others are pending until the job ends.
        """
        measure, owner = scope.measure, scope.owner
        pendings = tuple(
            pending_of_entry(measure.ctx, file, owner, uri=encode_uri(measure.ctx.url, file.path)) for file in files
        )
        with measure.stage("task_stage_complete_uploads"):
            one = PendingSet(job_id=owner.job, commits=pendings)
            complete_all(measure, [one], lambda found: found, revert=False)
        return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals_of(files))

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Do nothing: the sinks have aborted their uploads, and the job's end aborts the uploads of dead processes."""


EMR = EmrCommitter()
