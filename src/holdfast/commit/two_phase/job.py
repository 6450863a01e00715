"""The driver's side of `two_phase`: start a job, decide it, abort it.

Source: paper 000, VIII.A for what has to hold, XI and XIII for handing the task's list to the driver; the decision
log, helping and fencing are ours (docs/decisions).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import is_to_be_skipped, refuse_file, refuse_taken, written_by
from holdfast.commit.ids import new_job_id
from holdfast.commit.measure import Measure
from holdfast.commit.nesting import is_first, refuse_nested
from holdfast.commit.records import JobOutcome, JobRecord, Kind, SaveMode, TaskCommit
from holdfast.commit.task_commits import check_messages
from holdfast.commit.two_phase.cleanup import clean_up_job, refusals_told
from holdfast.commit.two_phase.decision import decide, is_there_already, read_log_behind
from holdfast.commit.two_phase.decision_log import (
    append_entry,
    find_decision,
    job_exists,
    read_log,
    read_newest,
    record_exists,
    trim_log,
)
from holdfast.commit.two_phase.manifests import ManifestCache, prepare_job
from holdfast.commit.two_phase.pending_uploads import find_listing
from holdfast.commit.two_phase.publication import UPLOADS, choose_publication
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.roll_forward import finish_decision
from holdfast.commit.two_phase.write_ids import forget_writes, write_id_of
from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.stores.base import Support
from holdfast.stores.probe import UploadListing, refuses_second_create
from holdfast.versioned_log import LogView

__all__ = ["abort_job", "announce_job", "commit_job", "describe_job"]

_log = logging.getLogger(__name__)


# --- start ------------------------------------------------------------------------------------------------------------
def describe_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object], view: LogView | None = None
) -> JobRecord | None:
    """The first half of `start_job`: check the destination and say who the job is. Writes nothing that stays.

    Args:
        view: the log, if the caller has just read it.

    Raises and returns what `start_job` does, but does not try whether the store heeds conditions.
    """
    publication = choose_publication(ctx.store)
    view = view or read_log(ctx)
    refuse_file(ctx)
    refuse_taken(ctx, [layout.SUCCESS, layout.log_entry(view.head + 1)])
    refuse_nested(ctx, first=is_first(ctx, view))
    if is_to_be_skipped(ctx, mode):
        return None
    return JobRecord(
        job=new_job_id(ctx.clock, ctx.ids),
        committer=committer,
        publication=publication.name,
        mode=mode,
        base_seq=view.head,
        started_at_s=round(ctx.clock.now_s(), 3),
        details=details,
        announced=publication is UPLOADS and find_listing(ctx) is not UploadListing.BY_DIRECTORY,
    )


def announce_job(ctx: CommitContext, record: JobRecord) -> None:
    """The second half of `start_job`: write the job's record, so that others keep their hands off what it uploads.

    Guarantee: returns only when the record stands. Several processes of one job may announce it, each with the same
    record: one write wins, the others see that it is theirs.

    Raises:
        UnsupportedError: the store ignores conditional writes.

    Crash: at most a ``job.json``; `recover` removes it.
    """
    data = encode_job(record)
    found = ctx.records.create(layout.job_record(record.job), data)
    if found != data:
        raise ConflictError("another job has the same id: run the job again", job=record.job)
    _require_conditional_writes(ctx, record, data)


def _require_conditional_writes(ctx: CommitContext, record: JobRecord, data: bytes) -> None:
    """C8 rests on put-if-absent, which some servers accept and ignore: try it on the job's own record."""
    known = ctx.store.capabilities.conditional_put
    if ctx.settings.allow_unfenced or known is Support.YES:
        return
    key = ctx.key(layout.job_record(record.job))
    if known is Support.UNKNOWN and refuses_second_create(ctx.store, key, data):
        return
    ctx.store.delete(key)
    raise UnsupportedError(
        "the store ignores conditional writes, so two drivers could both decide a job: use another store, or accept "
        "that with allow_unfenced",
        url=ctx.url,
    )


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_job(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """Decide a job and make it visible.

    Guarantee: returns only after the decision stands in the log. From then on the job is committed whatever happens
    (C8): trouble with the work after it is reported in the outcome, never as a failed commit. Calling it again, also
    from another process, gives the same decision. A batch of a stream that was decided before is dropped.

    Args:
        commits: what the tasks' accepted attempts returned, one a task.
        tasks: how many tasks there are, or their numbers.

    Raises:
        InvalidRequestError: a task is missing or doubled, two files share a target, or a stream has another
            checkpoint. Undecided.
        ConflictError: the job does not fit the table that is there by now, or touches what an earlier job, which cannot
            be finished, has still to make visible. Undecided.
        DestinationExistsError: mode ``fail``, and another job put data there meanwhile; or the job adds a file of the
            caller's naming that is there. Undecided.
        FencedError: somebody has aborted the job. Stop.
        CorruptDataError: a manifest or log record cannot be read (undecided), or files of this job are lost, which is
            committed.
        OutcomeUnknownError: the store did not say whether the decision stands. Call `abort_job`: it reads first.

    Crash: undecided until the log entry is there, committed from then on; `recover` or the next job does the rest.
    """
    ctx = measure.ctx
    try:
        entry, after, cache = _decide(measure, job, commits, tasks)
    except FencedError:
        if job_exists(ctx, job.job):
            raise
        return _drop_fenced(ctx, job)  # somebody has ended it, and the log has forgotten how
    if entry is None:
        return abort_job(measure, job)
    if entry.kind is Kind.ABORT:
        raise FencedError("the job was aborted by somebody else: run it again", url=ctx.url, job=job.job)
    return _finish(measure, entry, view=after, cache=cache)


def _decide(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> tuple[LogEntry | None, LogView | None, ManifestCache | None]:
    """The decision about a job, made now or before, with what `decide` returns, and manifests that are at hand.

    Returns:
        No decision if what the job would add is there already: its batch, or the write of its id.
    """
    ctx = measure.ctx
    view = read_log(ctx)
    entry = find_decision(ctx, view, job.job, job.base_seq)
    if entry is not None:
        return entry, None, None
    present = check_messages(job, commits, tasks)
    try:
        with measure.stage("job_stage_load_manifests"):
            prepared = prepare_job(ctx, job, present)
    except NotFoundError as error:
        # Manifests go only with their job: most likely recovery took this driver for dead.
        view, seen = read_log(ctx), view.head
        entry = find_decision(ctx, view, job.job, seen)
        newest = read_newest(ctx, view) if entry is None else None
        if entry is None and (newest is None or not is_there_already(ctx, job, newest.state, view)):
            raise CorruptDataError(
                "a task's manifest is gone, somebody removed it: run the job again", url=ctx.url, job=job.job
            ) from error
        return entry, None, None
    with measure.stage("job_stage_decide"):
        entry, after = decide(ctx, job, prepared, view)
    return entry, after, prepared.cache


def _finish(
    measure: Measure, entry: LogEntry, *, view: LogView | None = None, cache: ManifestCache | None = None
) -> JobOutcome:
    """The work after a decision, tried a few times; what is left then is left to the next job.

    A `view` that others have overtaken does no harm: every step of `finish_decision` finds out what is done already.
    """
    ctx = measure.ctx
    committed = entry.kind is Kind.COMMIT
    outcome = JobOutcome(job=entry.job, committed=committed, totals=entry.totals)
    problem: HoldfastError | None = None
    for attempt in range(ctx.settings.finish_attempts):
        if attempt:
            ctx.clock.sleep(min(0.5 * 2**attempt, 10.0))
        try:
            view = view or read_log(ctx)
            report = None
            if entry.seq in view.done or entry.seq < view.oldest:
                # What a fenced driver wrote meanwhile.
                clean_up_job(ctx, entry.record)
            else:
                report = finish_decision(measure, entry, visible=entry.seq in view.visible, cache=cache)
            with refusals_told(ctx, entry.record):
                trim_log(ctx, replace(view, done=view.done | {entry.seq}))
                if write_id_of(entry.record):
                    forget_writes(ctx)
            return replace(outcome, report=report)
        except CorruptDataError as error:
            if not record_exists(ctx, entry.seq, "visible"):
                raise  # files of the job are lost
            problem = error
            break
        except (UnavailableError, OutcomeUnknownError) as error:
            problem, view = error, None
        except HoldfastError as error:
            problem = error
            break
    word = "committed" if committed else "aborted"
    reason = f"the job is {word}, its publication or clean-up is pending: run holdfast recover {ctx.url}"
    _log.error("%s job=%s cause=%s", reason, entry.job, problem)
    return replace(outcome, finished=False, pending_reason=f"{reason} ({problem})")


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """End a job that shall not commit; or, if it is decided already, carry the decision out.

    Guarantee: reads the log before anything else. Spark calls abort after a commit that died half way: a job whose
    commit stands is rolled forward, never undone (Iceberg issue 4686). Else an abort entry fences a slow driver (C8),
    then the job's hidden files go (C5).

    Raises:
        OutcomeUnknownError: the job was decided and finished, by whomever, and the log has forgotten how.
        ConflictError: others decide all the time. Again.

    Crash: with the abort entry in the log anybody finishes the rest; without it the job is undecided still.
    """
    ctx = measure.ctx
    view = read_log(ctx)
    for attempt in range(ctx.settings.conflict_attempts):
        try:
            entry = find_decision(ctx, view, job.job, job.base_seq)
        except FencedError:
            return _drop_fenced(ctx, job)
        newest = read_newest(ctx, view)
        if entry is None and newest is not None:
            mine = LogEntry(
                seq=view.head + 1,
                kind=Kind.ABORT,
                record=job,
                token=ctx.ids.token(),
                decided_at_s=round(ctx.clock.now_s(), 3),
                state=newest.state,
                after=newest.token,
            )
            try:
                found = append_entry(ctx, mine)
            except FencedError:
                return _drop_fenced(ctx, job)
            entry = found if found.job == job.job else None
        if entry is not None:
            return _finish(measure, entry)
        view = read_log_behind(ctx, view.head, attempt)
    raise ConflictError("too many other jobs are deciding on the destination: run abort again", url=ctx.url)


def _drop_fenced(ctx: CommitContext, job: JobRecord) -> JobOutcome:
    """End a job that the log has left behind: no driver can commit it any more, so no entry is needed.

    Names of ours appear only after a decision, so files of the job tell that it is committed; a task that comes late
    may have announced it again since. If there are none: a job that has its record is not finished, and decisions that
    are not finished are never trimmed: so nobody has decided it. One without is over, and nobody can say how it ended.

    Raises:
        OutcomeUnknownError: that.
    """
    totals = written_by(ctx, job.job)
    is_announced = job_exists(ctx, job.job)
    if not (totals.files or is_announced):
        raise OutcomeUnknownError(
            "the job is over, its decision is no longer in the log, and no file of it is there: look at the "
            "destination and at holdfast history before the job is run again",
            url=ctx.url,
            job=job.job,
        )
    if is_announced:
        clean_up_job(ctx, job)
    return JobOutcome(job=job.job, committed=totals.files > 0, totals=totals)
