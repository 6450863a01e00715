"""What may be done about a job of pending sets whose driver died: paper 001's recipe, for `magic` and `staging-*`.

Commits are the uploads that the pending sets name, Outstanding those that still wait, Written the files that stand at
their places. Sets are all there before the first completion, and gone only after ``_SUCCESS`` or an abort; so

- something is Written, and each commit either Written or Outstanding: the job commit was under way. FORWARD.
- nothing is Written: it had not begun. BACK. There is nothing to delete but uploads.
- some are Written, some wait, some are neither: it had failed and was taking its files back. BACK, if their names
  carry the job; what has a name of the caller's choice may be somebody else's. Then KEEP.
- nothing waits: the job is over. CLEAN, if all is Written or nothing is; else nobody can tell a job that was given up
  from one that lost files to a later job. KEEP.

Where a late attempt has left a set after the end, or put one over the accepted one (paper 000, VIII.C), files of the
job are visible that no set names. They are never deleted: KEEP, or CLEAN if there are no sets at all.

Not provable, and not noticed: a clean-up that died halfway, a late set that names none of the job's files, and a later
job that has replaced just the files whose sets are gone. All three together look like the first case.

Source: paper 001, "Job Driver failure during Job Commit" and "Cleaning up after complete job failure".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from holdfast.commit import layout
from holdfast.commit.attempt_names import file_job
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.pending import PendingSet, SinglePending
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import complete_all, succeed_with, waits_unlisted, writer_of
from holdfast.commit.records import JobRecord
from holdfast.commit.success_file import read_success
from holdfast.commit.uploads import is_published
from holdfast.errors import ConflictError, CorruptDataError, UnavailableError
from holdfast.stores.base import batched_keys, iter_uploads, multipart

__all__ = ["SetStore", "judge_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStore:
    """Where a committer keeps a job's pending sets.

    Attributes:
        names: of the sets, found by listing.
        load: reads one.
        clean_up: aborts what waits and deletes the sets; returns why something is left, or an empty text.
    """

    names: Callable[[CommitContext, JobRecord], list[str]]
    load: Callable[[Measure, JobRecord, str], PendingSet]
    clean_up: Callable[[Measure, JobRecord], str]


def judge_job(ctx: CommitContext, job: JobRecord, active_at_s: float, sets: SetStore) -> Leftover:
    """What a job has left at the destination of `ctx`, and what may be done about it.

    Args:
        active_at_s: when its committer's records last changed, seconds since the epoch.
    """
    found = _look(ctx, job, sets)
    action, reason = _decide(found)
    return Leftover(
        committer=job.committer,
        job=job.job,
        active_at_s=active_at_s,
        action=action,
        reason=reason,
        finish=partial(_finish, ctx, job, sets, action),
        files=len(found.written | found.both | found.strangers),
        uploads=found.uploads,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What there is of a job. Paths are relative to the destination.

    Attributes:
        succeeded: ``_SUCCESS`` is this job's.
        damaged: the record that cannot be read, or empty.
        waiting, written, both, neither: the commits, by path.
        strangers: visible files whose names carry the job, and which are not Written.
        uploads: pending uploads that its sets or its file names tell to be the job's.
    """

    succeeded: bool = False
    damaged: str = ""
    waiting: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    both: frozenset[str] = frozenset()
    neither: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    uploads: int = 0

    @property
    def commits(self) -> frozenset[str]:
        return self.waiting | self.written | self.both | self.neither


