"""Find what came of a write, by its token, and end an interrupted write, for every committer."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.commit import layout
from holdfast.commit.committer import Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import make_durable_and_search_again
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.records import JobOutcome, JobRecord, Kind, SaveMode, Totals
from holdfast.commit.recovery import find_leftovers
from holdfast.commit.success_file import read_success_file
from holdfast.commit.two_phase.decision_log import read_entry, read_log, write_id_of
from holdfast.commit.two_phase.recovery import list_open_jobs, read_history
from holdfast.errors import ConflictError, CorruptDataError, NotFoundError
from holdfast.runtime import Ids

TOKEN = "token"
"""The key, in a job's details, under which the token of the call that started the job is stored."""

QUIET_S = 300.0
"""A job that has not written anything for this long, in seconds, may be dead."""

_TOKEN = re.compile(r"[0-9a-f]{12}")


class WriteJobIdSource:
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


def is_job_of_write(job: str, token: str) -> bool:
    """Check whether a job id ends in the token of a write. Use this if no record of the job contains the token."""
    return is_job_id(job) and job.endswith(f"-{token}")


def find_job_by_token(ctx: CommitContext, token: str) -> JobOutcome | None:
    """Return the committed job of a write, from the log or, failing that, from ``_SUCCESS``; None if neither has it.

    Guarantee: on a store with transactions, the commit is durable.

    Args:
        token: the value of `TOKEN` in the job's details.
    """
    return make_durable_and_search_again(ctx, _find_job_in_log(ctx, token), lambda: _find_job_in_log(ctx, token))


def _find_job_in_log(ctx: CommitContext, token: str) -> JobOutcome | None:
    view = read_log(ctx)
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            break  # this entry and all before it have just been trimmed
        if entry.kind is Kind.COMMIT and entry.record.details.get(TOKEN) == token:
            return JobOutcome(job=entry.job, committed=True, totals=entry.totals, finished=seq in view.done)
    return _find_job_in_report(ctx, token)


def refuse_running_write(ctx: CommitContext, write_id: str) -> None:
    """Refuse to start a write while another job with the same write id is running.

    A job that has been quiet for `QUIET_S` does not count: its driver may be dead. If the driver is alive after all,
    only one of the two jobs is committed, because the decision checks the write id again.

    Raises:
        ConflictError: another job with this write id is running.
    """
    for job in list_open_jobs(ctx):
        quiet_s = ctx.clock.now_s() - job.active_at_s
        if job.record is not None and write_id_of(job.record) == write_id and quiet_s < QUIET_S:
            raise ConflictError(
                "a write with this write id is running: wait for it, or for five minutes if its driver is dead",
                url=ctx.url,
                write_id=write_id,
                job=job.job,
            )


def _find_job_in_report(ctx: CommitContext, token: str) -> JobOutcome | None:
    try:
        report = read_success_file(ctx) or {}
    except CorruptDataError:
        return None  # another tool wrote the file
    if _mapping_field(report, "diagnostics").get(f"holdfast.{TOKEN}") != token or report.get("success") is not True:
        return None
    metrics = _mapping_field(report, "metrics")
    files, size_bytes, rows = (_count_or_zero(metrics.get(name)) for name in ("files", "bytes", "rows"))
    return JobOutcome(
        job=JobId(str(report.get("jobId"))),
        committed=True,
        totals=Totals(files=files, size_bytes=size_bytes, rows=rows),
    )


def find_job_by_file_names(ctx: CommitContext, token: str) -> JobOutcome | None:
    """Return the outcome of a write, found by its visible files, whose names contain its token; None if there are none.

    For a write without log entry and ``_SUCCESS``. Guarantee: never counts files of a write with another token. On a
    store with transactions, the files are durable.
    """
    return make_durable_and_search_again(ctx, _find_job_in_names(ctx, token), lambda: _find_job_in_names(ctx, token))


def _find_job_in_names(ctx: CommitContext, token: str) -> JobOutcome | None:
    name = re.compile(rf"\d{{17}}-{re.escape(token)}(?![0-9a-f])")
    totals, job = Totals(), ""
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        found = name.search(path.rpartition("/")[2])
        if found is not None:
            job, totals = found[0], totals + Totals(files=1, size_bytes=info.size_bytes)
    return JobOutcome(job=JobId(job), committed=True, totals=totals) if job else None


