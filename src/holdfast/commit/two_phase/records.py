"""Define the records of two_phase: manifests, stored lists, and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.records import FileEntry, JobRecord, Kind, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics

__all__ = ["PUBLICATION_NAMES", "ListRef", "LogEntry", "LogState", "Replaced", "StreamMark", "TaskManifest"]

PUBLICATION_NAMES = ("upload", "rename")
"""What `JobRecord.publication` says of a job whose files become visible so; see `publication`."""


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
    """Names a stored list and pins its bytes."""

    key: str
    sha256: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A file that a decision replaces. `etag` is kept for files that Holdfast did not name: names get used again."""

    path: str
    size_bytes: int
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMark:
    """How far a stream has come on a destination.

    Attributes:
        batch: the last batch that was committed; that one and all before it are never committed again.
        checkpoint: identity of the checkpoint that counts the batches: another one counts anew.
    """

    batch: int
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What every entry of the log carries on from its predecessor, so that trimming the log forgets none of it.

    Attributes:
        streams: how far each stream has come.
        table: what the destination's table looks like, in the words of the layer that writes tables (schema, format,
            partitioning); None if the destination holds no table.
    """

    streams: Mapping[str, StreamMark] = field(default_factory=dict)
    table: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A decision: the record that makes a job committed or aborted, for ever (C8).

    Attributes:
        token: random, made by the process that wrote the entry; tells its own put from a twin's.
        manifests: the manifests that count (commit only).
        replaced: what goes when the job is visible (commit only; None: nothing).
        replaced_by_job: files and bytes taken from each earlier job by a partition overwrite, for `verify`.
        chosen: the part of `totals` whose names the caller chose, which therefore do not tell whose files they are.
        state: what holds after this decision.
        after: token of the decision before it; empty for the first.
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
