"""Start, commit and abort a job: the driver's side of `two_phase`.

Source: paper 000, VIII.A for the properties that must hold, XI and XIII for how tasks pass their file lists to the
driver; the decision log, helping and fencing are Holdfast's own (docs/decisions).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import (
    count_job_files,
    is_job_to_be_skipped,
    refuse_file_destination,
    refuse_taken_paths,
)
from holdfast.commit.ids import new_job_id
from holdfast.commit.nested_destinations import is_first_commit, refuse_nested_destination
from holdfast.commit.records import JobOutcome, JobRecord, Kind, SaveMode
from holdfast.commit.two_phase.cleanup import clean_up_ended_job, log_refused_cleanup
from holdfast.commit.two_phase.decision import JobDecision, decide_job, is_already_committed, reread_log_after_conflict
from holdfast.commit.two_phase.decision_log import (
    append_entry,
    decision_record_exists,
    delete_expired_write_ids,
    destination_gone_error,
    find_decision,
    job_exists,
    read_log,
    read_newest_state,
    trim_log,
    write_id_of,
)
from holdfast.commit.two_phase.manifests import ManifestCache, prepare_job_output
from holdfast.commit.two_phase.pending_uploads import find_listing_support
from holdfast.commit.two_phase.publication import RENAMES, choose_publication, find_job_publication
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.roll_forward import roll_forward
from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    HoldfastError,
    LogRemovedError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.stores.base import Support
from holdfast.stores.probe import UploadListingMode, store_refuses_second_create
from holdfast.versioned_log import LogView

_log = logging.getLogger(__name__)


# --- start ------------------------------------------------------------------------------------------------------------
def setup_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination and write the job's record; see `Committer.setup_job`.

    Raises also:
        UnsupportedError: the store ignores conditional writes.

    Crash: leaves at most a ``job.json``, which `recover` deletes.
    """
    record = prepare_new_job(ctx, committer, mode, details)
    if record is not None:
        announce_job(ctx, record)
    return record


def prepare_new_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object], view: LogView | None = None
) -> JobRecord | None:
    """Check the destination and return the record of a new job. Nothing is left in the store.

    Args:
        view: the log, if the caller has just read it.

    Returns, raises: like `Committer.setup_job`, except that conditional writes are not tested (see `announce_job`).
    """
    publication = choose_publication(ctx.store)
    view = view or read_log(ctx)
    refuse_file_destination(ctx)
    refuse_taken_paths(ctx, [layout.SUCCESS, layout.log_entry_path(view.head + 1)])
    refuse_nested_destination(ctx, first=is_first_commit(ctx, view))
    if is_job_to_be_skipped(ctx, mode):
        return None
    return JobRecord(
        job=new_job_id(ctx.clock, ctx.ids),
        committer=committer,
        publication=publication.name,
        mode=mode,
        base_seq=view.head,
        started_at_s=round(ctx.clock.now_s(), 3),
        details=details,
        announced=publication is not RENAMES and find_listing_support(ctx) is not UploadListingMode.BY_DIRECTORY,
    )


def announce_job(ctx: CommitContext, record: JobRecord) -> None:
    """Write the job's record, which marks the job as active, so that cleanup by other jobs spares its uploads.

    Guarantee: returns only once the record exists. Several processes of one job may announce it with the same record:
    one write wins, and the other processes find a record equal to their own.

    Raises:
        UnsupportedError: the store ignores conditional writes.

    Crash: leaves at most a ``job.json``, which `recover` deletes.
    """
    data = encode_job(record)
    found = ctx.records.create(layout.job_record_path(record.job), data)
    if found != data:
        raise ConflictError("another job has the same id: run the job again", job=record.job)
    _require_conditional_writes(ctx, record, data)


