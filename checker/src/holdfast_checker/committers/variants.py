"""Derive variants of the published committers: each changes one step to close a hole of docs/explanation/holes.md.

    +messages        the driver's messages say which attempt counts, not a listing: "last set wins", "displaced
                     directory", "mixed merge"
    +own-directory   a job reads and deletes only its own directories: "shared _temporary"
    +remembers       a repeated job commit detects that the job is committed already: "commit forgets"
    +replaces-last   replaced data are deleted after their replacement is complete: "overwrite empties first"
    +takes-back      an abort deletes the visible files of the job: "abort leaves a half"
    +claim           only one driver may end a job: "two drivers"

The variants exist only for the checker: do not write data with them. None of them gives a committer a decision that
outlives its driver: that is what `two_phase` is for. The records of a variant's jobs contain the base's name, so that
the base's recovery finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.commit import layout
from holdfast.commit.committer import CONDITIONAL_WRITES, Committer, Details, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible
from holdfast.commit.hadoop.completion import complete_all, succeed_with
from holdfast.commit.hadoop.file_output.committers import FILE_V1, commit_v1_attempt, list_v1_tasks
from holdfast.commit.hadoop.file_output.directories import (
    TEMPORARY,
    job_attempt_dir,
    job_record,
    merge_paths_v2,
    require_attempt,
)
from holdfast.commit.hadoop.files import delete_dir, list_children
from holdfast.commit.hadoop.magic.committer import MAGIC
from holdfast.commit.hadoop.magic.files import clean_up as clean_up_magic
from holdfast.commit.hadoop.magic.files import load_pendingset as load_magic_set
from holdfast.commit.hadoop.magic.files import pendingset_path as magic_set_path
from holdfast.commit.hadoop.manifest.committer import MANIFEST
from holdfast.commit.hadoop.manifest.job import (
    check_reported,
    finish_job,
    load_manifests,
    make_room,
    rename_files,
    require_open,
)
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.hadoop.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED, save_pendingset
from holdfast.commit.hadoop.staging.layout import scratch_context, scratch_dir, shared_context
from holdfast.commit.ids import FileOwner, JobId, attempt_owner, file_job, task_number
from holdfast.commit.leftovers import Leftover
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.success_file import end_with_cleanup, has_succeeded, succeed
from holdfast.commit.task import TaskScope, report_task, reported_totals
from holdfast.errors import ConflictError, FencedError, OutcomeUnknownError

_OVERWRITING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})


def _variant(base: Committer, suffix: str, summary: str, **changes: Any) -> Committer:
    """Return a committer that works like `base`, apart from `changes`; nothing is declared about its guarantees."""

    def setup(ctx: CommitContext, committer: str, mode: SaveMode, details: Details) -> JobRecord | None:
        return base.setup(ctx, base.name, mode, details)

    steps = {"setup": setup, **changes}
    return replace(base, name=f"{base.name}+{suffix}", summary=f"{base.name}, {summary}", guarantees={}, **steps)


# --- +messages --------------------------------------------------------------------------------------------------------
def _commit_magic(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit like `magic`, but take each task's pending set from the task's message.

    A pending set that is too large for a message is read from the store, and must have the etag that the message
    contains.
    """
    ctx = measure.ctx

    def load(commit: TaskCommit) -> PendingSet:
        path = magic_set_path(job.job, commit.task)
        data = commit.manifest_data()
        if data is None and ctx.store.head(ctx.key(path)).etag != commit.etag:
            raise ConflictError("another attempt has replaced a pending set: run the job again", path=path)
        return load_magic_set(measure, job.job, path, data)

    outcome = succeed_with(measure, job, complete_all(measure, reports.check(job), load))
    return end_with_cleanup(measure, outcome, partial(clean_up_magic, measure, job.job, with_sets=False))