def _mapping_field(report: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def _count_or_zero(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


class WriteEnd(str, enum.Enum):
    """How an interrupted write ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedWrite:
    """The end of an interrupted write.

    Attributes:
        end: ``KEPT`` if neither a commit nor an abort is provably right, so that a person has to decide.
        job: the job's id; empty if the write left no trace of a job.
        visible_files: number of files that an aborted job had already made visible and that are not deleted; their
            names contain `job`.
        reason: why a person has to decide (`end` is ``KEPT``), or why the decision is not carried out completely yet,
            in one sentence.
    """

    end: WriteEnd
    job: str = ""
    visible_files: int = 0
    reason: str = ""


def settle_write(ctx: CommitContext, committer: Committer, token: str) -> EndedWrite:
    """Abort the job of a write, or roll the job forward if its commit is already decided.

    Requires: no task of the job is still writing, and `token` was used for this one write only.

    Guarantee: no other job on the destination is changed (C7). A job whose commit is logged is never undone (C8).

    Args:
        committer: the committer that the write used.
        token: the value of `TOKEN` in the job's details, and the end of its id.

    Raises:
        HoldfastError: a store call failed; run ``holdfast recover`` later.

    Crash: anywhere; run it again, or let recovery end the job.
    """
    for record in _unfinished_jobs(ctx):
        if record.details.get(TOKEN) == token:
            outcome = committer.abort_job(ctx, record)
            end = WriteEnd.COMMITTED if outcome.committed else WriteEnd.ABORTED
            return EndedWrite(end=end, job=outcome.job, reason=outcome.pending_reason)
    leftover = _find_leftover(ctx, token)
    if leftover is not None:
        leftover.recover()
    written = find_job_by_token(ctx, token)
    if written is not None:
        return EndedWrite(end=WriteEnd.COMMITTED, job=written.job)
    if leftover is not None and leftover.action is RecoveryAction.FORWARD:
        return EndedWrite(end=WriteEnd.COMMITTED, job=leftover.job)
    if leftover is not None and leftover.action is RecoveryAction.KEEP:
        return EndedWrite(end=WriteEnd.KEPT, job=leftover.job, reason=leftover.reason)
    return _abort_job_by_files(ctx, committer, token, leftover.job if leftover is not None else "")


def _unfinished_jobs(ctx: CommitContext) -> Iterator[JobRecord]:
    """Iterate over undecided jobs with readable records, and over decided jobs that are not completed yet."""
    history = read_history(ctx)
    yield from (job.record for job in history.open_jobs if job.record is not None)
    yield from (decision.entry.record for decision in history.decisions if decision.state != "done")


def _find_leftover(ctx: CommitContext, token: str) -> Leftover | None:
    """Find what the write's job left behind.

    Ask every committer, not only the one that the write used: at first, jobs of `file-v1` and `file-v2` look the same.
    """
    return next((found for found in find_leftovers(ctx) if is_job_of_write(found.job, token)), None)


def _abort_job_by_files(ctx: CommitContext, committer: Committer, token: str, job: str) -> EndedWrite:
    """Abort a job that is known only by the names of its visible files.

    Some committers make files visible early and store no record of the job.
    """
    files = find_job_by_file_names(ctx, token)
    if files is not None and committer.keeps_log:
        return EndedWrite(end=WriteEnd.COMMITTED, job=files.job)  # its files appear only after a decision
    if files is not None and not committer.leaves_records:
        committer.abort_job(ctx, _make_job_record(files.job, committer))
        job, files = files.job, find_job_by_file_names(ctx, token)
    if files is not None:
        return EndedWrite(end=WriteEnd.ABORTED, job=files.job, visible_files=files.totals.files)
    return EndedWrite(end=WriteEnd.ABORTED, job=job)


def _make_job_record(job: str, committer: Committer) -> JobRecord:
    """Build the record that an abort needs, for a job that has none."""
    return JobRecord(job=JobId(job), committer=committer.name, mode=SaveMode.APPEND, started_at_s=0.0)