# --- looking ----------------------------------------------------------------------------------------------------------
def _look(ctx: CommitContext, job: JobRecord, sets: SetStore) -> _Found:
    measure = Measure(ctx)
    ctx = measure.ctx
    outstanding = {(upload.key, upload.upload_id) for upload in iter_uploads(multipart(ctx.store), ctx.prefix)}
    named = {upload for upload in outstanding if file_job(upload[0]) == job.job}
    try:
        report = read_success(ctx)
        loaded = ctx.runner.map(lambda name: sets.load(measure, job, name).commits, sets.names(ctx, job))
        commits = {pending.key[len(ctx.prefix) :]: pending for found in loaded for pending in found}
    except CorruptDataError as error:
        return _Found(damaged=str(error.variables.get("key", "")), uploads=len(named))
    sizes = {
        path: info.size_bytes
        for path, info in layout.iter_visible(ctx.store, ctx.prefix)
        if path in commits or file_job(path) == job.job
    }
    waiting = {path for path, one in commits.items() if (one.key, one.upload_id) in outstanding}
    written = _written(ctx, commits, sizes)
    waiting |= {path for path, one in commits.items() if path not in waiting | written and waits_unlisted(ctx, one)}
    return _Found(
        succeeded=report is not None and report.get("jobId") == job.job,
        waiting=frozenset(waiting - written),
        written=frozenset(written - waiting),
        both=frozenset(written & waiting),
        neither=frozenset(commits.keys() - written - waiting),
        strangers=frozenset(path for path in sizes if path not in written and file_job(path) == job.job),
        uploads=len(named | {(commits[path].key, commits[path].upload_id) for path in waiting}),
    )


def _written(ctx: CommitContext, commits: dict[str, SinglePending], sizes: dict[str, int]) -> set[str]:
    """The commits whose own bytes stand at their places, not another attempt's nor an older file's."""
    candidates = [one for path, one in commits.items() if sizes.get(path) == one.size_bytes]

    def look(pending: SinglePending) -> tuple[str, bool]:
        file = pending.file_entry(ctx.prefix)
        return file.path, is_published(ctx, file, writer_of(pending))

    return {path for path, there in ctx.runner.map(look, candidates) if there}


# --- deciding ---------------------------------------------------------------------------------------------------------
def _decide(found: _Found) -> tuple[Action, str]:
    """What may be done, and why."""
    if found.damaged:
        return Action.KEEP, f"a record cannot be read, its bytes are kept: {found.damaged}"
    if found.succeeded:
        return Action.CLEAN, "it is committed, _SUCCESS says so; its records are left"
    if not found.commits:
        if found.strangers:
            return Action.CLEAN, "files of it are visible and its pending sets are gone: it is over"
        return Action.BACK, "no task has committed anything"
    if found.strangers and (found.waiting or found.both or found.neither):
        return Action.KEEP, (
            "files of it are visible that its pending sets do not name, a late attempt has written: look at them, then "
            "abort its uploads"
        )
    if found.both:
        return Action.KEEP, "files of it are visible whose uploads still wait, so that nobody can tell whose they are"
    if not found.waiting:
        if found.written and found.neither:
            return Action.KEEP, (
                "some of its files are visible, the others are gone and nothing waits: it was given up, or a later job "
                "has replaced files"
            )
        return Action.CLEAN, "all of its files are visible" if found.written else "nothing of it is visible or waits"
    if not found.written:
        return Action.BACK, "its job commit had not begun to show files"
    if not found.neither:
        return Action.FORWARD, (
            f"its job commit was under way: {len(found.written)} of its files are visible, {len(found.waiting)} wait"
        )
    if any(file_job(path) is None for path in found.written):
        return Action.KEEP, "it had failed and was taking files back whose names do not tell that they are its own"
    return Action.BACK, "its job commit had failed and was taking its files back"


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, job: JobRecord, sets: SetStore, expected: Action) -> None:
    """Do what was decided, if it is still right: between looking and acting the job may have gone on.

    Raises:
        ConflictError: the job has gone on.
        UnavailableError: something is left; run it again.

    Crash: run it again; what is half done leads to the same end (C10).
    """
    if expected is Action.KEEP:
        return
    found = _look(ctx, job, sets)
    action, reason = _decide(found)
    if found.commits and action not in (expected, Action.CLEAN):
        raise ConflictError("the job has gone on: look again", job=job.job, found=reason)
    measure = Measure(ctx)
    if action is Action.FORWARD:
        names = sets.names(measure.ctx, job)
        published = complete_all(measure, names, lambda name: sets.load(measure, job, name), revert=False)
        succeed_with(measure, job, published)
    if action is Action.BACK:
        # Before the uploads: while some wait, whoever looks next comes to the same decision.
        for batch in batched_keys(measure.ctx.key(path) for path in sorted(found.written)):
            measure.ctx.store.delete_many(batch)
    left = sets.clean_up(measure, job)
    if left:
        raise UnavailableError("clean-up is incomplete: run holdfast recover again", job=job.job, left=left)
