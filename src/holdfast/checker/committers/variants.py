"""Change one step of a published committer, each to close a hole of docs/explanation/holes.md. For the checker only.

    +messages        the driver's messages say which attempt counts, not what a listing finds
    +own-directory   a job reads and deletes its own directories only
    +remembers       a job commit that is run again finds that it has ended well
    +replaces-last   what is replaced goes when its replacement is there
    +takes-back      an abort deletes what the job commit has shown
    +claim           one driver alone may end a job

What none of them makes of a committer is a decision that outlives its driver: for that there is `two_phase`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit import layout
from holdfast.commit.attempt_names import attempt_name, attempt_owner, file_job, task_number
from holdfast.commit.committer import CONDITIONAL_WRITES, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.layout import (
    TEMPORARY,
    job_attempt_dir,
    job_record,
    require_attempt,
)
from holdfast.commit.file_output.merging import merge_paths_v2
from holdfast.commit.file_output.v1 import FILE_V1, commit_v1_attempt, list_v1_tasks
from holdfast.commit.hadoop.pending import TASK_ATTEMPT_ID, PendingSet, encode_pendingset
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_ends import delete_visible, report_task, reported_totals, succeed, succeeded
from holdfast.commit.magic.committer import MAGIC
from holdfast.commit.magic.layout import pendingset_path as magic_set_path
from holdfast.commit.magic.sets import clean_up as clean_up_magic
from holdfast.commit.magic.sets import load_pendingset as load_magic_set
from holdfast.commit.manifest.committer import MANIFEST
from holdfast.commit.manifest.job import finish_job
from holdfast.commit.manifest.loading import check_reported, load_manifests, require_open
from holdfast.commit.manifest.renaming import make_room, rename_files
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir, list_children
from holdfast.commit.pending_sets.completion import abort_all, complete_all, succeed_with
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast.commit.staging.layout import pendingset_path as staging_set_path
from holdfast.commit.staging.layout import require_job, scratch_context, scratch_dir, shared_context
from holdfast.commit.staging.uploading import upload_files
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages
from holdfast.errors import ConflictError, FencedError, OutcomeUnknownError

__all__ = ["VARIANTS"]

_OVERWRITING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})


class _Variant(Committer):
    """A committer that does everything as `base` does, until a subclass changes a step.

    It has a name of its own; its jobs carry the base's name, so that the base's recovery finds them.
    """

    def __init__(self, base: Committer, suffix: str, summary: str) -> None:
        self.base = base
        self.name = f"{base.name}+{suffix}"
        self.summary = summary
        self.source = base.source
        self.needs = base.needs
        self.modes = base.modes
        self.unsafe = base.unsafe
        self.staging = base.staging
        self.keeps_log = base.keeps_log
        self.leaves_records = base.leaves_records
        self.pins_attempts = base.pins_attempts
        self.adopts_uploads = base.adopts_uploads

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return self.base.setup_job(ctx, mode, details)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        return self.base.commit_job(ctx, job, commits, tasks)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        return self.base.abort_job(ctx, job)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return self.base.find_leftovers(ctx, recorded)

    def recorded_jobs(self, ctx: CommitContext) -> Collection[JobId]:
        return self.base.recorded_jobs(ctx)

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return self.base.name_file(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        return self.base.open_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        return self.base.commit_task(scope, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        self.base.abort_task(ctx, job, owner)


# --- +messages: last set wins, displaced directory, mixed merge -------------------------------------------------------
class _MagicByMessages(_Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """As `magic`, but of each task the set counts that its message brought along, whatever has been put over it.

        A set too large for its message is read, and has to be the one with the message's etag.
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