def _require_conditional_writes(ctx: CommitContext, record: JobRecord, data: bytes) -> None:
    """Test a conditional write on the job's own record: C8 relies on put-if-absent, which some servers ignore."""
    known = ctx.store.capabilities.conditional_put
    if ctx.settings.allow_unfenced or known is Support.YES:
        return
    key = ctx.key(layout.job_record_path(record.job))
    if known is Support.UNKNOWN and store_refuses_second_create(ctx.store, key, data):
        return
    ctx.store.delete(key)
    raise UnsupportedError(
        "the store ignores conditional writes, so two drivers could both decide a job: use another store, or accept "
        "that with allow_unfenced",
        url=ctx.url,
    )


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Decide a job, then make its output visible.

    Guarantee: returns only after the decision is in the log. From then on the job stays committed (C8):
    a failure of the remaining work is reported in the outcome, never as a failed commit. Calling this again, even from
    another process, yields the same decision. If the job's stream batch or its write id is already committed, the job
    is aborted.

    Raises:
        InvalidRequestError: a task is missing or reported twice, two files have the same target, a stream has another
            checkpoint, or the store does not accept a file. The job is undecided.
        NotFoundError: uploads of the job have expired. The job is undecided.
        ConflictError: the job does not fit the current table, or conflicts with an earlier job that cannot be rolled
            forward. The job is undecided.
        DestinationExistsError: the mode is ``fail`` and another job has added data in the meantime, or the caller chose
            a file name that is taken. The job is undecided.
        FencedError: another process has aborted the job. Stop. `LogRemovedError`: the destination was renamed or
            deleted while the job ran. Nothing of the job is visible there. If a reply was lost and the destination
            renamed, its files may be visible under the new name: check this before you run the job again.
        CorruptDataError: a manifest or a log record cannot be read (the job is undecided), or files of the job are lost
            (the job is committed).
        OutcomeUnknownError: the store did not confirm the decision. Call `abort_job`, which reads the log first.

    Crash: the job is undecided until its log entry exists, and committed from then on; `recover` or the next job does
    the remaining work.
    """
    ctx = measure.ctx
    try:
        decided = _find_or_make_decision(measure, job, reports)
    except FencedError as error:
        if job_exists(ctx, job.job):
            raise
        outcome = _end_fenced_job(ctx, job, error, is_announced=False)
        if outcome.committed:
            return outcome
        raise
    if decided is None:
        return abort_job(measure, job)
    if decided.entry.kind is Kind.ABORT:
        raise FencedError("another process has aborted the job: run it again", url=ctx.url, job=job.job)
    outcome = _roll_forward_with_retries(measure, decided.entry, view=decided.view, cache=decided.cache)
    return outcome if decided.report is None else replace(outcome, report=decided.report)


def _find_or_make_decision(measure: Measure, job: JobRecord, reports: TaskReports) -> JobDecision | None:
    """Find the decision about the job in the log; if there is none, decide it now, like `decide`."""
    ctx = measure.ctx
    view = read_log(ctx)
    decided = find_decision(ctx, view, job.job, job.base_seq)
    if decided is not None:
        return JobDecision(entry=decided)
    checked = reports.check(job)
    try:
        with measure.stage("job_stage_load_manifests"):
            prepared = prepare_job_output(ctx, job, checked)
    except NotFoundError as error:
        return _explain_missing_manifest(ctx, job, view.head, error)
    with measure.stage("job_stage_decide"):
        return decide_job(measure, job, prepared, view)


def _explain_missing_manifest(
    ctx: CommitContext, job: JobRecord, seen: int, error: NotFoundError
) -> JobDecision | None:
    """Find the decision of another process that explains why the job's manifests no longer exist.

    Holdfast deletes manifests only after their job has ended. Most likely, recovery took this driver for dead.

    Args:
        seen: the number of the newest entry that has already been searched.

    Raises:
        CorruptDataError: the job is undecided, so something other than Holdfast deleted a manifest.
    """
    view = read_log(ctx)
    decided = find_decision(ctx, view, job.job, seen)
    if decided is not None:
        return JobDecision(entry=decided)
    newest = read_newest_state(ctx, view)
    if newest is not None and is_already_committed(ctx, job, newest.state, view):
        return None
    raise CorruptDataError(
        "a task's manifest is missing, something has deleted it: run the job again", url=ctx.url, job=job.job
    ) from error


# --- after the decision -----------------------------------------------------------------------------------------------
def _roll_forward_with_retries(
    measure: Measure, entry: LogEntry, *, view: LogView | None = None, cache: ManifestCache | None = None
) -> JobOutcome:
    """Roll a decision forward, with a few retries. If it still fails, leave the remaining work to the next job.

    Args:
        view: the log, if the caller has just read it. It may be out of date: every step of `roll_forward` checks
            whether the step is already done.
        cache: manifests that the caller still holds in memory.
    """
    ctx = measure.ctx
    committed = entry.kind is Kind.COMMIT
    outcome = JobOutcome(job=entry.job, committed=committed, totals=entry.totals)
    problem: HoldfastError | None = None
    for attempt in range(ctx.settings.roll_forward_attempts):
        if attempt:
            ctx.clock.sleep(min(0.5 * 2**attempt, 10.0))
        try:
            view = view or read_log(ctx)
            report = None
            if entry.seq in view.done or entry.seq < view.oldest:
                # What is left belongs to attempts that do not count, or to a fenced driver.
                clean_up_ended_job(ctx, entry.record, entry, _reported_manifest_keys(ctx, cache))
            else:
                report = roll_forward(measure, entry, visible=entry.seq in view.visible, cache=cache)
            with log_refused_cleanup(ctx, entry.record):
                trim_log(ctx, replace(view, done=view.done | {entry.seq}))
                if write_id_of(entry.record):
                    delete_expired_write_ids(ctx)
            return replace(outcome, report=report)
        except CorruptDataError as error:
            if not decision_record_exists(ctx, entry.seq, "visible"):
                raise  # files of the job are lost
            problem = error
            break
        except (UnavailableError, OutcomeUnknownError) as error:
            problem, view = error, None
        except HoldfastError as error:
            problem = error
            break
    word = "committed" if committed else "aborted"
    reason = f"the job is {word}, its publication or cleanup is pending: run holdfast recover {ctx.url}"
    _log.error("%s job=%s cause=%s", reason, entry.job, problem)
    return replace(outcome, finished=False, pending_reason=f"{reason} ({problem})")


def _reported_manifest_keys(ctx: CommitContext, cache: ManifestCache | None) -> frozenset[str]:
    """Return the keys of the manifests that count, if this process has loaded them."""
    refs = () if cache is None or cache.listed is None else cache.listed[1]
    return frozenset(ctx.key(ref.key) for ref in refs)


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort a job, or roll it forward if its commit is logged.

    Guarantee: the log is read before anything else, because Spark calls abort even after a commit that failed halfway.
    A job whose commit is in the log is rolled forward, never undone (Iceberg issue 4686). For any other job, an abort
    entry fences a slow driver (C8), and then the job's hidden files are deleted (C5).

    Raises:
        OutcomeUnknownError: the job was decided and carried out, and its entry has been trimmed from the log.
        ConflictError: too many other jobs were decided first. Call this again.

    Crash: before the abort entry is in the log, the job is undecided. Afterwards the next job or `recover` does the
    remaining work.
    """
    ctx = measure.ctx
    view = read_log(ctx)
    for attempt in range(ctx.settings.conflict_attempts):
        try:
            entry = find_decision(ctx, view, job.job, job.base_seq)
            if entry is None and not job_exists(ctx, job.job):
                # A process that ends a job deletes its record after the entry, so a new look shows the entry.
                entry = find_decision(ctx, read_log(ctx), job.job, job.base_seq)
                if entry is None:
                    raise destination_gone_error(ctx)  # without the record, the job cannot be committed
            entry = entry or _append_abort(ctx, job, view)
        except FencedError as error:
            return _end_fenced_job(ctx, job, error, is_announced=job_exists(ctx, job.job))
        if entry is not None:
            return _roll_forward_with_retries(measure, entry)
        view = reread_log_after_conflict(ctx, view.head, attempt)
    raise ConflictError("too many other jobs are deciding on the destination: run abort again", url=ctx.url)


