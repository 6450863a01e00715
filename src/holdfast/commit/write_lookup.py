"""Look up the outcome of a write by its token, for every committer. Each call of a write has its own token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.durability import durably
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.records import JobOutcome, Kind, Totals
from holdfast.commit.success_file import read_success
from holdfast.commit.two_phase.decision_log import read_entry, read_log
from holdfast.commit.two_phase.recovery import open_jobs
from holdfast.commit.two_phase.write_ids import write_id_of
from holdfast.errors import ConflictError, CorruptDataError, NotFoundError
from holdfast.runtime import Ids

TOKEN = "token"
"""The key, in a job's details, under which the token of the call that started the job is stored."""

QUIET_S = 300.0
"""A job that has not written anything for this long, in seconds, may be dead."""

_TOKEN = re.compile(r"[0-9a-f]{12}")


class JobIds:
    """A source of ids that makes the job id of a write end in the write's token.

    So the leftover data of a write can be found by file names even if the committer stores no record of the job.

    Args:
        token: the write's token; ignored unless it is twelve hexadecimal digits.
        ids: the source of all other tokens.
    """

    def __init__(self, token: str, ids: Ids) -> None:
        self._first = [token] if _TOKEN.fullmatch(token) else []
        self._ids = ids

    def token(self) -> str:
        """Return the token of the write on the first call, and tokens from `ids` on later calls."""
        return self._first.pop() if self._first else self._ids.token()


def is_job_of(job: str, token: str) -> bool:
    """Check whether a job id ends in the token of a write. Use this if no record of the job contains the token."""
    return is_job_id(job) and job.endswith(f"-{token}")


def find_written(ctx: CommitContext, token: str) -> JobOutcome | None:
    """Return the committed job of a write, from the log or, failing that, from ``_SUCCESS``; None if neither has it.

    Guarantee: on a store with transactions, the commit is durable.

    Args:
        token: the value of `TOKEN` in the job's details.
    """
    return durably(ctx, _in_records(ctx, token), lambda: _in_records(ctx, token))


def _in_records(ctx: CommitContext, token: str) -> JobOutcome | None:
    view = read_log(ctx)
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            break  # this entry and all before it have just been trimmed
        if entry.kind is Kind.COMMIT and entry.record.details.get(TOKEN) == token:
            return JobOutcome(job=entry.job, committed=True, totals=entry.totals, finished=seq in view.done)
    return _in_report(ctx, token)


def refuse_running(ctx: CommitContext, write_id: str) -> None:
    """Refuse to start a write while another job with the same write id is running.

    A job that has been quiet for `QUIET_S` does not count: its driver may be dead. If the driver is alive after all,
    only one of the two jobs is committed, because the decision checks the write id again.

    Raises:
        ConflictError: another job with this write id is running.
    """
    for job in open_jobs(ctx):
        quiet_s = ctx.clock.now_s() - job.active_at_s
        if job.record is not None and write_id_of(job.record) == write_id and quiet_s < QUIET_S:
            raise ConflictError(
                "a write with this write id is running: wait for it, or for five minutes if its driver is dead",
                url=ctx.url,
                write_id=write_id,
                job=job.job,
            )


def _in_report(ctx: CommitContext, token: str) -> JobOutcome | None:
    try:
        report = read_success(ctx) or {}
    except CorruptDataError:
        return None  # another tool wrote the file
    if _mapping(report, "diagnostics").get(f"holdfast.{TOKEN}") != token or report.get("success") is not True:
        return None
    metrics = _mapping(report, "metrics")
    files, size_bytes, rows = (_count(metrics.get(name)) for name in ("files", "bytes", "rows"))
    return JobOutcome(
        job=JobId(str(report.get("jobId"))),
        committed=True,
        totals=Totals(files=files, size_bytes=size_bytes, rows=rows),
    )


def find_files(ctx: CommitContext, token: str) -> JobOutcome | None:
    """Find a write's visible files by the job id in their names, for a write without log entry and ``_SUCCESS``.

    Guarantee: never returns files of a write with another token. On a store with transactions, they are durable.
    """
    return durably(ctx, _in_names(ctx, token), lambda: _in_names(ctx, token))


def _in_names(ctx: CommitContext, token: str) -> JobOutcome | None:
    name = re.compile(rf"\d{{17}}-{re.escape(token)}(?![0-9a-f])")
    totals, job = Totals(), ""
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        found = name.search(path.rpartition("/")[2])
        if found is not None:
            job, totals = found[0], totals + Totals(files=1, size_bytes=info.size_bytes)
    return JobOutcome(job=JobId(job), committed=True, totals=totals) if job else None


def _mapping(report: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
