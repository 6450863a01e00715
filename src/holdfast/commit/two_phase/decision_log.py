"""Read and write the decision log, and the records of write ids.

A job is decided at the moment when its entry ``head + 1`` is created (C8). Of all writes with the same write id, only
one is committed: its decision contains the id, and before the decision is marked done, a separate record of the id is
created. So a lookup needs to read only this record and the few decisions that are not done yet, and works even after
the decision has been trimmed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.commit import layout
from holdfast.commit.codec import (
    decode_record,
    encode_json_line,
    parse_json_object,
    read_count_field,
    read_text_field,
    require_valid,
)
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import make_durable_and_search_again
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.records import JobOutcome, JobRecord, Kind, Totals
from holdfast.commit.two_phase.records import LogEntry, LogState, decode_entry, encode_entry
from holdfast.errors import FencedError, LogRemovedError, LogTrimmedError, NotFoundError
from holdfast.stores.base import Change, batched_keys, iter_objects
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


class NewestLogState(NamedTuple):
    """The state of the log after its newest decision, and the token of that decision; both empty if there is none."""

    state: LogState = LogState()
    token: str = ""


def read_newest_state(ctx: CommitContext, view: LogView) -> NewestLogState | None:
    """Return the state after the newest decision in `view`; None if that decision has already been trimmed."""
    if view.head == 0:
        return NewestLogState()
    try:
        entry = read_entry(ctx, view.head)
    except NotFoundError:
        return None
    return NewestLogState(entry.state, entry.token)


def read_entries(ctx: CommitContext, seqs: Iterable[int]) -> Iterator[LogEntry]:
    """Iterate over the decisions with these numbers, in the given order."""
    return decision_log(ctx).entries(seqs)


def find_decision(ctx: CommitContext, view: LogView, job: JobId, after: int) -> LogEntry | None:
    """Return the decision about `job` among the entries after number `after`; None if the job is undecided.

    Guarantee: None is returned only after every retained entry after `after` has been searched. A returned
    decision has been made durable, because the driver that wrote it may have died before doing so.

    Raises:
        FencedError: no retained entry decides the job, and the log does not reach back to `after`, because it was
            trimmed or (`LogRemovedError`) removed. So it is unknown whether the job was aborted. Run the job again.
    """
    try:
        log = decision_log(ctx)
        found = log.find_newest(view, lambda entry: entry.job == job, after)
        return make_durable_and_search_again(
            ctx, found, lambda: log.find_newest(log.read(), lambda entry: entry.job == job, after)
        )
    except LogRemovedError as error:
        raise destination_gone_error(ctx) from error
    except LogTrimmedError as error:
        raise _make_log_overtaken_error(ctx, job) from error


def append_entry(ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()) -> LogEntry:
    """Append `entry` to the log, and return the log's entry: this one or, if another process was first, another.

    Guarantee: the returned entry has a permanent position in the log. It is `entry`, or the entry that has its number,
    or an entry about the same job with a later number; see `VersionedLog.append`.

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
        raise destination_gone_error(ctx) from error
    except LogTrimmedError as error:
        raise _make_log_overtaken_error(ctx, entry.job) from error


def destination_gone_error(ctx: CommitContext) -> LogRemovedError:
    """Return the error for an undecided job whose record, or whose destination's log, no longer exists."""
    return LogRemovedError(
        "the destination was renamed or deleted while the job ran, or its records were, perhaps by a failover: if it "
        "has another name now, look there for files of the job first; else run the job again",
        url=ctx.url,
    )


def _make_log_overtaken_error(ctx: CommitContext, job: JobId) -> FencedError:
    return FencedError(
        "more jobs were decided on the destination than its log retains: raise logRetention in all jobs that write to "
        "it, and run this job again",
        url=ctx.url,
        job=job,
    )


def job_exists(ctx: CommitContext, job: JobId) -> bool:
    """Check whether the job's record exists; if so, the job has not ended, even if its log entry has been trimmed."""
    return ctx.records.exists(layout.job_record_path(job))


def write_decision_mark(ctx: CommitContext, entry: LogEntry, mark: str, data: bytes = b"{}\n") -> None:
    """Mark a decision as ``visible`` or ``done``. Idempotent.

    Raises:
        LogRemovedError: the store supports transactions, and has lost the decision, which counts as not made.
    """
    try:
        decision_log(ctx).mark(entry, mark, data)
    except LogRemovedError as error:
        raise destination_gone_error(ctx) from error


