"""Define the possible results of deciding a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.commit.records import JobReport, Kind
from holdfast.commit.two_phase.manifests import ManifestCache
from holdfast.commit.two_phase.records import LogEntry
from holdfast.versioned_log import LogView


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The log contains an entry that commits the job.

    Attributes:
        view: the log right after this process created the entry; None if another process created the entry, or if it
            was already in the log.
        cache: manifests that this process still holds in memory; None if the process has loaded none.
        report: the report in ``_SUCCESS``, if this process wrote it together with the entry.
    """

    entry: LogEntry
    view: LogView | None = None
    cache: ManifestCache | None = None
    report: JobReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """The log contains an entry that aborts the job: another process has given up on the job."""

    entry: LogEntry


@dataclass(frozen=True, slots=True)
class Skipped:
    """The log contains no entry about the job, and needs none.

    The job's batch or its write id is already committed, or the mode is ``ignore`` and the destination contains data.
    """


DecisionResult: TypeAlias = Committed | Aborted | Skipped


def result_of(entry: LogEntry, *, cache: ManifestCache | None = None) -> DecisionResult:
    """Convert a job's log entry, which was in the log before or which another process created, to a result."""
    if entry.kind is Kind.ABORT:
        return Aborted(entry=entry)
    return Committed(entry=entry, cache=cache)
