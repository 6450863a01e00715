"""Find out how far the job commit of a dead job with pending sets came, and choose how to end the job (paper 001).

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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import (
    Upload,
    complete_all_uploads,
    is_unlisted_upload_pending,
    is_upload_visible,
    report_completion,
)
from holdfast.commit.hadoop.pending import PendingSet, SinglePending
from holdfast.commit.ids import JobId
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.success_file import SuccessReport, is_job_named_in_report, read_success_file
from holdfast.errors import ConflictError, CorruptDataError
from holdfast.stores.base import batched_keys, iter_uploads, multipart


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWithPendingSets:
    """A job with pending sets.

    Attributes:
        mode: for the report of a job that is completed.
        active_at_s: when the job's records last changed, in seconds since the epoch.
        sets: lists the names of the sets that the job's tasks have committed.
        load: loads the uploads that a record names: a set, or one of `attempts`.
        attempts: names of the records of attempts that have not committed.
        ids_of: returns the ids of the jobs to which a file belongs, according to the file name in its path or key.
        clean_up: aborts the job's pending uploads and deletes its records.
    """

    committer: str
    job: str
    mode: SaveMode = SaveMode.APPEND
    active_at_s: float
    sets: Callable[[], Sequence[str]]
    load: Callable[[str], Sequence[SinglePending]]
    attempts: Sequence[str] = ()
    ids_of: Callable[[str], Collection[str | None]]
    clean_up: Callable[[Measure, JobUploadState], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUploadState:
    """The state of a job's files and uploads, by their keys.

    Attributes:
        active_at_s: when the job last wrote a record or started one of its pending uploads, in seconds since the epoch.
        succeeded: whether ``_SUCCESS`` names this job.
        marked: whether a ``_SUCCESS`` exists, even one that names no job.
        damaged: a record that cannot be read, and the reason; empty if there is none.
        pending, visible, both, missing: the commits in each state; commits in `both` are pending and
            visible, commits in `missing` are neither.
        orphans: visible files whose names carry the job's id, but which are not among the visible commits.
        uploads: the job's pending uploads, identified by its records or by file names.
    """

    active_at_s: float
    succeeded: bool
    marked: bool
    damaged: str
    pending: frozenset[str]
    visible: frozenset[str]
    both: frozenset[str]
    missing: frozenset[str]
    orphans: frozenset[str]
    uploads: frozenset[Upload] = field(repr=False)

    @property
    def commits(self) -> frozenset[str]:
        return self.pending | self.visible | self.both | self.missing


Decide = Callable[[JobWithPendingSets, JobUploadState], tuple[RecoveryAction, str]]
"""Returns the recovery action for a job, and the reason."""


# --- inspecting -------------------------------------------------------------------------------------------------------
def inspect_jobs(ctx: CommitContext, jobs: Sequence[JobWithPendingSets]) -> list[JobUploadState]:
    """Find out which uploads and files of each job exist, with one listing of each for all jobs. This only reads."""
    if not jobs:
        return []
    outstanding = {
        (one.key, one.upload_id): one.initiated_at_s for one in iter_uploads(multipart(ctx.store), ctx.prefix)
    }
    try:
        report = read_success_file(ctx)
    except CorruptDataError:
        report = {}  # it exists and names no job
    records = [_load_records(ctx, job) for job in jobs]
    ids_of, names = jobs[0].ids_of, {job.job for job in jobs}
    keys = {one.key for found in records for one in found.committed}
    files = {
        info.key: info.size_bytes
        for path, info in layout.iter_visible(ctx.store, ctx.prefix)
        if info.key in keys or not names.isdisjoint(ids_of(path))
    }
    return [
        _determine_job_state(ctx, job, found, report, outstanding, files)
        for job, found in zip(jobs, records, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _LoadedRecords:
    """The uploads that a job's readable records name, and one unreadable record (empty if all are readable)."""

    committed: list[SinglePending]
    attempted: list[SinglePending]
    damaged: str


def _load_records(ctx: CommitContext, job: JobWithPendingSets) -> _LoadedRecords:
    damaged: list[str] = []

    def load_uploads(name: str) -> Sequence[SinglePending]:
        try:
            return job.load(name)
        except CorruptDataError as error:
            damaged.append(f"{name}: {error.variables.get('reason', error.message)}")
            return ()

    committed, attempted = (
        [one for found in ctx.runner.map(load_uploads, names) for one in found] for names in (job.sets(), job.attempts)
    )
    return _LoadedRecords(committed, attempted, min(damaged, default=""))


