"""Read the history of a destination: its decisions in order, and the jobs that are still undecided."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.two_phase.decision_log import read_entries, read_log
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.recovery import OpenJob, open_jobs
from holdfast.versioned_log import LogView


@dataclass(frozen=True, slots=True)
class Decision:
    """A log entry and its progress: ``decided``, ``visible`` or ``done``."""

    entry: LogEntry
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The decisions in the order of the log, and the undecided jobs, each of which is either running or dead."""

    decisions: list[Decision]
    open_jobs: list[OpenJob]


def _state(view: LogView, seq: int) -> str:
    return "done" if seq in view.done else "visible" if seq in view.visible else "decided"


def read_history(ctx: CommitContext) -> History:
    """Return all decisions that the destination's log retains, and the undecided jobs.

    Raises:
        CorruptDataError: a log record cannot be read.
    """
    view = read_log(ctx)
    decisions = [
        Decision(entry, _state(view, entry.seq)) for entry in read_entries(ctx, range(view.oldest, view.head + 1))
    ]
    decided = {decision.entry.job for decision in decisions}
    return History(decisions=decisions, open_jobs=[job for job in open_jobs(ctx) if job.job not in decided])
