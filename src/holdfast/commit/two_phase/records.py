"""Define the records of two_phase: manifests, stored lists and decisions; encode and decode them as JSON.

Every batch of a stream is decided only once (C8): the newest log entry contains the progress of each stream. After a
crash Spark replays a batch, with new attempts and a new job. Only the batch number and the checkpoint's id link the new
job to the old one, so the decision contains both. A stream's *mark* is its last committed batch with the checkpoint's
id. Every entry, even one that aborts a job, copies the marks of its predecessor, so trimming the log loses no mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from holdfast.commit import layout
from holdfast.commit.codec import (
    PackedLines,
    decode_job,
    decode_record,
    encode_job_fields,
    encode_json_line,
    encode_totals,
    iter_json_lines,
    parse_job_fields,
    parse_json_object,
    parse_totals,
    read_count_field,
    read_crc_field,
    read_job_id_field,
    read_seconds_field,
    read_text_field,
    require_valid,
    sha256_hex,
)
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_owner, is_job_id
from holdfast.commit.records import FileEntry, JobRecord, Kind, ManifestRef, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics, decode_statistics, encode_statistics
from holdfast.errors import InvalidRequestError

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
class ReplacedFile:
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
    """The progress of all streams and the table, as a log entry leaves them; stored in that entry.

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
        chosen: how many of the committed files and bytes have names that the caller chose, without a job id.
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


_LOG_FORMAT = "holdfast-log/1"
_MANIFEST_FORMAT = "holdfast-manifest/1"


def encode_manifest(manifest: TaskManifest) -> bytes:
    """Encode a manifest: a header line, then one line per file."""
    header = {
        "format": _MANIFEST_FORMAT,
        "job": manifest.job,
        "task": manifest.task,
        "attempt": manifest.attempt,
        "files": len(manifest.files),
        "iostatistics": encode_statistics(manifest.statistics),
    }
    lines = [encode_json_line(header)]
    for file in manifest.files:
        counts = {"bytes": file.size_bytes, "rows": file.rows, "crc32": file.crc32}
        lines.append(encode_json_line({"path": file.path, **counts, **_location_fields(file)}))
    return b"".join(lines)


def _location_fields(file: FileEntry) -> dict[str, object]:
    if not file.source:
        return {"upload_id": file.upload_id, "parts": file.parts}
    if not file.etag:
        return {"source": file.source}
    return {"source": file.source, "etag": file.etag, "modified_at_s": file.modified_at_s}


def encode_manifest_list(refs: Iterable[ManifestRef]) -> bytes:
    """Encode references to manifests as a list: one line per manifest."""
    return b"".join(
        encode_json_line({"key": ref.key, "sha256": ref.sha256, "task": ref.task, **encode_totals(ref.totals)})
        for ref in refs
    )


def encode_replaced_files(files: Iterable[ReplacedFile]) -> tuple[bytes, int]:
    """Encode a list of replaced files, one line per file, compressed; return the bytes and the number of lines."""
    lines = PackedLines()
    for file in files:
        lines.add({"path": file.path, "bytes": file.size_bytes, "etag": file.etag})
    return lines.encode(), lines.count


def encode_entry(entry: LogEntry) -> bytes:
    """Encode a decision as one line."""

    def encode_list_reference(of: ListRef | None) -> dict[str, object] | None:
        return None if of is None else {"key": of.key, "sha256": of.sha256, "count": of.count}

    return encode_json_line(
        {
            "format": _LOG_FORMAT,
            "seq": entry.seq,
            "kind": entry.kind.value,
            **encode_job_fields(entry.record),
            "token": entry.token,
            "after": entry.after,
            "decided_at_s": entry.decided_at_s,
            "tasks": entry.tasks,
            **encode_totals(entry.totals),
            "manifests": encode_list_reference(entry.manifests),
            "replaced": encode_list_reference(entry.replaced),
            "replaced_by_job": {job: list(counts) for job, counts in entry.replaced_by_job.items()},
            "chosen": encode_totals(entry.chosen),
            "streams": {name: [mark.batch, mark.checkpoint] for name, mark in entry.state.streams.items()},
            **({"table": dict(entry.state.table)} if entry.state.table is not None else {}),
        }
    )


def _sha256_field(value: dict[str, Any]) -> str:
    found = read_text_field(value, "sha256")
    require_valid(len(found) == 64 and set(found) <= set("0123456789abcdef"), "sha256 is not a digest")
    return found


def _decode_stream_marks(value: Any) -> dict[str, StreamMark]:
    require_valid(isinstance(value, dict), "streams is not an object")
    for mark in value.values():
        require_valid(isinstance(mark, list) and len(mark) == 2, "a stream's mark is not a pair")
        require_valid(
            type(mark[0]) is int and mark[0] >= 0 and isinstance(mark[1], str),
            "a stream's mark is not (batch, checkpoint)",
        )
    return {str(name): StreamMark(batch=batch, checkpoint=checkpoint) for name, (batch, checkpoint) in value.items()}


def _parse_table(value: Any) -> Mapping[str, object] | None:
    require_valid(value is None or isinstance(value, dict), "table is not an object")
    return None if value is None else dict(value)