def trim_log(ctx: CommitContext, view: LogView) -> None:
    """Delete finished decisions but the newest `log_retention_entries`; see `VersionedLog.delete_old_entries`."""
    decision_log(ctx).delete_old_entries(view, keep=ctx.settings.log_retention_entries)


def decision_record_exists(ctx: CommitContext, seq: int, mark: str) -> bool:
    """Check whether a decision's record exists: the decision itself (``json``) or its mark ``visible`` or ``done``."""
    return decision_log(ctx).exists(seq, mark)


WRITE_ID = "write_id"
"""The key of the write id in the details of a job."""

KEPT_S = 90 * 24 * 3600.0
"""How long the record of a write id is retained, in seconds."""

_FORMAT = "holdfast-write/1"


def write_id_of(job: JobRecord) -> str:
    """Return the write id of a job; empty if it has none."""
    found = job.details.get(WRITE_ID)
    return found if isinstance(found, str) else ""


def find_job_by_write_id(ctx: CommitContext, view: LogView, write_id: str) -> JobOutcome | None:
    """Return the committed job with this write id; None if there is none, or if its record has expired (`KEPT_S`).

    Guarantee: on a store with transactions, the commit is durable.

    Args:
        view: the log, read just before.
    """
    return make_durable_and_search_again(
        ctx, _find_write(ctx, view, write_id), lambda: _find_write(ctx, read_log(ctx), write_id)
    )


def _find_write(ctx: CommitContext, view: LogView, write_id: str) -> JobOutcome | None:
    for seq in view.unfinished:
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            continue  # the decision is done and trimmed, so the record of its write id exists
        if entry.kind is Kind.COMMIT and write_id_of(entry.record) == write_id:
            return JobOutcome(job=entry.job, committed=True, totals=entry.totals, finished=False)
    return _read_write_id_record(ctx, write_id)


def is_write_id_used(ctx: CommitContext, job: JobRecord, view: LogView) -> bool:
    """Check, in the log and in the record of the write id, whether another job with the same write id is committed."""
    write_id = write_id_of(job)
    return bool(write_id) and find_job_by_write_id(ctx, view, write_id) is not None


def make_write_id_record(entry: LogEntry) -> tuple[str, bytes] | None:
    """Return the path and bytes of the record of a commit's write id; None for an abort, or without a write id."""
    write_id = write_id_of(entry.record)
    if not write_id or entry.kind is not Kind.COMMIT:
        return None
    totals = entry.totals
    record = {
        "format": _FORMAT,
        "write_id": write_id,
        "job": entry.job,
        "files": totals.files,
        "bytes": totals.size_bytes,
        "rows": totals.rows,
    }
    return _write_id_record_path(write_id), encode_json_line(record)


def save_write_id_record(ctx: CommitContext, entry: LogEntry) -> None:
    """Record that the decision's write id is committed. Idempotent. Requires: the decision is not yet marked done."""
    record = make_write_id_record(entry)
    if record is not None:
        ctx.records.create(*record)


def delete_expired_write_ids(ctx: CommitContext) -> None:
    """Delete the records of writes that were committed more than `KEPT_S` ago. Idempotent.

    Ages are measured from this machine's time or that of the second newest record, whichever is earlier. So a driver
    whose clock is ahead, and whose own record may be the newest, deletes no record that is young by the store's clock.
    """
    records = list(iter_objects(ctx.store, ctx.key(layout.WRITES)))
    if len(records) < 2:
        return
    now_s = min(ctx.clock.now_s(), sorted(info.modified_at_s for info in records)[-2])
    for batch in batched_keys(info.key for info in records if info.modified_at_s < now_s - KEPT_S):
        ctx.store.delete_many(batch)


def _write_id_record_path(write_id: str) -> str:
    return layout.write_id_record_path(hashlib.sha256(write_id.encode()).hexdigest())


def _read_write_id_record(ctx: CommitContext, write_id: str) -> JobOutcome | None:
    path = _write_id_record_path(write_id)
    try:
        data = ctx.store.get(ctx.key(path))
    except NotFoundError:
        return None

    def decode_fields() -> JobOutcome:
        value = parse_json_object(data)
        require_valid(value["format"] == _FORMAT, "format is unknown")
        require_valid(value["write_id"] == write_id, "the record belongs to another write")
        job = read_text_field(value, "job")
        require_valid(is_job_id(job), "job is not a job id")
        totals = Totals(
            files=read_count_field(value, "files"),
            size_bytes=read_count_field(value, "bytes"),
            rows=read_count_field(value, "rows"),
        )
        return JobOutcome(job=JobId(job), committed=True, totals=totals)

    return decode_record(path, decode_fields)
