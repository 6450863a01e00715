"""Recover the jobs of a decision log: roll decided jobs forward, abort undecided ones (C9).

If recovery mistakes a live job for a dead one, the abort entry fences the job. The job then fails cleanly, and can
never commit a part of its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.leftovers import RecoveredJob, RecoveryAction, RecoveryReport, is_job_quiet
from holdfast.commit.records import JobRecord, Kind
from holdfast.commit.two_phase.cleanup import clean_up_ended_jobs
from holdfast.commit.two_phase.decision_log import job_exists, read_entries, read_entry, read_log
from holdfast.commit.two_phase.job import abort_job
from holdfast.commit.two_phase.pending_uploads import (
    NOTES,
    LiveJobs,
    find_listing_support,
    find_uploads_to_keys,
    is_manifest,
    listing_probe_key,
)
from holdfast.commit.two_phase.publication import RENAMES, UPLOADS
from holdfast.commit.two_phase.records import LogEntry, decode_open_job
from holdfast.commit.two_phase.roll_forward import check_publishable, roll_forward
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError
from holdfast.stores.base import Support, iter_objects, iter_uploads, multipart
from holdfast.versioned_log import LogView


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job that has not ended, which is known because its record still exists.

    Attributes:
        record: the job's record; None if its ``job.json`` cannot be read.
        active_at_s: when the job last wrote something, in seconds since the epoch by the store's clock.
        manifests: how many task attempts have reported.
    """

    job: JobId
    record: JobRecord | None
    active_at_s: float
    manifests: int


def list_open_jobs(ctx: CommitContext) -> Iterator[OpenJob]:
    """List the jobs that have a ``job.json``, oldest first, including decided jobs whose decision is not done yet."""
    prefix = ctx.key(layout.JOBS)
    jobs: dict[JobId, tuple[float, int, bool]] = {}
    for info in iter_objects(ctx.store, prefix):
        name, _, rest = info.key[len(prefix) :].partition("/")
        if is_job_id(name):
            active, manifests, announced = jobs.get(JobId(name), (0.0, 0, False))
            jobs[JobId(name)] = (
                max(active, info.modified_at_s),
                manifests + is_manifest(info.key),
                announced or rest == "job.json",
            )
    for job, (active, manifests, announced) in sorted(jobs.items()):
        if announced:
            path = layout.job_record_path(job)
            try:
                record = decode_open_job(path, ctx.store.get(ctx.key(path)))
            except NotFoundError:
                continue
            except CorruptDataError:
                record = None
            yield OpenJob(job=job, record=record, active_at_s=active, manifests=manifests)


def recover_logged_jobs(
    ctx: CommitContext, report: RecoveryReport, *, older_than_s: float, dry_run: bool, accept_damage: bool
) -> None:
    """End every job that has an unfinished log entry or a job record, and add it to `report`.

    Args: as for `recover`.

    Crash: anywhere; run it again.
    """
    _roll_forward_decisions(ctx, report, dry_run, accept_damage)
    seen = {job.job for job in report.jobs} | report.damaged.keys() | report.pending.keys()
    now_s = ctx.clock.now_s()
    for found in list_open_jobs(ctx):
        if found.job in seen:
            continue
        if found.record is None:
            report.damaged[found.job] = (
                f"its record cannot be read, its bytes are kept: restore {layout.job_record_path(found.job)}, or "
                "delete it so that the next recovery cleans up after the job"
            )
            continue
        quiet = is_job_quiet(found.active_at_s, now_s, older_than_s)
        if quiet and not dry_run:
            _end_open_job(ctx, found.record, report)
        else:
            report.jobs.append(_make_recovered_job(found.record, RecoveryAction.BACK, _UNDECIDED, is_alive=not quiet))
    if not dry_run:
        everywhere = RENAMES if ctx.store.capabilities.multipart is None else UPLOADS
        listing = find_listing_support(ctx)
        if everywhere is UPLOADS and NOTES[listing]:
            report.notes.append(NOTES[listing])
        try:
            report.uploads_aborted, report.folders_removed = clean_up_ended_jobs(
                ctx, LiveJobs(ctx), everywhere, listing, quiet_s=older_than_s
            )
            report.uploads_aborted += _abort_stray_uploads(ctx, older_than_s)
        except HoldfastError as error:
            report.add_failure("cleanup", error)


