"""Choose and carry out the recovery action for a dead job with pending sets, as paper 001 describes.

A job's commits are the uploads that its pending sets name. Each is *pending* if the upload still exists, and *visible*
if its file exists at the final path. All sets exist before the first upload is completed, and they are deleted only
after ``_SUCCESS`` or an abort. This leads to four cases:

- Some commits are visible, and all others are pending: the job commit had started. FORWARD.
- No commit is visible: the job commit had not started. BACK. Only uploads have to be aborted.
- Some commits are visible, some pending, some neither: the job commit had failed and was deleting its files. BACK if
  the names of the visible files carry the job's id. If the caller chose the names, the files may belong to another job:
  KEEP.
- Nothing is pending: the job is over. CLEAN if all commits are visible, or none is. If only some are visible, the job
  may have been aborted, or a later job may have replaced its files: KEEP.

A late attempt may add a set after the job's end, or replace the accepted set (paper 000, VIII.C). Then some visible
files of the job are named by no set; these are called *orphans*. Orphans are never deleted: KEEP, or CLEAN if the job
has no sets at all.

One situation looks like the first case and is not detected. It requires three events together: a clean-up died halfway,
a late attempt wrote a set that names none of the job's files, and a later job replaced exactly the files whose sets had
been deleted.

Source: paper 001, "Job Driver failure during Job Commit" and "Cleaning up after complete job failure".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import complete_all, has_unlisted_upload, succeed_with, writer_of
from holdfast.commit.hadoop.pending import PendingSet, SinglePending
from holdfast.commit.ids import file_job
from holdfast.commit.leftovers import Action, Leftover
from holdfast.commit.records import JobRecord
from holdfast.commit.success_file import names_job, read_success
from holdfast.commit.task import is_published
from holdfast.errors import ConflictError, CorruptDataError, UnavailableError
from holdfast.stores.base import batched_keys, iter_uploads, multipart


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSetAccess:
    """The functions that list, load and delete a job's pending sets.

    Attributes:
        names: lists the names of the sets.
        load: loads one set.
        clean_up: aborts pending uploads and deletes the sets; returns a sentence that says why something is left, or an
            empty string if nothing is.
    """

    names: Callable[[CommitContext, JobRecord], list[str]]
    load: Callable[[Measure, JobRecord, str], PendingSet]
    clean_up: Callable[[Measure, JobRecord], str]


def pending_set_leftover(ctx: CommitContext, job: JobRecord, active_at_s: float, sets: PendingSetAccess) -> Leftover:
    """Return the leftover data of `job` at the destination of `ctx`, with a recovery action.

    Args:
        active_at_s: when the committer's records last changed, seconds since the epoch.
    """
    found = _inspect(ctx, job, sets)
    action, reason = _decide(found)
    return Leftover(
        committer=job.committer,
        job=job.job,
        active_at_s=active_at_s,
        action=action,
        reason=reason,
        recover=partial(_finish, ctx, job, sets, action),
        files=len(found.visible | found.both | found.orphans),
        uploads=found.uploads,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobState:
    """The state of a job's files and uploads. Paths are relative to the destination.

    Attributes:
        succeeded: whether ``_SUCCESS`` names this job.
        damaged: the key of a record that cannot be parsed; empty if there is none.
        pending, visible, both, missing: the paths of the commits in each state; commits in `both` are pending and
            visible, commits in `missing` are neither.
        orphans: visible files whose names carry the job's id, but which are not among the visible commits.
        uploads: the number of the job's pending uploads, identified by the job's sets or by file names.
    """

    succeeded: bool = False
    damaged: str = ""
    pending: frozenset[str] = frozenset()
    visible: frozenset[str] = frozenset()
    both: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    orphans: frozenset[str] = frozenset()
    uploads: int = 0

    @property
    def commits(self) -> frozenset[str]:
        return self.pending | self.visible | self.both | self.missing


# --- inspecting -------------------------------------------------------------------------------------------------------
def _inspect(ctx: CommitContext, job: JobRecord, sets: PendingSetAccess) -> _JobState:
    measure = Measure(ctx)
    ctx = measure.ctx
    outstanding = {(upload.key, upload.upload_id) for upload in iter_uploads(multipart(ctx.store), ctx.prefix)}
    named = {upload for upload in outstanding if file_job(upload[0]) == job.job}
    try:
        report = read_success(ctx)
        loaded = ctx.runner.map(lambda name: sets.load(measure, job, name).commits, sets.names(ctx, job))
        commits = {pending.key[len(ctx.prefix) :]: pending for found in loaded for pending in found}
    except CorruptDataError as error:
        return _JobState(damaged=str(error.variables.get("key", "")), uploads=len(named))
    sizes = {
        path: info.size_bytes
        for path, info in layout.iter_visible(ctx.store, ctx.prefix)
        if path in commits or file_job(path) == job.job
    }
    pending = {path for path, one in commits.items() if (one.key, one.upload_id) in outstanding}
    visible = _visible_commits(ctx, commits, sizes)
    pending |= {
        path for path, one in commits.items() if path not in pending | visible and has_unlisted_upload(ctx, one)
    }
    return _JobState(
        succeeded=names_job(report, job.job),
        pending=frozenset(pending - visible),
        visible=frozenset(visible - pending),
        both=frozenset(visible & pending),
        missing=frozenset(commits.keys() - visible - pending),
        orphans=frozenset(path for path in sizes if path not in visible and file_job(path) == job.job),
        uploads=len(named | {(commits[path].key, commits[path].upload_id) for path in pending}),
    )


def _visible_commits(ctx: CommitContext, commits: dict[str, SinglePending], sizes: dict[str, int]) -> set[str]:
    """Return the commits whose file is visible: the commit's own file, not another attempt's or an older one."""
    candidates = [one for path, one in commits.items() if sizes.get(path) == one.size_bytes]

    def check(pending: SinglePending) -> tuple[str, bool]:
        file = pending.file_entry(ctx.prefix)
        return file.path, is_published(ctx, file, writer_of(pending))

    return {path for path, there in ctx.runner.map(check, candidates) if there}


# --- deciding ---------------------------------------------------------------------------------------------------------
def _decide(found: _JobState) -> tuple[Action, str]:
    """Return the recovery action and the reason."""
    if found.damaged:
        return Action.KEEP, f"a record cannot be parsed and is left as it is: {found.damaged}"
    if found.succeeded:
        return Action.CLEAN, "_SUCCESS names the job, so it is committed; only its records are left"
    if not found.commits:
        if found.orphans:
            return Action.CLEAN, "its files are visible and its pending sets do not exist: it is over"
        return Action.BACK, "no task has committed anything"
    if found.orphans and (found.pending or found.both or found.missing):
        return Action.KEEP, (
            "files of the job are visible that its pending sets do not name, so a late attempt has written: inspect "
            "them, then abort its uploads"
        )
    if found.both:
        return Action.KEEP, (
            "files of the job are visible whose uploads are still pending, so it is unknown which attempt wrote them"
        )
    if not found.pending:
        if found.visible and found.missing:
            return Action.KEEP, (
                "some of its files are visible, the others are missing and nothing is pending: it was aborted, or a "
                "later job has replaced files"
            )
        return Action.CLEAN, "all of its files are visible" if found.visible else (
            "none of its files is visible or pending"
        )
    if not found.visible:
        return Action.BACK, "its job commit had not published any file"
    if not found.missing:
        return Action.FORWARD, (
            f"its job commit had started: {len(found.visible)} of its files are visible, {len(found.pending)} are "
            "pending"
        )
    if any(file_job(path) is None for path in found.visible):
        return Action.KEEP, "its job commit had failed and was deleting files whose names do not carry its id"
    return Action.BACK, "its job commit had failed and was deleting its files"


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, job: JobRecord, sets: PendingSetAccess, expected: Action) -> None:
    """Carry out the recovery action if it is still right; the job may have made progress since it was inspected.

    Raises:
        ConflictError: the job has made progress.
        UnavailableError: some uploads or records could not be removed; run it again.

    Crash: run it again; a partly finished recovery leads to the same end (C10).
    """
    if expected is Action.KEEP:
        return
    found = _inspect(ctx, job, sets)
    action, reason = _decide(found)
    if found.commits and action not in (expected, Action.CLEAN):
        raise ConflictError("the job has made progress: run recover again", job=job.job, found=reason)
    measure = Measure(ctx)
    if action is Action.FORWARD:
        names = sets.names(measure.ctx, job)
        published = complete_all(measure, names, lambda name: sets.load(measure, job, name), revert=False)
        succeed_with(measure, job, published)
    if action is Action.BACK:
        # Delete files before aborting uploads: while uploads are pending, the next run comes to the same decision.
        for batch in batched_keys(measure.ctx.key(path) for path in sorted(found.visible)):
            measure.ctx.store.delete_many(batch)
    left = sets.clean_up(measure, job)
    if left:
        raise UnavailableError("clean-up is incomplete: run holdfast recover again", job=job.job, left=left)
