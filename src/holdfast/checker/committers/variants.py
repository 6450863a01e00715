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
from typing import Protocol

from holdfast.commit import layout
from holdfast.commit.attempt_names import attempt_name, attempt_owner, file_job, task_number
from holdfast.commit.committer import CONDITIONAL_WRITES, Committer, Leftover
from holdfast.commit.context import CommitContext, create_record
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
from holdfast.commit.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast.commit.staging.layout import pendingset_path as staging_set_path
from holdfast.commit.staging.layout import require_job, scratch_context, scratch_dir, shared_context
from holdfast.commit.staging.uploading import upload_files
from holdfast.commit.task import TaskScope
from holdfast.commit.two_phase.manifests import check_messages
from holdfast.errors import ConflictError, FencedError, OutcomeUnknownError

__all__ = ["VARIANTS"]

_OVERWRITING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})


class _Commit(Protocol):
    """A step `commit` of a committer."""

    def __call__(
        self, measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int], /
    ) -> JobOutcome: ...


def _variant(base: Committer, suffix: str, summary: str) -> Committer:
    """`base` under another name; its jobs say that they are the base's, so that its recovery finds them."""
    return replace(base, name=f"{base.name}+{suffix}", summary=summary, start=partial(_start_as, base))


def _start_as(
    base: Committer, ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    return base.start(ctx, base.name, mode, details)


# --- +messages: last set wins, displaced directory, mixed merge -------------------------------------------------------
def _commit_magic_sets(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """As `magic`, but of each task the set counts that its message brought along, whatever has been put over it.

    A set too large for its message is read, and has to be the one with the message's etag.
    """
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


def _commit_manifests(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """As `manifest`, but a manifest of an attempt that has not reported fails the job before anything is visible."""
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


def _leave_directory(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """The task commit of `file-v1` without its rename: the driver does that."""
    require_attempt(scope.ctx, scope.job, scope.owner, len(files))
    return report_task(scope.owner, files)


def _leave_pendingset(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
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


def _in_destination(ctx: CommitContext, job: JobId) -> CommitContext:
    return ctx


class _Where(Protocol):
    def __call__(self, ctx: CommitContext, job: JobId, /) -> CommitContext: ...


def _promote_then_commit(
    base: Committer,
    where: _Where,
    measure: Measure,
    job: JobRecord,
    commits: Sequence[TaskCommit | None],
    tasks: int | Collection[int],
) -> JobOutcome:
    """The driver renames the directories of the attempts that have reported, then commits as ever."""
    for commit in check_messages(job, commits, tasks):
        if commit.totals.files:
            owner = FileOwner(job.job, commit.task, commit.attempt)
            commit_v1_attempt(where(measure.ctx, job.job), job, owner, commit.totals.files)
    return base.commit(measure, job, commits, tasks)


def _messages(base: Committer) -> Committer:
    found = _variant(base, "messages", f"{base.name}, where the driver's messages say which attempts count")
    if base is MAGIC:
        return replace(found, commit=_commit_magic_sets)
    if base is MANIFEST:
        return replace(found, commit=_commit_manifests)
    staging = base is not FILE_V1
    return replace(
        found,
        modes=base.modes - {SaveMode.FAIL} if base is STAGING_PARTITIONED else base.modes,
        task=replace(base.task, commit=_leave_pendingset if staging else _leave_directory),
        commit=partial(_promote_then_commit, base, shared_context if staging else _in_destination),
    )


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


def _commit_own(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """As `file-v1`, for the directories that carry the job's id, and file by file: other jobs may be merging, too."""
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


def _abort_own(measure: Measure, job: JobRecord) -> JobOutcome:
    committed = succeeded(measure.ctx, job.job)
    _clean_up_own(measure.ctx, job)
    return JobOutcome(job=job.job, committed=committed)


# --- +remembers: commit forgets ---------------------------------------------------------------------------------------
def _commit_once(
    base: Committer,
    measure: Measure,
    job: JobRecord,
    commits: Sequence[TaskCommit | None],
    tasks: int | Collection[int],
) -> JobOutcome:
    """Looks for the job's ``_SUCCESS`` first: then only its clean-up is done, as an abort does it."""
    if succeeded(measure.ctx, job.job):
        return base.abort(measure, job)
    return base.commit(measure, job, commits, tasks)


# --- +replaces-last: overwrite empties first --------------------------------------------------------------------------
def _start_appending(
    base: Committer, ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    job = base.start(ctx, base.name, SaveMode.APPEND if mode in _OVERWRITING else mode, details)
    return None if job is None else replace(job, mode=mode)


def _replace_after_commit(
    base: Committer,
    measure: Measure,
    job: JobRecord,
    commits: Sequence[TaskCommit | None],
    tasks: int | Collection[int],
) -> JobOutcome:
    """Commits as if the job appended; what was there before, and is not the job's, goes then.

    Crash: old and new data may stand side by side, and nobody deletes the old.
    """
    if job.mode not in _OVERWRITING:
        return base.commit(measure, job, commits, tasks)
    ctx = measure.ctx
    before = {path for path, _info in layout.iter_visible(ctx.store, ctx.prefix)}
    outcome = base.commit(measure, replace(job, mode=SaveMode.APPEND), commits, tasks)
    now = [path for path, _info in layout.iter_visible(ctx.store, ctx.prefix)]
    partitions = {path.rpartition("/")[0] for path in now if file_job(path) == job.job}
    whole = job.mode is SaveMode.OVERWRITE
    delete_visible(
        ctx,
        lambda path: path in before and file_job(path) != job.job and (whole or path.rpartition("/")[0] in partitions),
    )
    return outcome


# --- +takes-back: unsaid success, abort leaves a half -----------------------------------------------------------------
def _abort_and_take_back(base: Committer, measure: Measure, job: JobRecord) -> JobOutcome:
    """Deletes the visible files whose names tell that they are the job's, unless its ``_SUCCESS`` is there."""
    if not succeeded(measure.ctx, job.job):
        delete_visible(measure.ctx, lambda path: file_job(path) == job.job)
    return base.abort(measure, job)


# --- +claim: two drivers ----------------------------------------------------------------------------------------------
def _claim(ctx: CommitContext, job: JobId, intent: str) -> tuple[bool, str]:
    """Say what one is about to do with a job; whether one was the first, and what the first one was about to do."""
    mine = f"{intent} {ctx.ids.token()}".encode()
    found = create_record(ctx, f"_claims/{job}", mine)
    return found == mine, found.decode().partition(" ")[0]


def _claim_and_commit(
    base: Committer,
    measure: Measure,
    job: JobRecord,
    commits: Sequence[TaskCommit | None],
    tasks: int | Collection[int],
) -> JobOutcome:
    """Only who claims the job first commits it: Hadoop's ``COMMIT_STARTED`` (paper 001, "AM: Job Commit")."""
    first, intent = _claim(measure.ctx, job.job, "commit")
    if intent == "abort":
        raise FencedError("somebody is aborting the job: run it again", job=job.job)
    if not first:
        raise OutcomeUnknownError("another driver is committing the job: wait for it, or recover", job=job.job)
    return base.commit(measure, job, commits, tasks)


def _claim_and_abort(base: Committer, measure: Measure, job: JobRecord) -> JobOutcome:
    """A job whose commit has begun is not aborted by guess: only recovery, which looks at all of it, may end it."""
    _first, intent = _claim(measure.ctx, job.job, "abort")
    if intent == "commit" and not succeeded(measure.ctx, job.job):
        raise OutcomeUnknownError("a driver has begun to commit the job: run holdfast recover", job=job.job)
    return base.abort(measure, job)


def _claimed_leftovers(base: Committer, ctx: CommitContext) -> Iterator[Leftover]:
    assert base.leftovers is not None
    for found in base.leftovers(ctx):
        yield replace(found, finish=partial(_claim_and_finish, ctx, found))


def _claim_and_finish(ctx: CommitContext, found: Leftover) -> None:
    _claim(ctx, JobId(found.job), "abort")
    found.finish()


# --- all of them ------------------------------------------------------------------------------------------------------
def _remembers(base: Committer) -> Committer:
    found = _variant(base, "remembers", f"{base.name}, whose job commit can be run again")
    return replace(found, commit=partial(_commit_once, base))


def _replaces_last(base: Committer) -> Committer:
    found = _variant(
        base, "replaces-last", f"{base.name}, which deletes what it replaces after its own files are there"
    )
    return replace(found, start=partial(_start_appending, base), commit=partial(_replace_after_commit, base))


def _takes_back(base: Committer) -> Committer:
    found = _variant(base, "takes-back", f"{base.name}, whose abort deletes the job's visible files")
    return replace(found, abort=partial(_abort_and_take_back, base))


def _claims(base: Committer) -> Committer:
    return replace(
        _variant(base, "claim", f"{base.name}, where one driver alone may end a job"),
        needs=(*base.needs, CONDITIONAL_WRITES),
        commit=partial(_claim_and_commit, base),
        abort=partial(_claim_and_abort, base),
        leftovers=partial(_claimed_leftovers, base),
    )


_OWN = replace(
    _variant(FILE_V1, "own-directory", "file-v1, which reads and deletes its own directories only"),
    commit=_commit_own,
    abort=_abort_own,
)

VARIANTS: Mapping[str, Committer] = {
    variant.name: variant
    for variant in (
        _OWN,
        *(
            change(base)
            for base in (MAGIC, STAGING_DIRECTORY, STAGING_PARTITIONED, MANIFEST, FILE_V1)
            for change in (_messages, _remembers, _replaces_last, _takes_back, _claims)
        ),
    )
}
"""By name: ``magic+messages``."""
