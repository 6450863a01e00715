"""Define the records that several protocols use, as frozen values. `codec` encodes, decodes and validates them."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.stores.base import Part


class SaveMode(str, enum.Enum):
    """What a job does if its destination already contains data."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"
    FAIL = "fail"
    IGNORE = "ignore"


class Kind(str, enum.Enum):
    """The kind of a decision: it commits a job or aborts it."""

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
    """A hidden file of an undecided job: either the pending upload `upload_id` with `parts`, or a file at `source`.

    Attributes:
        path: the file's target, relative to the destination.
        parts: (etag, size in bytes) of each part, starting with part 1.
        source: path of the hidden file, relative to the destination; only on rename stores.
        etag, modified_at_s: etag and modification time of the file at `source`, if the caller chose the file's name.
            They identify the file, because such a name may be used again.
        crc32: the CRC-32 of the file's bytes; 0 in Hadoop's records, which do not store it.
    """

    path: str
    size_bytes: int
    rows: int = 0
    upload_id: str = ""
    parts: tuple[tuple[str, int], ...] = ()
    source: str = ""
    etag: str = ""
    modified_at_s: float = 0.0
    crc32: int = 0

    @property
    def upload_parts(self) -> tuple[Part, ...]:
        """The parts of the upload, as the store needs them to complete it."""
        return tuple(Part(number, etag, size) for number, (etag, size) in enumerate(self.parts, start=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRef:
    """A reference to a manifest: its key, and the digest of its bytes."""

    key: str
    sha256: str
    task: int
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCommit:
    """The commit message of a task attempt: small, because Spark sends all of them to one process.

    Attributes:
        ref: reference to the attempt's manifest, for committers that send one in the message. In the papers' protocols
            the driver finds manifests by listing instead.
        inline: the manifest's bytes, compressed, if the manifest is small; this saves the driver a GET.
        etag: etag of the stored manifest, for committers whose driver lists manifests to decide which one counts.
    """

    job: JobId
    task: int
    attempt: AttemptId
    totals: Totals
    ref: ManifestRef | None = None
    inline: bytes | None = field(default=None, repr=False)
    etag: str = ""

    def manifest_data(self) -> bytes | None:
        """Return the manifest's bytes if the message contains them. The caller checks them against `ref` or `etag`."""
        return None if self.inline is None else zlib.decompress(self.inline)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """A batch of a stream, which is committed once, no matter how often it is written (C8).

    Attributes:
        stream: the stream's name.
        checkpoint: the id of the checkpoint that numbers the batches.
    """

    stream: str
    checkpoint: str
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """The description of a job (id, committer, mode, start), which is stored before the job writes any data.

    Attributes:
        publication: ``upload``, ``rename`` or ``transaction``: how the job's files become visible, for committers that
            support all of these.
        base_seq: number of the newest log entry when the job started, for committers that keep a log. The job's
            decision can only be a later entry.
        details: stored with the decision (schema, format); never secrets.
        job_attempt: number of the job attempt, counted from 0. In some protocols a later job attempt takes over the
            committed tasks of an earlier one.
        stream: the batch that the job writes, if it belongs to a stream.
        announced: whether the job's tasks announce every upload before they start it, because the server does not list
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
        metrics: measurements of the driver's work, by name.
        diagnostics: details such as the error, by name.
        statistics: the merged statistics of all committed tasks and of the driver.
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
        committed: whether the job's output is committed. If not, none of it is visible, except where C5 does not hold.
        totals: the counts of the committed output; 0 rows if their number is unknown.
        finished: whether all work after the decision is done; if not, the next job or ``holdfast recover`` does it.
        pending_reason: why work is left, in one sentence; empty if `finished`.
        report: the report in ``_SUCCESS``, if this call wrote it.
        statistics: the statistics of all of the driver's work, including the cleanup after the report was written.
    """

    job: JobId
    committed: bool
    totals: Totals = Totals()
    finished: bool = True
    pending_reason: str = ""
    report: JobReport | None = None
    statistics: Statistics = NO_STATISTICS