def _commit_manifest(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit like `manifest`, but fail before anything is visible if an unreported attempt left a manifest."""
    present = reports.check(job)
    require_open(measure.ctx, job)
    loaded = load_manifests(measure.ctx, job)
    check_reported(job, loaded, present)
    accepted = {FileOwner(job.job, commit.task, commit.attempt) for commit in present}
    for file in loaded.files.values():
        if not accepted.intersection(map(attempt_owner, file.source.split("/"))):
            raise ConflictError("another attempt has replaced a manifest: run the job again", path=file.source)
    make_room(measure, job, loaded)
    rename_files(measure, job, loaded)
    return finish_job(measure, job, loaded)


def _renamed_by_driver(
    base: Committer, home: Callable[[CommitContext, JobId], CommitContext]
) -> Callable[[Measure, JobRecord, TaskReports], JobOutcome]:
    def commit(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
        """Rename the directories of the attempts that reported, then commit like the base committer."""
        for one in reports.check(job):
            if one.totals.files:
                owner = FileOwner(job.job, one.task, one.attempt)
                commit_v1_attempt(home(measure.ctx, job.job), job, owner, one.totals.files)
        return base.commit(measure, job, reports)

    return commit


def _commit_v1_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit the task like `file-v1`, but without the rename."""
    require_attempt(scope.ctx, scope.job, scope.owner, len(files))
    return report_task(scope.owner, files)


def _commit_staging_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit the task like `staging-*`, but without the rename of the pending set."""
    owner = scope.owner
    if files:
        save_pendingset(scope, files)
        delete_dir(scratch_context(scope.ctx), scratch_dir(owner.job, owner))
    return report_task(owner, files)


def _messages(base: Committer) -> Committer:
    named = partial(_variant, base, "messages", "where the driver's messages say which attempts count")
    if base is MAGIC:
        return named(commit=_commit_magic)
    if base is MANIFEST:
        return named(commit=_commit_manifest)
    if base is FILE_V1:
        return named(commit=_renamed_by_driver(base, lambda ctx, job: ctx), commit_task=_commit_v1_task)
    modes = base.modes - {SaveMode.FAIL} if base is STAGING_PARTITIONED else base.modes
    return named(commit=_renamed_by_driver(base, shared_context), commit_task=_commit_staging_task, modes=modes)


# --- +own-directory ---------------------------------------------------------------------------------------------------
def _clean_up_own(ctx: CommitContext, job: JobRecord) -> None:
    """Delete the job's record and the directories whose names contain its id."""
    ctx.store.delete(ctx.key(job_record(job)))
    home = job_attempt_dir(job.job_attempt)
    attempts = f"{home}/{TEMPORARY}"
    for directory in _own_tasks(ctx, job):
        delete_dir(ctx, directory)
    for name, _is_directory in list_children(ctx, attempts):
        owner = attempt_owner(name)
        if owner is not None and owner.job == job.job:
            delete_dir(ctx, f"{attempts}/{name}")


def _own_tasks(ctx: CommitContext, job: JobRecord) -> list[str]:
    return [one for one in list_v1_tasks(ctx, job) if task_number(job.job, one.rpartition("/")[2]) is not None]


def _commit_own(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit like `file-v1`, but file by file and only from its own directories: other jobs may be merging too."""
    ctx = measure.ctx
    totals = reported_totals(reports.check(job))
    own = _own_tasks(ctx, job)
    if totals.files and not own:
        raise ConflictError("the job has no committed task: run it again", job=job.job)
    for directory in own:
        merge_paths_v2(ctx, directory)
    outcome = succeed(measure, job, totals=totals, tasks=len(own), paths=())
    _clean_up_own(ctx, job)
    return outcome


def _abort_own(measure: Measure, job: JobRecord) -> JobOutcome:
    committed = has_succeeded(measure.ctx, job.job)
    _clean_up_own(measure.ctx, job)
    return JobOutcome(job=job.job, committed=committed)


# --- +remembers, +replaces-last, +takes-back --------------------------------------------------------------------------
def _remembers(base: Committer) -> Committer:
    def commit(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
        """Commit. If the job's ``_SUCCESS`` exists already, only clean up, like an abort."""
        if has_succeeded(measure.ctx, job.job):
            return base.abort(measure, job)
        return base.commit(measure, job, reports)

    return _variant(base, "remembers", "whose job commit can be repeated", commit=commit)


def _replaces_last(base: Committer) -> Committer:
    def setup(ctx: CommitContext, committer: str, mode: SaveMode, details: Details) -> JobRecord | None:
        job = base.setup(ctx, base.name, SaveMode.APPEND if mode in _OVERWRITING else mode, details)
        return None if job is None else replace(job, mode=mode)

    def commit(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
        """Commit as if the job appended, then delete the files that were visible before and are not the job's.

        Crash: old and new data may both be visible, and nothing deletes the old data.
        """
        if job.mode not in _OVERWRITING:
            return base.commit(measure, job, reports)
        ctx = measure.ctx
        before = {path for path, _info in layout.iter_visible(ctx.store, ctx.prefix)}
        outcome = base.commit(measure, replace(job, mode=SaveMode.APPEND), reports)
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

    summary = "which deletes replaced data after its own files are complete"
    return _variant(base, "replaces-last", summary, setup=setup, commit=commit)


def _takes_back(base: Committer) -> Committer:
    def abort(measure: Measure, job: JobRecord) -> JobOutcome:
        """Delete the visible files whose names contain the job's id, unless its ``_SUCCESS`` exists; then abort."""
        if not has_succeeded(measure.ctx, job.job):
            delete_visible(measure.ctx, lambda path: file_job(path) == job.job)
        return base.abort(measure, job)

    return _variant(base, "takes-back", "whose abort deletes the job's visible files", abort=abort)


# --- +claim -----------------------------------------------------------------------------------------------------------
def _take(ctx: CommitContext, job: JobId, intent: str) -> tuple[bool, str]:
    """Claim a job for `intent`; return whether this call was the first, and the intent of the first claim."""
    mine = f"{intent} {ctx.ids.token()}".encode()
    found = ctx.records.create(f"_claims/{job}", mine)
    return found == mine, found.decode().partition(" ")[0]


def _take_and_finish(ctx: CommitContext, found: Leftover) -> None:
    _take(ctx, JobId(found.job), "abort")
    found.recover()


def _claim(base: Committer) -> Committer:
    def commit(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
        """Commit if this driver claims the job first.

        Hadoop does the same (``COMMIT_STARTED``, paper 001, "AM: Job Commit").
        """
        first, intent = _take(measure.ctx, job.job, "commit")
        if intent == "abort":
            raise FencedError("another process is aborting the job: run it again", job=job.job)
        if not first:
            raise OutcomeUnknownError("another driver is committing the job: run holdfast recover", job=job.job)
        return base.commit(measure, job, reports)

    def abort(measure: Measure, job: JobRecord) -> JobOutcome:
        """Abort, unless a driver has started to commit.

        Only recovery, which inspects all of a job, may end a job whose commit has started.
        """
        ctx = measure.ctx
        _first, intent = _take(ctx, job.job, "abort")
        if intent == "commit" and not has_succeeded(ctx, job.job):
            raise OutcomeUnknownError("a driver has started to commit the job: run holdfast recover", job=job.job)
        return base.abort(measure, job)

    def find_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
        for found in base.find_leftovers(ctx):
            yield replace(found, recover=partial(_take_and_finish, ctx, found))

    return _variant(
        base,
        "claim",
        "where only one driver may end a job",
        needs=(*base.needs, CONDITIONAL_WRITES),
        commit=commit,
        abort=abort,
        find_leftovers=find_leftovers,
    )


# --- all of them ------------------------------------------------------------------------------------------------------
def _variants() -> Iterator[Committer]:
    own = "which reads and deletes only its own directories"
    yield _variant(FILE_V1, "own-directory", own, commit=_commit_own, abort=_abort_own)
    for base in (MAGIC, STAGING_DIRECTORY, STAGING_PARTITIONED, MANIFEST, FILE_V1):
        for derive in (_messages, _remembers, _replaces_last, _takes_back, _claim):
            yield derive(base)


VARIANTS: Mapping[str, Committer] = {variant.name: variant for variant in _variants()}
"""All variants by name, such as ``magic+messages``."""
