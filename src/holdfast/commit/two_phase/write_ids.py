"""Make writes idempotent by a write id from the caller: of all writes with the same id, only one is committed (C8).

The decision contains the write id. Before the decision is marked done, a separate record of the write id is created. So
a lookup needs to read only this record and the few decisions that are not done yet, and works even after the decision
has been trimmed.
"""

from __future__ import annotations

import hashlib

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.durability import durably
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.json_fields import count_field, guarded, json_line, json_object, require, text_field
from holdfast.commit.records import JobOutcome, JobRecord, Kind, Totals
from holdfast.commit.two_phase.decision_log import read_entry, read_log
from holdfast.commit.two_phase.records import LogEntry
from holdfast.errors import NotFoundError
from holdfast.stores.base import batched_keys, iter_objects
from holdfast.versioned_log import LogView

WRITE_ID = "write_id"
"""The key of the write id in the details of a job."""

KEPT_S = 90 * 24 * 3600.0
"""How long the record of a write id is retained, in seconds."""

_FORMAT = "holdfast-write/1"


def write_id_of(job: JobRecord) -> str:
    """Return the write id of a job; empty if it has none."""
    found = job.details.get(WRITE_ID)
    return found if isinstance(found, str) else ""


def find_write(ctx: CommitContext, view: LogView, write_id: str) -> JobOutcome | None:
    """Return the committed job with this write id; None if there is none, or if its record has expired (`KEPT_S`).

    Guarantee: on a store with transactions, the commit is durable.

    Args:
        view: the log, read just before.
    """
    return durably(ctx, _find(ctx, view, write_id), lambda: _find(ctx, read_log(ctx), write_id))


def _find(ctx: CommitContext, view: LogView, write_id: str) -> JobOutcome | None:
    for seq in view.unfinished:
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            continue  # the decision is done and trimmed, so the record of its write id exists
        if entry.kind is Kind.COMMIT and write_id_of(entry.record) == write_id:
            return JobOutcome(job=entry.job, committed=True, totals=entry.totals, finished=False)
    return _read(ctx, write_id)


def is_written(ctx: CommitContext, job: JobRecord, view: LogView) -> bool:
    """Check, in the log and in the record of the write id, whether another job with the same write id is committed."""
    write_id = write_id_of(job)
    return bool(write_id) and find_write(ctx, view, write_id) is not None


def write_record(entry: LogEntry) -> tuple[str, bytes] | None:
    """Return the path and the bytes of the record that the decision's write id is committed; None if it has none."""
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
    return _path(write_id), json_line(record)


def remember_write(ctx: CommitContext, entry: LogEntry) -> None:
    """Record that the decision's write id is committed. Idempotent. Requires: the decision is not yet marked done."""
    record = write_record(entry)
    if record is not None:
        ctx.records.create(*record)


def forget_writes(ctx: CommitContext) -> None:
    """Delete the records of writes that were committed more than `KEPT_S` ago. Idempotent."""
    oldest_s = ctx.clock.now_s() - KEPT_S
    records = iter_objects(ctx.store, ctx.key(layout.WRITES))
    for batch in batched_keys(info.key for info in records if info.modified_at_s < oldest_s):
        ctx.store.delete_many(batch)


def _path(write_id: str) -> str:
    return layout.write_record(hashlib.sha256(write_id.encode()).hexdigest())


def _read(ctx: CommitContext, write_id: str) -> JobOutcome | None:
    path = _path(write_id)
    try:
        data = ctx.store.get(ctx.key(path))
    except NotFoundError:
        return None

    def decode() -> JobOutcome:
        value = json_object(data)
        require(value["format"] == _FORMAT, "format is unknown")
        require(value["write_id"] == write_id, "the record belongs to another write")
        job = text_field(value, "job")
        require(is_job_id(job), "job is not a job id")
        totals = Totals(
            files=count_field(value, "files"), size_bytes=count_field(value, "bytes"), rows=count_field(value, "rows")
        )
        return JobOutcome(job=JobId(job), committed=True, totals=totals)

    return guarded(path, decode)
