"""End an interrupted write of any committer: abort the job, or roll its commit forward if the commit is logged."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.commit.committer import Action, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.records import JobRecord
from holdfast.commit.recovery import find_leftovers
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.two_phase.history import read_history
from holdfast.commit.write_lookup import TOKEN, find_files, find_written, is_job_of


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


def end_write(ctx: CommitContext, committer: Committer, token: str) -> EndedWrite:
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
    written = find_written(ctx, token)
    if written is not None:
        return EndedWrite(end=WriteEnd.COMMITTED, job=written.job)
    if leftover is not None and leftover.action is Action.FORWARD:
        return EndedWrite(end=WriteEnd.COMMITTED, job=leftover.job)
    if leftover is not None and leftover.action is Action.KEEP:
        return EndedWrite(end=WriteEnd.KEPT, job=leftover.job, reason=leftover.reason)
    return _abort_by_files(ctx, committer, token, leftover.job if leftover is not None else "")


def _unfinished_jobs(ctx: CommitContext) -> Iterator[JobRecord]:
    """Iterate over undecided jobs with readable records, and over decided jobs that are not completed yet."""
    history = read_history(ctx)
    yield from (job.record for job in history.open_jobs if job.record is not None)
    yield from (decision.entry.record for decision in history.decisions if decision.state != "done")


def _find_leftover(ctx: CommitContext, token: str) -> Leftover | None:
    """Find what the write's job left behind.

    Ask every committer, not only the one that the write used: at first, jobs of `file-v1` and `file-v2` look the same.
    """
    return next((found for found in find_leftovers(ctx) if is_job_of(found.job, token)), None)


def _abort_by_files(ctx: CommitContext, committer: Committer, token: str, job: str) -> EndedWrite:
    """Abort a job that is known only by the names of its visible files.

    Some committers make files visible early and store no record of the job.
    """
    files = find_files(ctx, token)
    if files is not None and committer.keeps_log:
        return EndedWrite(end=WriteEnd.COMMITTED, job=files.job)  # its files appear only after a decision
    if files is not None and not committer.leaves_records:
        committer.abort_job(ctx, _record(files.job, committer))
        job, files = files.job, find_files(ctx, token)
    if files is not None:
        return EndedWrite(end=WriteEnd.ABORTED, job=files.job, visible_files=files.totals.files)
    return EndedWrite(end=WriteEnd.ABORTED, job=job)


def _record(job: str, committer: Committer) -> JobRecord:
    """Build the record that an abort needs, for a job that has none."""
    return JobRecord(job=JobId(job), committer=committer.name, mode=SaveMode.APPEND, started_at_s=0.0)
