"""The records that the protocol stores, as frozen values. `codec` turns them into JSON and back, with suspicion."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId

__all__ = [
    "FileEntry",
    "JobRecord",
    "Kind",
    "ListRef",
    "LogEntry",
    "ManifestRef",
    "Replaced",
    "SaveMode",
    "TaskCommit",
    "TaskManifest",
    "Totals",
]


class SaveMode(str, enum.Enum):
    """What a job does with data that its destination holds already."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"
    FAIL = "fail"
    IGNORE = "ignore"


class Kind(str, enum.Enum):
    """What was decided."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of files, bytes and rows; they add up."""

    files: int = 0
    size_bytes: int = 0
    rows: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            files=self.files + other.files,
            size_bytes=self.size_bytes + other.size_bytes,
            rows=self.rows + other.rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file that waits for the decision: pending upload `upload_id` with `parts`, or a file at `source`.

    Attributes:
        path: target, relative to the destination.
        parts: (etag, size in bytes) of parts 1, 2, …
        source: relative to the destination; only on rename stores.
    """

    path: str
    size_bytes: int
    rows: int = 0
    upload_id: str = ""
    parts: tuple[tuple[str, int], ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskManifest:
    """What one task attempt wrote."""

    job: JobId
    task: int
    attempt: AttemptId
    files: tuple[FileEntry, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRef:
    """Names a manifest and pins its bytes."""

    key: str
    sha256: str
    task: int
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCommit:
    """What a task attempt hands to the driver: small, because Spark re-sends all of them to one process.

    Attributes:
        inline: the manifest's own bytes, compressed, when they are few: spares the driver a GET.
    """

    job: JobId
    ref: ManifestRef
    inline: bytes | None = field(default=None, repr=False)

    def manifest_data(self) -> bytes | None:
        """The manifest's bytes if they travelled with the message; the digest in `ref` is what vouches for them."""
        return None if self.inline is None else zlib.decompress(self.inline)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What a job says of itself before it writes anything.

    Attributes:
        base_seq: head of the decision log when the job started: nobody can have decided the job before it.
        publication: how its files become visible: ``upload`` or ``rename``.
        details: what the caller wants to keep with the decision (schema, format); never secrets.
    """

    job: JobId
    committer: str
    publication: str
    mode: SaveMode
    base_seq: int
    started_at_s: float
    details: Mapping[str, object] = field(default_factory=dict)


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
class LogEntry:
    """A decision: the record that makes a job committed or aborted, for ever (C8).

    Attributes:
        token: random, made by the process that wrote the entry; tells its own put from a twin's.
        manifests: the manifests that count (commit only).
        replaced: what goes when the job is visible (commit only; None: nothing).
        replaced_by_job: files and bytes taken from each earlier job by a partition overwrite, for `verify`.
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

    @property
    def job(self) -> JobId:
        return self.record.job
