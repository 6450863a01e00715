"""A batch of a stream as a job of `two_phase`, in a world where nobody keeps anything between its phases.

plan_batch     on the driver's side, before the batch is known: a job record and the streams' marks, as values
join_batch     in every task: complete the record with the batch, announce it; all tasks come to the same record
commit_job, abort_job      of the committer, with the record that the tasks report
settle_batch   for a batch that nobody had to write: finish what is decided

Spark builds a stream's writer anew for every phase of every batch and tells only tasks which query and batch they
belong to; so the record travels from the plan through the tasks to the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.records import JobRecord, SaveMode, StreamBatch
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.commit.two_phase.decision_log import read_entry, read_log, trim_log
from holdfast.commit.two_phase.helping import finish_earlier
from holdfast.commit.two_phase.job import announce_job, describe_job
from holdfast.commit.two_phase.records import StreamMark
from holdfast.commit.two_phase.streams import is_committed_batch
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.versioned_log import LogView

__all__ = ["BatchPlan", "join_batch", "plan_batch", "settle_batch"]


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """What is known before a batch is written; plain values, for they travel to its tasks.

    Attributes:
        job: the record, its batch unknown as yet.
        known: how far each stream had come when the plan was made; spares a replayed batch its work. The decision
            itself looks again.
    """

    job: JobRecord
    known: Mapping[str, StreamMark]


def plan_batch(
    ctx: CommitContext, mode: SaveMode, details: Mapping[str, object], view: LogView | None = None
) -> BatchPlan:
    """Check the destination and say who the batch's job would be. Writes nothing.

    Args:
        mode: ``append``, or ``overwrite`` for a stream that gives its whole result with every batch.
        details: what is kept with the decision (schema, format); never secrets.
        view: the log, if the caller has just read it.

    Raises:
        InvalidRequestError: another mode, or the destination is a file, or lies inside another one or around one.
        UnsupportedError: the store cannot keep the promise; says what is missing.
    """
    if mode not in (SaveMode.APPEND, SaveMode.OVERWRITE):
        raise InvalidRequestError("a stream appends, or overwrites with every batch: leave the mode out", mode=mode)
    TWO_PHASE.check_fit(ctx, mode)
    job = describe_job(ctx, TWO_PHASE.name, mode, details, view)
    assert job is not None  # only mode ignore has nothing to do
    try:
        known = read_entry(ctx, job.base_seq).state.streams if job.base_seq else {}
    except NotFoundError:
        known = {}  # trimmed meanwhile: others are busy here
    return BatchPlan(job=job, known=known)


def join_batch(ctx: CommitContext, plan: BatchPlan, batch: StreamBatch) -> JobRecord | None:
    """Complete and announce the job of a batch. Every task that has something to write calls this first.

    Guarantee: all tasks of a plan come to the same record, and it stands in the store when this returns.

    Returns:
        The job; None if the batch is committed already, and there is nothing to write.

    Raises:
        InvalidRequestError: the stream was written with another checkpoint.
        UnsupportedError: the store ignores conditional writes.

    Crash: an announced job; the stream's next commit removes it.
    """
    job = replace(plan.job, stream=batch)
    if is_committed_batch(job, plan.known):
        return None
    if not _is_announced(ctx, job):
        announce_job(ctx, job)
    return job


def _is_announced(ctx: CommitContext, job: JobRecord) -> bool:
    """Whether another task was faster. It has tried, too, whether the store heeds conditions: once a batch will do."""
    try:
        return ctx.store.get(ctx.key(layout.job_record(job.job))) == encode_job(job)
    except NotFoundError:
        return False


def settle_batch(ctx: CommitContext) -> None:
    """Finish what is decided on the destination: a replayed batch may be committed, and its driver died right then.

    Raises:
        CorruptDataError: a record of the log cannot be read.
    """
    view = read_log(ctx)
    stuck = {found.entry.seq for found in finish_earlier(ctx, view)}
    trim_log(ctx, replace(view, done=view.done | (frozenset(view.unfinished) - stuck)))