def _abort_stray_uploads(ctx: CommitContext, older_than_s: float) -> int:
    """Abort writes and uploads that a killed process left and that belong to no job; return their number.

    A process that is killed may leave a half-written record on a file system (on an object store a put is atomic), and
    the upload that probed how the server lists uploads. Only the age of such leftovers shows that no process needs
    them.
    """
    if ctx.store.capabilities.multipart is None:
        return 0
    store, now_s = multipart(ctx.store), ctx.clock.now_s()
    found = (
        []
        if ctx.store.capabilities.lists_uploads is Support.YES
        else list(find_uploads_to_keys(ctx, [listing_probe_key(ctx)]))
    )
    if ctx.store.capabilities.rename:
        found += [
            upload
            for upload in iter_uploads(store, ctx.prefix)
            if layout.is_holdfast_record(upload.key[len(ctx.prefix) :])
        ]
    dead = [upload for upload in found if is_job_quiet(upload.initiated_at_s, now_s, older_than_s)]
    for upload in dead:
        store.abort_upload(upload.key, upload.upload_id)
    return len(dead)


def _roll_forward_decisions(ctx: CommitContext, report: RecoveryReport, dry_run: bool, accept_damage: bool) -> None:
    view = read_log(ctx)
    for done, seq in enumerate(view.unfinished, start=1):
        try:
            entry = read_entry(ctx, seq)
        except CorruptDataError as error:
            report.damaged[layout.log_entry_path(seq)] = str(error)
            continue
        except NotFoundError:
            continue  # another process has completed the decision, and its entry has been trimmed
        done_report = None
        try:
            if dry_run:
                if entry.kind is Kind.COMMIT and seq not in view.visible:
                    check_publishable(ctx, entry)
            else:
                done_report = roll_forward(
                    Measure(ctx), entry, visible=seq in view.visible, accept_damage=accept_damage
                )
        except HoldfastError as error:
            report.add_failure(entry.job, error)
            continue
        if entry.kind is Kind.COMMIT:
            lost = done_report.metrics.get("files_lost", 0) if done_report is not None else 0
            ended = replace(
                _make_recovered_job(entry.record, RecoveryAction.FORWARD, _COMMITTED, files=entry.totals.files),
                lost=lost,
            )
        else:
            ended = _make_recovered_job(entry.record, RecoveryAction.BACK, "its abort is in the log")
        report.jobs.append(ended)
        ctx.progress("decisions", done, len(view.unfinished))


def _end_open_job(ctx: CommitContext, record: JobRecord, report: RecoveryReport) -> None:
    try:
        outcome = abort_job(Measure(ctx), record)
    except HoldfastError as error:
        report.add_failure(record.job, error)
        return
    if not outcome.finished:
        report.pending[record.job] = outcome.pending_reason
    elif job_exists(ctx, record.job):
        report.pending[record.job] = "it has ended, but the store refuses to delete its records: check its policy"
    elif outcome.committed:
        report.jobs.append(_make_recovered_job(record, RecoveryAction.FORWARD, _COMMITTED, files=outcome.totals.files))
    else:
        report.jobs.append(_make_recovered_job(record, RecoveryAction.BACK, _UNDECIDED))


_COMMITTED = "its commit is in the log"
_UNDECIDED = "it was undecided"


def _make_recovered_job(
    record: JobRecord, action: RecoveryAction, reason: str, *, files: int = 0, is_alive: bool = False
) -> RecoveredJob:
    return RecoveredJob(
        committer=record.committer, job=record.job, action=action, reason=reason, files=files, is_alive=is_alive
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """A log entry and its progress: ``decided``, ``visible`` or ``done``."""

    entry: LogEntry
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The decisions in the order of the log, and the undecided jobs, each of which is either running or dead."""

    decisions: list[Decision]
    open_jobs: list[OpenJob]


def _decision_state(view: LogView, seq: int) -> str:
    return "done" if seq in view.done else "visible" if seq in view.visible else "decided"


def read_history(ctx: CommitContext) -> History:
    """Return all decisions that the destination's log retains, and the undecided jobs.

    Raises:
        CorruptDataError: a log record cannot be read.
    """
    view = read_log(ctx)
    decisions = [
        Decision(entry, _decision_state(view, entry.seq))
        for entry in read_entries(ctx, range(view.oldest, view.head + 1))
    ]
    decided = {decision.entry.job for decision in decisions}
    return History(decisions=decisions, open_jobs=[job for job in list_open_jobs(ctx) if job.job not in decided])