def _append_abort(ctx: CommitContext, job: JobRecord, view: LogView) -> LogEntry | None:
    """Append an abort entry, and return the entry about the job; None if another job's entry was appended first."""
    newest = read_newest_state(ctx, view)
    if newest is None:
        return None
    find_job_publication(job)  # every reader of the log would refuse an entry with an unknown publication
    entry = LogEntry(
        seq=view.head + 1,
        kind=Kind.ABORT,
        record=job,
        token=ctx.ids.token(),
        decided_at_s=round(ctx.clock.now_s(), 3),
        state=newest.state,
        after=newest.token,
    )
    winner = append_entry(ctx, entry, view)
    return winner if winner.job == job.job else None


def _end_fenced_job(ctx: CommitContext, job: JobRecord, error: FencedError, *, is_announced: bool) -> JobOutcome:
    """End a job that started before the oldest entry of the log, or that lost its record: no driver can commit it.

    Files with generated names become visible only after a decision, so visible files prove that the job is committed,
    even if its record exists, because a late task may have announced the job again. If no file is visible but the job's
    record exists, the job is undecided, because decisions that are not done are never trimmed. If neither exists, the
    job has ended: its outcome is unknown, or the destination is gone and with it all that the job can have published.

    Args:
        error: why the job is fenced.
        is_announced: whether the job's record exists.

    Raises:
        OutcomeUnknownError: the job has neither visible files nor a record.
    """
    totals = count_job_files(ctx, job.job)
    is_gone = isinstance(error, LogRemovedError)
    if not (totals.files or is_announced or is_gone):
        raise OutcomeUnknownError(
            "the job has ended, its decision is no longer in the log, and none of its files is visible: check the "
            "destination and holdfast history before you run the job again",
            url=ctx.url,
            job=job.job,
        )
    if is_announced or is_gone:
        clean_up_ended_job(ctx, job)
    return JobOutcome(job=job.job, committed=totals.files > 0, totals=totals)
