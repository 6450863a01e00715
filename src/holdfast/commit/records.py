"""Define the records that protocols share, as frozen values. `codec` encodes, decodes and validates them."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.statistics import NO_STATISTICS, Statistics

__all__ = [
    "FileEntry",
    "JobOutcome",
    "JobRecord",
    "JobReport",
    "Kind",
    "ManifestRef",
    "StreamBatch",
    "TaskCommit",
    "Totals",
]


class Kind(str, enum.Enum):
    """What was decided."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of files, bytes and rows. Totals can be added."""

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
    """A hidden file of an undecided job: pending upload `upload_id` with `parts`, or a file at `source`.

    Attributes:
        path: target, relative to the destination.
        parts: (etag, size in bytes) of parts 1, 2, …
        source: relative to the destination; only on rename stores.
        etag, modified_at_s: of the file at `source` if the caller chose the name. Such names may be used again, so
            these attributes identify the file.
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
    """A reference to a manifest, with the digest of its bytes."""

    key: str
    sha256: str
    task: int
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCommit:
    """The commit message of a task attempt: small, because Spark sends all of them to one process.

    Attributes:
        ref: reference to the attempt's manifest, if the committer passes it in the message; in the protocols of the
            papers the driver finds manifests by listing instead.
        inline: the manifest's bytes, compressed, if they are few: this saves the driver a GET.
        etag: etag of the manifest, for committers whose driver decides by a listing which manifest counts.
    """

    job: JobId
    task: int
    attempt: AttemptId
    totals: Totals
    ref: ManifestRef | None = None
    inline: bytes | None = field(default=None, repr=False)
    etag: str = ""

    def manifest_data(self) -> bytes | None:
        """Return the manifest's bytes if the message contains them; the digest in `ref`, or `etag`, must match."""
        return None if self.inline is None else zlib.decompress(self.inline)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """A batch of a stream: it is committed once, however often it is written (C8).

    Attributes:
        stream: the stream's name.
        checkpoint: identity of the checkpoint that numbers the batches.
    """

    stream: str
    checkpoint: str
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """The record that describes a job before it writes anything.

    Attributes:
        publication: how its files become visible, for committers that choose by the store: ``upload`` or ``rename``.
        base_seq: head of the decision log when the job started, for committers that keep a log: the job's decision can
            only be a later entry.
        details: stored with the decision (schema, format); never secrets.
        job_attempt: number of the job attempt, 0 for the first; in some protocols a later attempt takes over committed
            tasks of an earlier one.
        stream: the batch that the job writes, if it belongs to a stream.
        announced: whether its tasks announce every upload before they start it, because the server does not list
            uploads.
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
    """The report of a job, for ``_SUCCESS`` and the report directory.

    Attributes:
        stage: the last stage that was entered, by its name in the statistics.
        tasks: how many tasks were committed.
        filenames: absolute paths of the first files.
        metrics: figures of the driver's work: integers by name.
        diagnostics: strings by name.
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
    """The outcome of a job.

    Attributes:
        committed: whether its output is committed; otherwise nothing of it is visible.
        totals: what it committed; no rows if their number is unknown.
        finished: whether all work after the decision is done; if not, the next job or ``holdfast recover`` does it.
        pending_reason: one sentence, empty if finished.
        report: the report in ``_SUCCESS``, if this call wrote it.
        statistics: of all of the driver's work, including the cleanup after the report was written.
    """

    job: JobId
    committed: bool
    totals: Totals = Totals()
    finished: bool = True
    pending_reason: str = ""
    report: JobReport | None = None
    statistics: Statistics = NO_STATISTICS
