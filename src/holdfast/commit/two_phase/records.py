"""Define the records of two_phase: manifests, stored lists, and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.records import FileEntry, JobRecord, Kind, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics

PUBLICATION_NAMES = ("upload", "rename", "transaction")
"""The values of `JobRecord.publication`; see `publication`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskManifest:
    """The manifest of a task attempt: the files that the attempt wrote."""

    job: JobId
    task: int
    attempt: AttemptId
    files: tuple[FileEntry, ...]
    statistics: Statistics = NO_STATISTICS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRef:
    """A reference to a stored list of manifests or of replaced files, with the digest of its bytes.

    The list exists until the decision is done. A decision made in a transaction is done at once, so its lists are never
    stored.
    """

    key: str
    sha256: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A file that a decision replaces.

    Attributes:
        etag: the file's etag if the caller chose its name, because such a name may be used again; empty for a generated
            name.
    """

    path: str
    size_bytes: int
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMark:
    """The progress of a stream on a destination.

    Attributes:
        batch: the last committed batch. Neither this batch nor an earlier one is ever committed again.
        checkpoint: the id of the checkpoint that numbers the batches. A different checkpoint would start from 0 again.
    """

    batch: int
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state after a log entry, stored in that entry.

    Each entry copies its predecessor's state and updates it, so trimming the log loses nothing.

    Attributes:
        streams: the progress of each stream, by name.
        table: the destination's table (schema, format, partitioning), in the form that the code that writes tables
            chose; None if the destination contains no table.
    """

    streams: Mapping[str, StreamMark] = field(default_factory=dict)
    table: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A decision: the record that commits or aborts a job, permanently (C8).

    Attributes:
        token: a random string from the process that wrote the entry; distinguishes the entry from those of other
            drivers of the job.
        manifests: reference to the list of manifests that count (commit only).
        replaced: reference to the list of files to delete once the job is visible (commit only); None if the job
            replaces nothing.
        replaced_by_job: how many files and bytes of each earlier job a partition overwrite replaces; used by `verify`.
        chosen: the part of `totals` for files whose names the caller chose; such names do not contain a job id.
        state: the state after this decision.
        after: the token of the previous entry; empty for the first entry.
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
