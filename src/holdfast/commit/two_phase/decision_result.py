"""Describe the result of deciding a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.commit.records import Kind
from holdfast.commit.two_phase.manifests import ManifestCache
from holdfast.commit.two_phase.records import LogEntry
from holdfast.versioned_log import LogView

__all__ = ["Aborted", "Committed", "DecisionResult", "Skipped", "result_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The log contains an entry that commits the job.

    Attributes:
        view: the log right after this process created the entry; None if another process created it, or if it was
            already in the log.
        cache: manifests that this process still holds in memory; None if it loaded none.
    """

    entry: LogEntry
    view: LogView | None = None
    cache: ManifestCache | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The log contains an entry that aborts the job: another process has given it up."""

    entry: LogEntry


@dataclass(frozen=True, slots=True)
class Skipped:
    """The log contains no entry about the job, and needs none.

    The job's batch or its write id is already committed, or mode ``ignore`` finds data at the destination.
    """


DecisionResult: TypeAlias = Committed | Aborted | Skipped


def result_of(entry: LogEntry, *, view: LogView | None = None, cache: ManifestCache | None = None) -> DecisionResult:
    """Return what a log entry about a job means for it."""
    if entry.kind is Kind.ABORT:
        return Aborted(entry=entry)
    return Committed(entry=entry, view=view, cache=cache)
