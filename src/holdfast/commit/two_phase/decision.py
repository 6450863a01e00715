"""Decide a job: check everything that can be checked in advance, then append one entry to the log (C8, C11)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import is_to_be_skipped
from holdfast.commit.durability import durably
from holdfast.commit.measure import Measure
from holdfast.commit.nesting import is_first, refuse_nested
from holdfast.commit.records import JobRecord, JobReport, Kind, Totals
from holdfast.commit.two_phase.decision_log import (
    append_entry,
    destination_gone,
    find_decision,
    job_exists,
    read_log,
    read_newest,
)
from holdfast.commit.two_phase.decision_result import Committed, DecisionResult, Skipped, result_of
from holdfast.commit.two_phase.helping import help_earlier_jobs, refuse_conflicts
from holdfast.commit.two_phase.manifests import ManifestCache, Prepared, iter_manifests, list_refs
from holdfast.commit.two_phase.pending_uploads import missing_uploads
from holdfast.commit.two_phase.publication import UPLOADS, publication_of
from holdfast.commit.two_phase.records import LogEntry, LogState
from holdfast.commit.two_phase.replacement import ReplacementPlan, plan_replaced
from holdfast.commit.two_phase.streams import advance_streams, is_committed_batch
from holdfast.commit.two_phase.transaction import JobFiles, commit_at_once, plan_files
from holdfast.commit.two_phase.write_ids import is_written, write_id_of
from holdfast.errors import ConflictError, FencedError, HoldfastError, NotFoundError
from holdfast.versioned_log import LogView

_MAY_EXPIRE_S = 6 * 3600.0
"""No server expires uploads younger than this: MinIO waits 24 hours, and bucket lifecycle rules count in days."""


def decide(measure: Measure, job: JobRecord, prepared: Prepared, view: LogView) -> DecisionResult:
    """Append the job's commit entry to the log, unless the job is already decided or has to be skipped.

    Guarantee: no error is raised if another driver of the job has decided it in the meantime. On a store with
    transactions, the decision is also carried out.

    Raises:
        InvalidRequestError: one of the job's files could not be made visible; the message says which.
        ConflictError: the job conflicts with an earlier job that cannot be rolled forward, or does not fit the table,
            or too many other jobs are being decided.
        NotFoundError: uploads of a job have expired. On a store without transactions, only those of a job that ran for
            a long time are checked.
        DestinationExistsError: the mode is ``fail`` and the destination contains data, or a file name that the caller
            chose is taken.
        LogRemovedError: the destination was renamed or deleted while the job ran, as its record shows. On a store
            without transactions, a rename that comes between this check and the decision is not noticed.
    """
    ctx = measure.ctx
    try:
        return _append_commit(measure, job, prepared, view)
    except HoldfastError:
        # The error may have been caused by the job's own visible files, if another driver has decided the job.
        with contextlib.suppress(FencedError):
            decided = find_decision(ctx, read_log(ctx), job.job, job.base_seq)
            if decided is not None:
                return result_of(decided, cache=prepared.cache)
        raise


def _append_commit(measure: Measure, job: JobRecord, prepared: Prepared, view: LogView) -> DecisionResult:
    """Check the job against the newest entry, then append the job's entry; start over if another job comes first."""
    ctx = measure.ctx
    draft = _draft_entry(ctx, job, prepared)
    files = plan_files(ctx, job, prepared) if publication_of(job).at_once else None
    refuse_nested(ctx, first=is_first(ctx, view), deciding=True)
    _refuse_expired(ctx, job, prepared)
    for attempt in range(ctx.settings.conflict_attempts):
        stuck = help_earlier_jobs(ctx, view)
        newest = read_newest(ctx, view)
        if newest is not None:
            state = newest.state
            if is_already_committed(ctx, job, state, view):
                return Skipped()
            refuse_conflicts(ctx, job, prepared, stuck)
            if is_to_be_skipped(ctx, job.mode):
                return Skipped()
            table = ctx.contract(ctx, job, state.table)
            deleting = [earlier.entry for earlier in stuck if earlier.is_visible]
            plan = plan_replaced(ctx, job, prepared, f"{draft.token}-{attempt}", deleting)
            if files is None and plan.ref is not None:
                ctx.store.put(ctx.key(plan.ref.key), plan.data)
            publication_of(job).check(ctx, [*_targets(job, prepared), *plan.places])
            entry = replace(
                draft,
                seq=view.head + 1,
                decided_at_s=round(ctx.clock.now_s(), 3),
                replaced=plan.ref,
                replaced_by_job=plan.by_job,
                state=LogState(streams=advance_streams(job, state.streams), table=table),
                after=newest.token,
            )
            found = _commit_entry(measure, entry, view, files, plan, prepared.cache)
            if found is not None:
                return found
        seen = view.head
        view = read_log_after(ctx, seen, attempt)
        decided = find_decision(ctx, view, job.job, seen)
        if decided is not None:
            return result_of(decided, cache=prepared.cache)
    raise ConflictError("too many other jobs are deciding on the destination: run the job again", url=ctx.url)