def _parse_file_entry(value: dict[str, Any], job: JobId, task: int, attempt: AttemptId) -> FileEntry:
    path = read_text_field(value, "path")
    require_valid(layout.is_safe_path(path), "path leaves the destination")
    require_valid(file_owner(path) in (None, FileOwner(job, task, attempt)), "path belongs to another attempt")
    file = FileEntry(
        path=path,
        size_bytes=read_count_field(value, "bytes"),
        rows=read_count_field(value, "rows"),
        crc32=read_crc_field(value),
    )
    if "source" in value:
        source = read_text_field(value, "source")
        require_valid(source == layout.attempt_file_path(job, task, attempt, path), "source belongs to another attempt")
        if file_owner(path) is not None:
            return replace(file, source=source)
        etag, modified_at_s = read_text_field(value, "etag"), read_seconds_field(value, "modified_at_s")
        require_valid(bool(etag), "etag is missing")
        return replace(file, source=source, etag=etag, modified_at_s=modified_at_s)
    parts = value["parts"]
    require_valid(isinstance(parts, list) and 0 < len(parts) <= 10_000, "parts are missing")
    for part in parts:
        require_valid(isinstance(part, list) and len(part) == 2, "a part is not a pair")
        require_valid(isinstance(part[0], str) and type(part[1]) is int and part[1] >= 0, "a part is not (etag, size)")
    require_valid(sum(part[1] for part in parts) == file.size_bytes, "parts do not add up to the file")
    return replace(
        file, upload_id=read_text_field(value, "upload_id"), parts=tuple((etag, size) for etag, size in parts)
    )


def decode_manifest(ref: ManifestRef, data: bytes) -> TaskManifest:
    """Decode the manifest to which `ref` refers; the digest of `data` must match."""

    def decode_lines() -> TaskManifest:
        require_valid(sha256_hex(data) == ref.sha256, "its digest differs from the one that the task reported")
        manifest = _parse_manifest(data)
        place = layout.manifest_path(manifest.job, manifest.task, manifest.attempt)
        require_valid(ref.key == place and manifest.task == ref.task, "it belongs to another attempt")
        require_valid(len(manifest.files) == ref.totals.files, "files are missing")
        return manifest

    return decode_record(ref.key, decode_lines)


def decode_leftover_manifest(key: str, data: bytes) -> TaskManifest:
    """Decode a leftover manifest, which no decision names; `key` must be the key of its attempt's manifest."""

    def decode_lines() -> TaskManifest:
        manifest = _parse_manifest(data)
        place = layout.manifest_path(manifest.job, manifest.task, manifest.attempt)
        require_valid(key == place or key.endswith(f"/{place}"), "it belongs to another attempt")
        return manifest

    return decode_record(key, decode_lines)


def _parse_manifest(data: bytes) -> TaskManifest:
    lines = data.splitlines()
    header = parse_json_object(lines[0] if lines else b"null")
    require_valid(header["format"] == _MANIFEST_FORMAT, "format is unknown")
    job, task, attempt = (
        read_job_id_field(header),
        read_count_field(header, "task"),
        AttemptId(read_text_field(header, "attempt")),
    )
    require_valid(read_count_field(header, "files") == len(lines) - 1, "files are missing")
    statistics = decode_statistics(header.get("iostatistics"))
    files = tuple(_parse_file_entry(parse_json_object(line), job, task, attempt) for line in lines[1:])
    return TaskManifest(job=job, task=task, attempt=attempt, files=files, statistics=statistics)


def _iter_list_lines(ref: ListRef, data: bytes) -> Iterator[dict[str, Any]]:
    """Iterate over the lines of a list, whose digest must match; it may name a million files."""
    decode_record(
        ref.key,
        lambda: require_valid(sha256_hex(data) == ref.sha256, "its digest differs from the one in the decision"),
    )
    return iter_json_lines(ref.key, data)


def decode_manifest_list(ref: ListRef, data: bytes) -> Iterator[ManifestRef]:
    """Decode the list of manifests to which `ref` refers; the digest of `data` must match."""

    def decode_reference(value: dict[str, Any]) -> ManifestRef:
        return ManifestRef(
            key=read_text_field(value, "key"),
            sha256=_sha256_field(value),
            task=read_count_field(value, "task"),
            totals=parse_totals(value),
        )

    return (decode_record(ref.key, partial(decode_reference, value)) for value in _iter_list_lines(ref, data))


def decode_replaced_files(ref: ListRef, data: bytes) -> Iterator[ReplacedFile]:
    """Decode the list of replaced files to which `ref` refers; check its digest, and that every path is output."""

    def decode_replaced_file(value: dict[str, Any]) -> ReplacedFile:
        path = read_text_field(value, "path")
        require_valid(not layout.is_hidden(path), "path is not output")  # is_hidden covers ".." too
        return ReplacedFile(
            path=path, size_bytes=read_count_field(value, "bytes"), etag=read_text_field(value, "etag", empty=True)
        )

    return (decode_record(ref.key, partial(decode_replaced_file, value)) for value in _iter_list_lines(ref, data))


