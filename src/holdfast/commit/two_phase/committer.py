"""Define the `two_phase` committer: one entry in the decision log commits a job, then its files become visible.

Tasks write hidden files under names that are never used twice, and each task writes one manifest at the end. The
driver's log entry decides the job (C8). Any process can roll the decision forward, at any time (C10).

Source: paper 000, VIII.A for the properties that must hold, XI and XIII for how tasks pass their file lists to the
driver; the decision log, helping and fencing are Holdfast's own (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from holdfast.commit import layout
from holdfast.commit.codec import digest
from holdfast.commit.committer import CONDITIONAL_WRITES, HIDDEN_WRITES, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, JobId, file_name
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, ManifestRef, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import inline_record, totals_of
from holdfast.commit.two_phase.codec import encode_manifest
from holdfast.commit.two_phase.job import abort_job, announce_job, commit_job, describe_job
from holdfast.commit.two_phase.publication import publication_of
from holdfast.commit.two_phase.records import TaskManifest


@final
class TwoPhaseCommitter(Committer):
    """Hides files until one log entry decides the job; then makes all of them visible."""

    name = "two_phase"
    summary = "hidden files, one decision record, then all of them visible"
    source = "ours; papers 000 (VI, VIII, XI, XIII) and 002"
    needs = (HIDDEN_WRITES, CONDITIONAL_WRITES)
    modes = frozenset(SaveMode)
    keeps_log = True
    pins_attempts = True

    # --- driver -------------------------------------------------------------------------------------------------------
    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        """Check the destination and write the job's record; see `Committer.setup_job`.

        Raises also:
            UnsupportedError: the store ignores conditional writes.

        Crash: leaves at most a ``job.json``, which `recover` deletes.
        """
        self.check_fit(ctx, mode)
        record = describe_job(ctx, self.name, mode, details or {})
        if record is not None:
            announce_job(ctx, record)
        return record

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Decide a job, then make its output visible; see `holdfast.commit.two_phase.job.commit_job`."""
        with measured_commit(ctx, self.name, job) as measure:
            outcome = commit_job(measure, job, commits, tasks)
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Abort a job, or roll it forward if its commit is logged; see `holdfast.commit.two_phase.job.abort_job`."""
        with measured_abort(ctx) as measure:
            outcome = abort_job(measure, job)
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        """Yield nothing: `holdfast.commit.two_phase.recovery` finds the jobs of this committer."""
        return iter(())

    # --- tasks --------------------------------------------------------------------------------------------------------
    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        return publication_of(scope.job).open_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Write the attempt's manifest.

        Guarantee: the returned report contains the digest of the manifest's bytes; nothing becomes visible.
        """
        owner, totals = scope.owner, totals_of(files)
        manifest = TaskManifest(
            job=owner.job,
            task=owner.task,
            attempt=owner.attempt,
            files=files,
            statistics=scope.measure.statistics(),
        )
        data = encode_manifest(manifest)
        key = layout.manifest(owner.job, owner.task, owner.attempt)
        # No other attempt uses this name, so a retry after a lost reply writes the same bytes.
        scope.ctx.store.put(scope.ctx.key(key), data)
        ref = ManifestRef(key=key, sha256=digest(data), task=owner.task, totals=totals)
        inline = inline_record(scope.ctx, data)
        return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals, ref=ref, inline=inline)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Do nothing: the sinks have discarded their files, and the job's cleanup handles dead attempts."""


TWO_PHASE = TwoPhaseCommitter()
