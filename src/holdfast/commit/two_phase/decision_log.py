"""Read and write the decision log. A job is decided at the moment when its entry ``head + 1`` is created (C8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.durability import durably
from holdfast.commit.ids import JobId
from holdfast.commit.two_phase.codec import decode_entry, encode_entry
from holdfast.commit.two_phase.records import LogEntry, LogState
from holdfast.errors import FencedError, LogRemovedError, LogTrimmedError, NotFoundError
from holdfast.stores.base import Change
from holdfast.versioned_log import LogView, VersionedLog


def decision_log(ctx: CommitContext) -> VersionedLog[LogEntry]:
    """Return the destination's decision log."""
    return VersionedLog(records=ctx.records, runner=ctx.runner, folder=layout.LOG, decode=decode_entry)


def read_log(ctx: CommitContext) -> LogView:
    """List the decision log; see `VersionedLog.read`.

    Raises:
        CorruptDataError: the log's folder contains a file that Holdfast did not write.
    """
    return decision_log(ctx).read()


def read_entry(ctx: CommitContext, seq: int) -> LogEntry:
    """Return one decision.

    Raises:
        CorruptDataError: the stored bytes are not a decision.
        NotFoundError: the decision has been trimmed.
    """
    return decision_log(ctx).entry(seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The state after the newest decision, which the next decision updates.

    Attributes:
        state: the state that the newest decision contains.
        token: the random token that identifies the newest decision; empty if there is none.
    """

    state: LogState = field(default_factory=LogState)
    token: str = ""


def read_newest(ctx: CommitContext, view: LogView) -> Newest | None:
    """Return the state after the newest decision in `view`; None if that decision has already been trimmed."""
    if view.head == 0:
        return Newest()
    try:
        entry = read_entry(ctx, view.head)
    except NotFoundError:
        return None
    return Newest(state=entry.state, token=entry.token)


def read_entries(ctx: CommitContext, seqs: Iterable[int]) -> Iterator[LogEntry]:
    """Iterate over the decisions with these numbers, in the given order."""
    return decision_log(ctx).entries(seqs)


def find_decision(ctx: CommitContext, view: LogView, job: JobId, after: int) -> LogEntry | None:
    """Return the decision about `job` among the entries after number `after`; None if the job is undecided.

    Guarantee: None is returned only after every retained entry after `after` has been searched. A decision that is
    returned is durable: another driver, who has made it, may not have come so far.

    Raises:
        FencedError: no retained entry decides the job, and the log does not reach back to `after`, because it was
            trimmed or (`LogRemovedError`) removed. So it is unknown whether the job was aborted. Run the job again.
    """
    try:
        log = decision_log(ctx)
        found = log.find(view, lambda entry: entry.job == job, after)
        return durably(ctx, found, lambda: log.find(log.read(), lambda entry: entry.job == job, after))
    except LogRemovedError as error:
        raise destination_gone(ctx) from error
    except LogTrimmedError as error:
        raise _left_behind(ctx, job) from error


def append_entry(ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()) -> LogEntry:
    """Create `entry` at its number, and return the entry that has this number now: the caller's or the winner's.

    Guarantee: the returned entry is part of the log's one order; see `VersionedLog.append`.

    Args:
        view: the log for which `entry` was decided.
        changes: made in the step that creates the entry, or not at all; only on a store with transactions.

    Raises:
        PreconditionError, NotFoundError: the store refused one of `changes`. Nothing happened.
        FencedError: either `entry` was created too late and is ignored, or it is valid and has already been trimmed;
            the log cannot tell which. If the job's record exists, the job is undecided, and the next trim deletes the
            entry. If the record does not exist, the job has ended. `LogRemovedError`: the destination is gone, or its
            database has lost decisions of `view`.
    """
    try:
        return decision_log(ctx).append(entry, encode_entry(entry), lambda other: other.job == entry.job, view, changes)
    except LogRemovedError as error:
        raise destination_gone(ctx) from error
    except LogTrimmedError as error:
        raise _left_behind(ctx, entry.job) from error


def destination_gone(ctx: CommitContext) -> LogRemovedError:
    """Return the error of a job whose record, or the log before it, is gone, though nobody has decided the job."""
    return LogRemovedError(
        "the destination was renamed or deleted while the job ran, or its records were, perhaps by a failover: if it "
        "has another name now, look there for files of the job first; else run the job again",
        url=ctx.url,
    )


def _left_behind(ctx: CommitContext, job: JobId) -> FencedError:
    return FencedError(
        "more jobs were decided on the destination than its log retains: raise logRetention in all jobs that write to "
        "it, and run this job again",
        url=ctx.url,
        job=job,
    )


def job_exists(ctx: CommitContext, job: JobId) -> bool:
    """Check whether the job's record exists; if so, the job has not ended, even if its log entry has been trimmed."""
    return ctx.records.exists(layout.job_record(job))


def write_mark(ctx: CommitContext, entry: LogEntry, mark: str, data: bytes = b"{}\n") -> None:
    """Mark a decision as ``visible`` or ``done``. Idempotent.

    Raises:
        LogRemovedError: the store makes transactions, and has lost the decision: it is as if it had not been made.
    """
    try:
        decision_log(ctx).mark(entry, mark, data)
    except LogRemovedError as error:
        raise destination_gone(ctx) from error


def trim_log(ctx: CommitContext, view: LogView) -> None:
    """Delete finished decisions that are older than the newest `log_retention_entries`; see `VersionedLog.trim`."""
    decision_log(ctx).trim(view, keep=ctx.settings.log_retention_entries)


def record_exists(ctx: CommitContext, seq: int, mark: str) -> bool:
    """Check whether a decision's record exists: the decision itself (``json``) or its mark ``visible`` or ``done``."""
    return decision_log(ctx).exists(seq, mark)
