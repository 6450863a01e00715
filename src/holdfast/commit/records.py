"""The records that the protocol stores, as frozen values. `codec` turns them into JSON and back, with suspicion."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.statistics import NO_STATISTICS, Statistics

__all__ = [
    "FileEntry",
    "JobOutcome",
    "JobRecord",
    "JobReport",
    "Kind",
    "ManifestRef",
    "SaveMode",
    "StreamBatch",
    "TaskCommit",
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
        etag, modified_at_s: of the file at `source`, where the caller chose the name: it is used again, so that these
            tell whose file stands there.
    """

    path: str
    size_bytes: int
    rows: int = 0
    upload_id: str = ""
    parts: tuple[tuple[str, int], ...] = ()
    source: str = ""
    etag: str = ""
    modified_at_s: float = 0.0


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
        ref: names and pins the attempt's manifest, where the committer hands it over this way; the protocols of the
            papers let the driver find manifests by listing instead.
        inline: the manifest's own bytes, compressed, when they are few: spares the driver a GET.
        etag: of the manifest as it was put, where a listing by the driver says which one counts.
    """

    job: JobId
    task: int
    attempt: AttemptId
    totals: Totals
    ref: ManifestRef | None = None
    inline: bytes | None = field(default=None, repr=False)
    etag: str = ""

    def manifest_data(self) -> bytes | None:
        """The manifest's bytes if they travelled with the message; the digest in `ref`, or `etag`, vouches for them."""
        return None if self.inline is None else zlib.decompress(self.inline)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """A batch of a stream: it is decided once, however often it is written (C8).

    Attributes:
        stream: the stream's name.
        checkpoint: identity of the checkpoint that counts the batches.
    """

    stream: str
    checkpoint: str
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What a job says of itself before it writes anything.

    Attributes:
        publication: how its files become visible, for committers that choose by the store: ``upload`` or ``rename``.
        base_seq: head of the decision log when the job started, for committers that keep a log: nobody can have decided
            the job before it.
        details: what the caller wants to keep with the decision (schema, format); never secrets.
        job_attempt: which attempt at the job this is, where a protocol lets a later one take over an earlier one's
            committed tasks; 0 for the first.
        stream: the batch that the job is, if it belongs to a stream.
        announced: its tasks announce every upload before they start it, since the server does not list uploads.
    """

    job: JobId
    committer: str
    mode: SaveMode
    started_at_s: float
    publication: str = ""
    base_seq: int = 0
    details: Mapping[str, object] = field(default_factory=dict)
    job_attempt: int = 0
    stream: StreamBatch | None = None
    announced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What ``_SUCCESS`` and the report directory say of a job.

    Attributes:
        stage: the last stage that was entered, by its name in the statistics.
        tasks: tasks that were committed.
        filenames: the first files, absolute.
        metrics: figures of the driver's work: whole numbers by name.
        diagnostics: texts by name.
        statistics: of all committed tasks and of the driver.
    """

    job: JobId
    committer: str
    mode: SaveMode
    at_s: float
    success: bool
    stage: str
    totals: Totals = Totals()
    tasks: int = 0
    filenames: tuple[str, ...] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    statistics: Statistics = NO_STATISTICS


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job ended, as its driver or what is left of the job tells.

    Attributes:
        committed: whether its output is committed; otherwise nothing of it is visible.
        totals: what it committed; no rows if nobody counted them.
        finished: whether all work after the decision is done; if not, the next job or ``holdfast recover`` does it.
        pending_reason: one sentence, empty if finished.
        report: what was saved in ``_SUCCESS``, if this call saved it.
        statistics: of the driver's whole work, with the clean-up that the report cannot know.
    """

    job: JobId
    committed: bool
    totals: Totals = Totals()
    finished: bool = True
    pending_reason: str = ""
    report: JobReport | None = None
    statistics: Statistics = NO_STATISTICS
