"""Define the records of two_phase: manifests, stored lists, and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.records import FileEntry, JobRecord, Kind, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics

__all__ = ["PUBLICATION_NAMES", "ListRef", "LogEntry", "LogState", "Replaced", "StreamMark", "TaskManifest"]

PUBLICATION_NAMES = ("upload", "rename")
"""The values of `JobRecord.publication`; see `publication`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskManifest:
    """What one task attempt wrote."""

    job: JobId
    task: int
    attempt: AttemptId
    files: tuple[FileEntry, ...]
    statistics: Statistics = NO_STATISTICS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRef:
    """A reference to a stored list, with the digest of its bytes."""

    key: str
    sha256: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A file that a decision replaces.

    Attributes:
        etag: empty for a generated name. Other names may be used again, so the etag identifies the file.
    """

    path: str
    size_bytes: int
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMark:
    """The progress of a stream on a destination.

    Attributes:
        batch: the last committed batch; neither it nor an earlier one is ever committed again.
        checkpoint: identity of the checkpoint that numbers the batches; another checkpoint starts from 0.
    """

    batch: int
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state after a log entry. Every entry copies it from its predecessor, so trimming the log loses none of it.

    Attributes:
        streams: the progress of each stream, by name.
        table: the destination's table (schema, format, partitioning) as the layer that writes tables describes it;
            None if the destination contains no table.
    """

    streams: Mapping[str, StreamMark] = field(default_factory=dict)
    table: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A decision: the record that commits or aborts a job, permanently (C8).

    Attributes:
        token: random text from the process that wrote the entry; distinguishes it from entries of other drivers of the
            job.
        manifests: the list of manifests that count (commit only).
        replaced: the list of files to delete once the job is visible (commit only); None if it replaces nothing.
        replaced_by_job: files and bytes that a partition overwrite takes from each earlier job, for `verify`.
        chosen: the part of `totals` whose names the caller chose; such names do not contain a job id.
        state: the state after this decision.
        after: token of the entry before it; empty for the first.
    """

    seq: int
    kind: Kind
    record: JobRecord
    token: str
    decided_at_s: float
    totals: Totals = field(default_factory=Totals)
    tasks: int = 0
    manifests: ListRef | None = None
    replaced: ListRef | None = None
    replaced_by_job: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    chosen: Totals = field(default_factory=Totals)
    state: LogState = LogState()
    after: str = ""

    @property
    def job(self) -> JobId:
        return self.record.job