def _commit_entry(
    measure: Measure,
    entry: LogEntry,
    view: LogView,
    files: JobFiles | None,
    plan: ReplacementPlan,
    cache: ManifestCache,
) -> DecisionResult | None:
    """Append `entry`, in a transaction if there are `files`; return None if another job's entry was appended first."""
    after = replace(view, head=entry.seq)
    winner: LogEntry | None
    report: JobReport | None = None
    if files is None:
        if not job_exists(measure.ctx, entry.job):
            if read_log(measure.ctx).head >= entry.seq:
                return None  # another job of the same stream was decided first, and has cleaned up after this one
            raise destination_gone(measure.ctx)
        winner = append_entry(measure.ctx, entry, view)  # the commit point
    else:
        winner, report = commit_at_once(measure, entry, view, files, plan)  # the commit point
        after = replace(after, visible=view.visible | {entry.seq}, done=view.done | {entry.seq})
    if winner is None or winner.job != entry.job:
        return None
    if winner.token != entry.token:
        return result_of(winner, cache=cache)
    return Committed(entry=winner, view=after, cache=cache, report=report)


def _draft_entry(ctx: CommitContext, job: JobRecord, prepared: Prepared) -> LogEntry:
    """Return the part of the entry that does not depend on the log; store the list of manifests if it will be read."""
    token = ctx.ids.token()
    manifests, data = list_refs(job, prepared, token)
    if not publication_of(job).at_once:
        ctx.store.put(ctx.key(manifests.key), data)
    return LogEntry(
        seq=0,
        kind=Kind.COMMIT,
        record=job,
        token=token,
        decided_at_s=0.0,
        totals=prepared.totals,
        tasks=len(prepared.refs),
        manifests=manifests,
        chosen=sum(prepared.chosen.values(), Totals()),
    )


def is_already_committed(ctx: CommitContext, job: JobRecord, state: LogState, view: LogView) -> bool:
    """Check whether the stream batch that `job` would commit, or the write with its write id, is already committed.

    Guarantee: on a store with transactions, what is committed is durable.

    Args:
        state: the state that the newest entry of `view` contains.
    """

    def is_still_committed() -> bool:
        newest = read_newest(ctx, read_log(ctx))
        return newest is not None and is_committed_batch(job, newest.state.streams)  # else the log has moved on

    return durably(ctx, is_committed_batch(job, state.streams), is_still_committed) or is_written(ctx, job, view)


def read_log_after(ctx: CommitContext, seen: int, attempt: int) -> LogView:
    """Read the log again after another writer has appended to it; if no entry after `seen` is listed yet, wait once."""
    view = read_log(ctx)
    if view.head <= seen:
        ctx.clock.sleep(min(0.05 * 2.0**attempt, 1.0))
        view = read_log(ctx)
    return view


def _refuse_expired(ctx: CommitContext, job: JobRecord, prepared: Prepared) -> None:
    """Check that a long job's uploads are still pending; the server or a lifecycle rule may have aborted them.

    Raises:
        NotFoundError: some uploads have expired. The job is undecided.
    """
    if job.publication != UPLOADS.name or ctx.clock.now_s() - job.started_at_s < _MAY_EXPIRE_S:
        return
    gone = missing_uploads(ctx, job, iter_manifests(ctx, prepared.refs, prepared.cache))
    if gone:
        raise NotFoundError(
            "uploads of the job have expired, the server or a lifecycle rule of the bucket aborted them: run the job "
            "again, in less time or where idle uploads are retained longer",
            url=ctx.url,
            job=job.job,
            gone=len(gone),
            first=gone[0],
        )


def _targets(job: JobRecord, prepared: Prepared) -> list[str]:
    """List the paths that must be free to write to.

    These are the names that the caller chose, ``_SUCCESS``, the record of the write id if there is one, and one
    generated name in each of the job's directories.
    """
    ours = (f"{directory}/{job.job}" if directory else job.job for directory in sorted(prepared.partitions))
    written = [layout.write_record(job.job)] if write_id_of(job) else []
    return [layout.SUCCESS, *written, *ours, *prepared.chosen]
