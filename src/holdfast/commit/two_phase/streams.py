"""Write a stream's batch as a job of `two_phase`, without any object that lives longer than one phase.

plan_batch              on the driver, before the batch is known: create a job record, and read the streams' progress
announce_stream_batch   in every task: add the batch to the record and announce it; all tasks make the same record
commit_job, abort_job   the committer's steps, called with the record that the tasks report
roll_forward_decisions  for a batch without new data: roll logged decisions forward

Spark creates a new writer for every phase of every batch, and tells only the tasks which query and batch they belong
to. So the job record travels from the plan through the tasks to the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import make_durable_and_search_again
from holdfast.commit.records import JobRecord, SaveMode, StreamBatch
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.commit.two_phase.decision import roll_forward_earlier_jobs
from holdfast.commit.two_phase.decision_log import read_entry, read_log, trim_log
from holdfast.commit.two_phase.job import announce_job, prepare_new_job
from holdfast.commit.two_phase.records import StreamMark, is_committed_batch
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.versioned_log import LogView


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """The facts that are known before a batch is written, as plain values, because Spark sends them to the tasks.

    Attributes:
        job: the job's record, still without a batch.
        known: the progress of each stream when the plan was made, so that tasks can skip a batch that is already
            committed. The decision checks this again.
    """

    job: JobRecord
    known: Mapping[str, StreamMark]


def plan_batch(
    ctx: CommitContext, mode: SaveMode, details: Mapping[str, object], view: LogView | None = None
) -> BatchPlan:
    """Check the destination and plan the batch's job. This writes nothing.

    Args:
        mode: ``append``, or ``overwrite`` for a stream that writes its complete result with every batch.
        details: stored with the decision (schema, format); never secrets.
        view: the log, if the caller has just read it.

    Raises:
        InvalidRequestError: the mode is neither of these, or the destination is a file, lies inside another destination
            or contains one.
        UnsupportedError: the committer does not fit the store; the message says why.
    """
    if mode not in (SaveMode.APPEND, SaveMode.OVERWRITE):
        raise InvalidRequestError("a stream appends, or overwrites with every batch: omit the mode", mode=mode)
    TWO_PHASE.check_fit(ctx, mode, others="another store")
    job = prepare_new_job(ctx, TWO_PHASE.name, mode, details, view)
    assert job is not None  # only mode ignore skips jobs
    known = make_durable_and_search_again(
        ctx, _read_stream_marks(ctx, job.base_seq), lambda: _read_stream_marks(ctx, job.base_seq)
    )
    return BatchPlan(job=job, known=known)


def _read_stream_marks(ctx: CommitContext, seq: int) -> Mapping[str, StreamMark]:
    try:
        return read_entry(ctx, seq).state.streams if seq else {}
    except NotFoundError:
        return {}  # trimmed just now, so other jobs are being decided


def announce_stream_batch(ctx: CommitContext, plan: BatchPlan, batch: StreamBatch) -> JobRecord | None:
    """Add the batch to the planned job record, and announce the job. Every task that has data calls this first.

    Guarantee: all tasks of a plan create the same record, and the record exists in the store when this returns.

    Returns:
        The job; None if the batch is already committed, so that there is nothing to write.

    Raises:
        InvalidRequestError: the stream was written with another checkpoint.
        UnsupportedError: the store ignores conditional writes.

    Crash: leaves an announced job; the stream's next commit cleans up after it.
    """
    job = replace(plan.job, stream=batch)
    if is_committed_batch(job, plan.known):
        return None
    if not _is_announced(ctx, job):
        announce_job(ctx, job)
    return job


def _is_announced(ctx: CommitContext, job: JobRecord) -> bool:
    """Check whether another task has announced the job; that task has also tested conditional writes."""
    try:
        return ctx.store.get(ctx.key(layout.job_record_path(job.job))) == encode_job(job)
    except NotFoundError:
        return False


def roll_forward_decisions(ctx: CommitContext) -> None:
    """Finish a batch without new data: carry out (roll forward) every decision of the destination that is not done.

    The batch may be a replay, whose earlier driver died right after the commit.

    Raises:
        CorruptDataError: a record of the log cannot be read.
    """
    view = read_log(ctx)
    stuck = {found.entry.seq for found in roll_forward_earlier_jobs(ctx, view)}
    trim_log(ctx, replace(view, done=view.done | (frozenset(view.unfinished) - stuck)))
