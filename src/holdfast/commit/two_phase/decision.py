"""The decision of a job: one record behind all others, after all that can be known has been checked (C8, C11)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import is_to_be_skipped
from holdfast.commit.nesting import is_first, refuse_nested
from holdfast.commit.records import JobRecord, Kind, SaveMode, Totals
from holdfast.commit.two_phase.decision_log import append_entry, find_decision, read_log, read_newest
from holdfast.commit.two_phase.helping import finish_earlier, refuse_touched, still_to_delete
from holdfast.commit.two_phase.manifests import Prepared, iter_manifests, store_refs
from holdfast.commit.two_phase.pending_uploads import missing_uploads
from holdfast.commit.two_phase.publication import UPLOADS, publication_of
from holdfast.commit.two_phase.records import LogEntry, LogState
from holdfast.commit.two_phase.replacement import plan_replaced
from holdfast.commit.two_phase.streams import advance_streams, is_committed_batch
from holdfast.commit.two_phase.write_ids import is_written, write_id_of
from holdfast.errors import ConflictError, FencedError, HoldfastError, NotFoundError
from holdfast.versioned_log import LogView

__all__ = ["decide", "is_there_already", "read_log_behind"]

_MAY_EXPIRE_S = 6 * 3600.0
"""What is younger no server gives up: MinIO does so after 24 hours, rules of a bucket count in days."""


def decide(
    ctx: CommitContext, job: JobRecord, prepared: Prepared, view: LogView
) -> tuple[LogEntry | None, LogView | None]:
    """Create the decision behind all others. A refusal leaves only if no other driver of the job has decided meanwhile.

    Returns:
        The decision, None if there is nothing to decide by now (mode ``ignore`` finds data from another job, the
        stream's batch or another job with the same write id is committed); and the log as it is right after it, None
        if somebody else decided the job.

    Raises:
        InvalidRequestError: what the job writes could not be made visible as things are; says which name.
        ConflictError: the job would touch what an earlier one, which cannot be finished, has still to make visible; it
            does not fit the table; or too many others decide.
        NotFoundError: uploads of a job that took long have expired.
        DestinationExistsError: mode ``fail``, or a chosen name, meets data.
    """
    try:
        return _decide(ctx, job, prepared, view)
    except HoldfastError:
        # Its own files would be in its way.
        with contextlib.suppress(FencedError):
            decided = find_decision(ctx, read_log(ctx), job.job, job.base_seq)
            if decided is not None:
                return decided, None
        raise


def _decide(
    ctx: CommitContext, job: JobRecord, prepared: Prepared, view: LogView
) -> tuple[LogEntry | None, LogView | None]:
    token = ctx.ids.token()
    refs = store_refs(ctx, job, prepared, token)
    refuse_nested(ctx, first=is_first(ctx, view), deciding=True)
    _refuse_expired(ctx, job, prepared)
    for attempt in range(ctx.settings.conflict_attempts):
        stuck = finish_earlier(ctx, view)
        newest = read_newest(ctx, view)
        if newest is not None:
            state = newest.state
            if is_there_already(ctx, job, state, view):
                return None, None
            refuse_touched(ctx, job, prepared, stuck)
            if is_to_be_skipped(ctx, job.mode):
                return None, None
            table = ctx.contract(ctx, job, state.table)
            counted = still_to_delete(ctx, stuck) if job.mode is SaveMode.OVERWRITE_PARTITIONS else frozenset()
            plan = plan_replaced(ctx, job, prepared, f"{token}-{attempt}", counted)
            publication_of(job).check(ctx, [*_targets(job, prepared), *plan.places])
            mine = LogEntry(
                seq=view.head + 1,
                kind=Kind.COMMIT,
                record=job,
                token=token,
                decided_at_s=round(ctx.clock.now_s(), 3),
                totals=prepared.totals,
                tasks=len(prepared.refs),
                manifests=refs,
                replaced=plan.stored,
                replaced_by_job=plan.by_job,
                chosen=sum(prepared.chosen.values(), Totals()),
                state=LogState(streams=advance_streams(job, state.streams), table=table),
                after=newest.token,
            )
            found = append_entry(ctx, mine)  # the commit point
            if found.job == job.job:
                return found, replace(view, head=found.seq) if found.token == token else None
        seen = view.head
        view = read_log_behind(ctx, seen, attempt)
        decided = find_decision(ctx, view, job.job, seen)
        if decided is not None:
            return decided, None
    raise ConflictError("too many other jobs are deciding on the destination: run the job again", url=ctx.url)


def is_there_already(ctx: CommitContext, job: JobRecord, state: LogState, view: LogView) -> bool:
    """Whether what the job would add is committed: its batch, or the write of its id."""
    return is_committed_batch(job, state.streams) or is_written(ctx, job, view)


def read_log_behind(ctx: CommitContext, seen: int, attempt: int) -> LogView:
    """The log after somebody else has made an entry behind `seen`; waits once if it does not show that yet."""
    view = read_log(ctx)
    if view.head <= seen:
        ctx.clock.sleep(min(0.05 * 2.0**attempt, 1.0))
        view = read_log(ctx)
    return view


def _refuse_expired(ctx: CommitContext, job: JobRecord, prepared: Prepared) -> None:
    """Look whether the uploads of a long job still wait: a rule of the bucket, or the server, may have given them up.

    Raises:
        NotFoundError: some are gone. Undecided.
    """
    if job.publication != UPLOADS.name or ctx.clock.now_s() - job.started_at_s < _MAY_EXPIRE_S:
        return
    gone = missing_uploads(ctx, job, iter_manifests(ctx, prepared.refs, prepared.cache))
    if gone:
        raise NotFoundError(
            "uploads of the job are gone, the server or a rule of the bucket has given them up: run the job again, in "
            "less time or where idle uploads are kept for longer",
            url=ctx.url,
            job=job.job,
            gone=len(gone),
            first=gone[0],
        )


def _targets(job: JobRecord, prepared: Prepared) -> list[str]:
    """What has to be free: the job's chosen names, the report, and any name of ours in each of its directories."""
    ours = (f"{directory}/{job.job}" if directory else job.job for directory in sorted(prepared.partitions))
    written = [layout.write_record(job.job)] if write_id_of(job) else []
    return [layout.SUCCESS, *written, *ours, *prepared.chosen]