def _determine_job_state(
    ctx: CommitContext,
    job: JobWithPendingSets,
    records: _LoadedRecords,
    report: SuccessReport | None,
    outstanding: Mapping[Upload, float],
    files: Mapping[str, int],
) -> JobUploadState:
    def is_pending(one: SinglePending) -> bool:
        return (one.key, one.upload_id) in outstanding or is_unlisted_upload_pending(ctx, one)

    commits = {one.key: one for one in records.committed}
    candidates = [one for one in commits.values() if files.get(one.key) == one.size_bytes]
    there = ctx.runner.map(lambda one: (one.key, is_upload_visible(ctx, one)), candidates)
    visible = {key for key, is_there in there if is_there}
    pending = {
        key
        for key, one in commits.items()
        if (key, one.upload_id) in outstanding or (key not in visible and is_unlisted_upload_pending(ctx, one))
    }
    uploads = {(key, commits[key].upload_id) for key in pending}
    uploads |= {(one.key, one.upload_id) for one in records.attempted if is_pending(one)}
    uploads |= {upload for upload in outstanding if job.job in job.ids_of(upload[0])}
    return JobUploadState(
        active_at_s=max([job.active_at_s, *(outstanding.get(upload, 0.0) for upload in uploads)]),
        succeeded=is_job_named_in_report(report, job.job),
        marked=report is not None,
        damaged=records.damaged,
        pending=frozenset(pending - visible),
        visible=frozenset(visible - pending),
        both=frozenset(visible & pending),
        missing=frozenset(commits.keys() - visible - pending),
        orphans=frozenset(key for key in files if key not in visible and job.job in job.ids_of(key)),
        uploads=frozenset(uploads),
    )


# --- deciding ---------------------------------------------------------------------------------------------------------
def choose_recovery_action(job: JobWithPendingSets, found: JobUploadState) -> tuple[RecoveryAction, str]:
    """Choose how recovery ends a dead job with pending sets; return the action and the reason, a sentence."""
    if found.damaged:
        return RecoveryAction.KEEP, f"a record cannot be parsed and is left as it is: {found.damaged}"
    if found.succeeded:
        return RecoveryAction.CLEAN, "_SUCCESS names the job, so it is committed; only its records are left"
    if not found.commits:
        if found.orphans:
            return RecoveryAction.CLEAN, "its files are visible and its pending sets do not exist: it is over"
        return RecoveryAction.BACK, "no task has committed anything"
    if found.orphans and (found.pending or found.both or found.missing):
        return RecoveryAction.KEEP, (
            "files of the job are visible that its pending sets do not name, so a late attempt has written: inspect "
            "them, then abort its uploads"
        )
    if found.both:
        return RecoveryAction.KEEP, (
            "files of the job are visible whose uploads are still pending, so it is unknown which attempt wrote them"
        )
    if not found.pending:
        if found.visible and found.missing:
            return RecoveryAction.KEEP, (
                "some of its files are visible, the others are missing and nothing is pending: it was aborted, or a "
                "later job has replaced files"
            )
        return RecoveryAction.CLEAN, "all of its files are visible" if found.visible else (
            "none of its files is visible or pending"
        )
    if not found.visible:
        return RecoveryAction.BACK, "its job commit had not published any file"
    counts = f"{len(found.visible)} of its files are visible, {len(found.pending)} are pending"
    if not found.missing:
        return RecoveryAction.FORWARD, f"its job commit had started: {counts}"
    if has_names_without_job_id(job, found):
        return RecoveryAction.KEEP, "its job commit had failed and was deleting files whose names do not carry its id"
    return (
        RecoveryAction.BACK,
        f"its job commit had failed and was deleting its files: {counts}, {len(found.missing)} are gone",
    )


def has_names_without_job_id(job: JobWithPendingSets, found: JobUploadState) -> bool:
    """Check whether the name of any visible file lacks the job's id, so that the file may be another job's."""
    return any(job.job not in job.ids_of(key) for key in found.visible)


# --- acting -----------------------------------------------------------------------------------------------------------
def make_leftover(
    ctx: CommitContext, job: JobWithPendingSets, found: JobUploadState, decide: Decide = choose_recovery_action
) -> Leftover:
    """Return the leftover data of a job at the destination of `ctx`, with a recovery action.

    Args:
        decide: chooses the action; called at once, and again before the action is carried out.
    """
    action, reason = decide(job, found)
    return Leftover(
        committer=job.committer,
        job=job.job,
        active_at_s=found.active_at_s,
        action=action,
        reason=reason,
        recover=partial(_finish_recovery, ctx, job, action, decide),
        files=len(found.visible | found.both | found.orphans),
        uploads=len(found.uploads),
    )


def _finish_recovery(ctx: CommitContext, job: JobWithPendingSets, expected: RecoveryAction, decide: Decide) -> None:
    """Carry out the recovery action if it is still right; the job may have made progress since it was inspected.

    Raises:
        ConflictError: the job has made progress.
        HoldfastError: some uploads or records could not be removed; run it again.

    Crash: run it again; a partly finished recovery leads to the same end (C10).
    """
    if expected is RecoveryAction.KEEP:
        return
    (found,) = inspect_jobs(ctx, [job])
    action, reason = decide(job, found)
    if found.commits and action not in (expected, RecoveryAction.CLEAN):
        raise ConflictError("the job has made progress: run recover again", job=job.job, found=reason)
    measure = Measure(ctx)
    if action is RecoveryAction.FORWARD:
        published = complete_all_uploads(
            measure, job.sets(), lambda name: PendingSet(job_id=job.job, commits=tuple(job.load(name))), revert=False
        )
        record = JobRecord(job=JobId(job.job), committer=job.committer, mode=job.mode, started_at_s=0.0)
        report_completion(measure, record, published)
    if action is RecoveryAction.BACK:
        # Delete files before aborting uploads: while uploads are pending, the next run comes to the same decision.
        for batch in batched_keys(sorted(found.visible)):
            measure.ctx.store.delete_many(batch)
    job.clean_up(measure, found)