def _parse_list_reference(value: Any) -> ListRef | None:
    if value is None:
        return None
    require_valid(isinstance(value, dict), "a reference is not an object")
    key = read_text_field(value, "key")
    require_valid(key.startswith(layout.JOBS) and ".." not in key, "a reference is outside the job folders")
    return ListRef(key=key, sha256=_sha256_field(value), count=read_count_field(value, "count"))


def _parse_counts_by_job(value: Any) -> dict[str, tuple[int, int]]:
    require_valid(isinstance(value, dict), "replaced_by_job is not an object")
    for job, counts in value.items():
        require_valid(is_job_id(job), "replaced_by_job contains a key that is not a job id")
        require_valid(isinstance(counts, list) and len(counts) == 2, "replaced_by_job is not a pair")
        require_valid(all(type(count) is int and count >= 0 for count in counts), "replaced_by_job is not a count")
    return {job: (files, size_bytes) for job, (files, size_bytes) in value.items()}


def decode_open_job(key: str, data: bytes) -> JobRecord:
    """Decode the record of a job that has not ended; `key` must be the key of this job's record.

    A record of an unknown publication is refused like a damaged one: this version cannot end the job.
    """
    record = decode_job(key, data)
    decode_record(key, lambda: require_valid(record.publication in PUBLICATION_NAMES, "publication is unknown"))
    return record


def decode_entry(key: str, seq: int, data: bytes) -> LogEntry:
    """Decode a decision, which must contain its number `seq`."""

    def decode_fields() -> LogEntry:
        value = parse_json_object(data)
        require_valid(value["format"] == _LOG_FORMAT, "format is unknown")
        require_valid(value["seq"] == seq, "seq differs from the key")
        manifests = _parse_list_reference(value["manifests"])
        kind = Kind(value["kind"])
        require_valid((manifests is not None) == (kind is Kind.COMMIT), "a commit names its manifests, an abort none")
        record = parse_job_fields(value)
        require_valid(record.publication in PUBLICATION_NAMES, "publication is unknown")
        return LogEntry(
            seq=seq,
            kind=kind,
            record=record,
            token=read_text_field(value, "token"),
            after=read_text_field(value, "after", empty=seq == 1),
            decided_at_s=read_seconds_field(value, "decided_at_s"),
            totals=parse_totals(value),
            tasks=read_count_field(value, "tasks"),
            manifests=manifests,
            replaced=_parse_list_reference(value["replaced"]),
            replaced_by_job=_parse_counts_by_job(value["replaced_by_job"]),
            chosen=parse_totals(value["chosen"]) if "chosen" in value else Totals(),
            state=LogState(
                streams=_decode_stream_marks(value.get("streams", {})), table=_parse_table(value.get("table"))
            ),
        )

    return decode_record(key, decode_fields)


def is_committed_batch(job: JobRecord, streams: Mapping[str, StreamMark]) -> bool:
    """Check whether the batch that `job` writes is already committed.

    Raises:
        InvalidRequestError: the job's stream has another checkpoint. Its batch numbers start from 0 again, so comparing
            them with the old numbers would silently drop data.
    """
    if job.stream is None or (mark := streams.get(job.stream.stream)) is None:
        return False
    if mark.checkpoint != job.stream.checkpoint:
        raise InvalidRequestError(
            "the stream was written here with another checkpoint: continue with that checkpoint; with another "
            "streamId, all of the query's input is written a second time",
            stream=job.stream.stream,
            known=mark.checkpoint,
            given=job.stream.checkpoint,
        )
    return job.stream.batch <= mark.batch


def advance_streams(job: JobRecord, streams: Mapping[str, StreamMark]) -> Mapping[str, StreamMark]:
    """Return the progress of all streams after `job` is committed."""
    if job.stream is None:
        return streams
    mark = StreamMark(batch=job.stream.batch, checkpoint=job.stream.checkpoint)
    return {**streams, job.stream.stream: mark}


# --- leftovers --------------------------------------------------------------------------------------------------------
def dead_batches(entry: LogEntry) -> Mapping[str, StreamMark]:
    """Return, for each stream, the last batch whose jobs have all ended, apart from the job of `entry` itself.

    A batch is committed only once, so after its commit no other job that wrote the batch can be committed. The
    committed job itself is rolled forward before the stream's next batch is decided, but may not be published yet. So a
    stream's newest batch is returned only if `entry` decided it; for other streams the batch before is returned,
    because a cleanup must not abort the uploads of a job that is still to be published.
    """
    own = entry.record.stream if entry.kind is Kind.COMMIT else None
    return {
        name: mark if own is not None and own.stream == name else replace(mark, batch=mark.batch - 1)
        for name, mark in entry.state.streams.items()
    }


def is_job_dead(job: JobRecord, dead: Mapping[str, StreamMark]) -> bool:
    """Check whether `job` writes a batch whose jobs have all ended (see `dead_batches`)."""
    if job.stream is None or (mark := dead.get(job.stream.stream)) is None:
        return False
    return mark.checkpoint == job.stream.checkpoint and job.stream.batch <= mark.batch