class _ManifestByMessages(_Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit as `manifest` does, but fail before anything is visible if an unreported attempt left a manifest."""
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


class _RenamedByDriver(_Variant):
    """Leaves the rename of an attempt's directory to the driver, which knows whose it is."""

    def _home(self, ctx: CommitContext, job: JobId) -> CommitContext:
        return ctx

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """The driver renames the directories of the attempts that have reported, then commits as ever."""
        for commit in check_messages(job, commits, tasks):
            if commit.totals.files:
                owner = FileOwner(job.job, commit.task, commit.attempt)
                commit_v1_attempt(self._home(ctx, job.job), job, owner, commit.totals.files)
        return self.base.commit_job(ctx, job, commits, tasks)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """The task commit of `file-v1` without its rename: the driver does that."""
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
        """The task commit of `staging-*` without the rename of the pending set: the driver does that."""
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


def _messages(base: Committer) -> Committer:
    kinds: dict[Committer, type[_Variant]] = {
        MAGIC: _MagicByMessages,
        MANIFEST: _ManifestByMessages,
        FILE_V1: _RenamedByDriver,
    }
    summary = f"{base.name}, where the driver's messages say which attempts count"
    return kinds.get(base, _StagingByMessages)(base, "messages", summary)


# --- +own-directory: shared _temporary --------------------------------------------------------------------------------
def _clean_up_own(ctx: CommitContext, job: JobRecord) -> None:
    """Delete the job's record and the directories that carry its id."""
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


class _OwnDirectory(_Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit as `file-v1` does, file by file and only from the job's own directories: other jobs may be merging."""
        measure = Measure(ctx)
        ctx = measure.ctx
        totals = reported_totals(check_messages(job, commits, tasks))
        own = [one for one in list_v1_tasks(ctx, job) if task_number(job.job, one.rpartition("/")[2]) is not None]
        if totals.files and not own:
            raise ConflictError("nothing of the job is there: run it again", job=job.job)
        for directory in own:
            merge_paths_v2(ctx, directory)
        outcome = succeed(measure, job, totals=totals, tasks=len(own), paths=())
        _clean_up_own(ctx, job)
        return outcome

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        committed = succeeded(ctx, job.job)
        _clean_up_own(ctx, job)
        return JobOutcome(job=job.job, committed=committed)


# --- +remembers: commit forgets ---------------------------------------------------------------------------------------
class _Remembers(_Variant):
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Looks for the job's ``_SUCCESS`` first: then only its clean-up is done, as an abort does it."""
        if succeeded(ctx, job.job):
            return self.base.abort_job(ctx, job)
        return self.base.commit_job(ctx, job, commits, tasks)


# --- +replaces-last: overwrite empties first --------------------------------------------------------------------------
class _ReplacesLast(_Variant):
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
        """Commits as if the job appended; what was there before, and is not the job's, goes then.

        Crash: old and new data may stand side by side, and nobody deletes the old.
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


# --- +takes-back: unsaid success, abort leaves a half -----------------------------------------------------------------
class _TakesBack(_Variant):
    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Deletes the visible files whose names tell that they are the job's, unless its ``_SUCCESS`` is there."""
        if not succeeded(ctx, job.job):
            delete_visible(ctx, lambda path: file_job(path) == job.job)
        return self.base.abort_job(ctx, job)


# --- +claim: two drivers ----------------------------------------------------------------------------------------------
def _claim(ctx: CommitContext, job: JobId, intent: str) -> tuple[bool, str]:
    """Say what one is about to do with a job; whether one was the first, and what the first one was about to do."""
    mine = f"{intent} {ctx.ids.token()}".encode()
    found = ctx.records.create(f"_claims/{job}", mine)
    return found == mine, found.decode().partition(" ")[0]


def _claim_and_finish(ctx: CommitContext, found: Leftover) -> None:
    _claim(ctx, JobId(found.job), "abort")
    found.finish()


class _Claims(_Variant):
    def __init__(self, base: Committer, suffix: str, summary: str) -> None:
        super().__init__(base, suffix, summary)
        self.needs = (*base.needs, CONDITIONAL_WRITES)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Only who claims the job first commits it: Hadoop's ``COMMIT_STARTED`` (paper 001, "AM: Job Commit")."""
        first, intent = _claim(ctx, job.job, "commit")
        if intent == "abort":
            raise FencedError("somebody is aborting the job: run it again", job=job.job)
        if not first:
            raise OutcomeUnknownError("another driver is committing the job: wait for it, or recover", job=job.job)
        return self.base.commit_job(ctx, job, commits, tasks)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """A job whose commit has begun is not aborted by guess: only recovery, which looks at all of it, may end it."""
        _first, intent = _claim(ctx, job.job, "abort")
        if intent == "commit" and not succeeded(ctx, job.job):
            raise OutcomeUnknownError("a driver has begun to commit the job: run holdfast recover", job=job.job)
        return self.base.abort_job(ctx, job)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        for found in self.base.find_leftovers(ctx, recorded):
            yield replace(found, finish=partial(_claim_and_finish, ctx, found))


# --- all of them ------------------------------------------------------------------------------------------------------
_SUMMARIES: Mapping[type[_Variant], tuple[str, str]] = {
    _Remembers: ("remembers", "whose job commit can be run again"),
    _ReplacesLast: ("replaces-last", "which deletes what it replaces after its own files are there"),
    _TakesBack: ("takes-back", "whose abort deletes the job's visible files"),
    _Claims: ("claim", "where one driver alone may end a job"),
}


def _variants() -> Iterator[Committer]:
    yield _OwnDirectory(FILE_V1, "own-directory", "file-v1, which reads and deletes its own directories only")
    for base in (MAGIC, STAGING_DIRECTORY, STAGING_PARTITIONED, MANIFEST, FILE_V1):
        yield _messages(base)
        for kind, (suffix, summary) in _SUMMARIES.items():
            yield kind(base, suffix, f"{base.name}, {summary}")


VARIANTS: Mapping[str, Committer] = {variant.name: variant for variant in _variants()}
"""By name: ``magic+messages``."""
