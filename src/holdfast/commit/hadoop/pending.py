"""Encode and decode the S3A committers' records: ``.pending`` for one upload, ``.pendingset`` for a task's uploads.

Etags are JSON objects since Hadoop 3.4.2 (HADOOP-15224) and strings up to 3.4.1. Holdfast reads both forms, and writes
objects. In all releases from 3.3.6 to 3.5.0, a set has version 3 and a single upload has version 2. Older releases
wrote sets of version 2, which Holdfast can read too.

Hadoop stores no part sizes and no row counts. Holdfast puts them into ``extraData``, where Hadoop preserves fields that
it does not know: ``holdfast.part.sizes`` (comma separated) and ``holdfast.rows``.

Sources: paper 001, "Magic Committer"; Hadoop's SinglePendingCommit, PendingSet and UploadEtag; records that 3.4.1 and
3.5.0 wrote (tests/unit/commit/hadoop/recorded).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from holdfast.commit import layout
from holdfast.commit.codec import (
    decode_record,
    encode_json_line,
    parse_json_object,
    read_count_field,
    read_optional_text_field,
    read_text_field,
    read_text_map_field,
    require_valid,
)
from holdfast.commit.hadoop.uri import check_uri
from holdfast.commit.records import FileEntry
from holdfast.commit.statistics import NO_STATISTICS, Statistics, decode_statistics, encode_statistics
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import Part
from holdfast.wording import is_unicode

MAX_PENDING_BYTES = 8 * 1024 * 1024
"""More than 10,000 parts with the longest etags and checksums: a larger file is not a record of one upload."""

MAX_PENDINGSET_BYTES = 256 * 1024 * 1024
"""More than any task writes: 100,000 files of a few parts. A larger set would only fill the driver's memory."""

_VERSION = 2
_SET_VERSION = 3
_SET_VERSIONS = (2, _SET_VERSION)
_MAX_PARTS = 10_000
_YEAR_10000_MS = 253_402_300_800_000
_ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
_SIZES = "holdfast.part.sizes"
_ROWS = "holdfast.rows"
_ATTEMPT = "task.attempt.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePending:
    """A pending upload.

    Attributes:
        key: the key of the completed file, in `bucket`.
        parts: the upload's parts, starting with part 1; their sizes are 0 if unknown. Etags are without the quotes that
            S3's replies and Hadoop's records put around them.
        uri: URI of the path that the program wrote to; informational only.
        created_ms: when the record was created, in milliseconds since the epoch.
        job_id, task_id: the owner; empty in records that Hadoop's filesystem writes, because it knows neither.
    """

    bucket: str
    key: str
    upload_id: str
    parts: tuple[Part, ...] = field(repr=False)
    size_bytes: int
    uri: str
    rows: int = 0
    created_ms: int = 0
    job_id: str = ""
    task_id: str = ""
    statistics: Statistics = NO_STATISTICS

    @property
    def completed_etag(self) -> str:
        """Return the etag of the completed object; empty if the parts' etags are not MD5 sums of their bytes."""
        sums = [part.etag.lower() for part in self.parts]
        if not all(re.fullmatch("[0-9a-f]{32}", text) for text in sums):
            return ""
        whole = hashlib.md5(b"".join(map(bytes.fromhex, sums)), usedforsecurity=False).hexdigest()
        return f"{whole}-{len(sums)}"

    def file_entry(self, prefix: str) -> FileEntry:
        """Return this upload as a `FileEntry`, with its path relative to the destination at key prefix `prefix`."""
        return FileEntry(
            path=self.key.removeprefix(prefix),
            size_bytes=self.size_bytes,
            rows=self.rows,
            upload_id=self.upload_id,
            parts=tuple((part.etag, part.size_bytes) for part in self.parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSet:
    """All pending uploads of a task, which the task commit passes to the job commit; `attempt` is the task attempt."""

    job_id: str
    commits: tuple[SinglePending, ...]
    attempt: str = ""
    statistics: Statistics = NO_STATISTICS


# --- writing ----------------------------------------------------------------------------------------------------------
def _pending_fields(pending: SinglePending) -> dict[str, object]:
    extra: dict[str, str] = {}
    sizes = [part.size_bytes for part in pending.parts]
    if sum(sizes) == pending.size_bytes:  # else they are unknown
        extra[_SIZES] = ",".join(map(str, sizes))
    if pending.rows:
        extra[_ROWS] = str(pending.rows)
    return {
        "version": _VERSION,
        "filename": None,
        "uri": pending.uri,
        "uploadId": pending.upload_id,
        "bucket": pending.bucket,
        "destinationKey": pending.key,
        "created": pending.created_ms,
        "saved": pending.created_ms,
        "date": f"{datetime.fromtimestamp(pending.created_ms / 1000, tz=timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "jobId": pending.job_id,
        "taskId": pending.task_id,
        "text": "",
        "etags": [
            {
                "etag": f'"{part.etag}"',
                "checksumAlgorithm": part.checksum_algorithm or None,
                "checksum": part.checksum or None,
            }
            for part in pending.parts
        ],
        "extraData": extra,
        "length": pending.size_bytes,
        "iostatistics": encode_statistics(pending.statistics),
        "partCount": len(pending.parts),
    }


def encode_pending(pending: SinglePending) -> bytes:
    """Encode a ``.pending`` record."""
    return encode_json_line(_pending_fields(pending))


def encode_pendingset(pendingset: PendingSet) -> bytes:
    """Encode a ``.pendingset`` record."""
    return encode_json_line(
        {
            "version": _SET_VERSION,
            "jobId": pendingset.job_id,
            "commits": [_pending_fields(pending) for pending in pendingset.commits],
            "extraData": {_ATTEMPT: pendingset.attempt} if pendingset.attempt else {},
            "iostatistics": encode_statistics(pendingset.statistics),
        }
    )


# --- reading ----------------------------------------------------------------------------------------------------------
def _parse_created_ms(value: dict[str, Any]) -> int:
    found = read_count_field(value, "created") if "created" in value else 0
    require_valid(found < _YEAR_10000_MS, "created is not a time")
    return found


def _parse_count(text: str, what: str) -> int:
    require_valid(text.isascii() and text.isdigit() and len(text) < 19, f"{what} is not a count")
    return int(text)


def _parse_part(number: int, found: object, size_bytes: int) -> Part:
    if isinstance(found, str):
        return Part(number, _strip_etag_quotes(found), size_bytes)
    require_valid(isinstance(found, dict), "an etag is neither a text nor an object")
    assert isinstance(found, dict)
    etag = _strip_etag_quotes(read_text_field(found, "etag"))
    algorithm, checksum = (
        read_optional_text_field(found, "checksumAlgorithm"),
        read_optional_text_field(found, "checksum"),
    )
    require_valid(bool(algorithm) == bool(checksum), "a checksum and its algorithm belong together")
    require_valid(not algorithm or algorithm in _ALGORITHMS, "a checksum is of an unknown algorithm")
    return Part(number, etag, size_bytes, algorithm, checksum)


def _strip_etag_quotes(etag: str) -> str:
    """Return an etag without the quotes that S3 puts around it and that Hadoop's records preserve."""
    bare = etag[1:-1] if len(etag) > 1 and etag[0] == etag[-1] == '"' else etag
    require_valid(bool(bare), "an etag is empty")
    return bare


def _parse_parts(value: dict[str, Any], sizes: str | None, size_bytes: int) -> tuple[Part, ...]:
    etags = value["etags"]
    require_valid(isinstance(etags, list) and bool(etags), "etags are missing")
    require_valid(len(etags) <= _MAX_PARTS, f"an upload has at most {_MAX_PARTS} parts")
    known = [0] * len(etags)
    if sizes is not None:
        known = [_parse_count(text, _SIZES) for text in sizes.split(",")]
        require_valid(len(known) == len(etags) and sum(known) == size_bytes, "parts do not add up to the file")
    return tuple(_parse_part(number, etag, known[number - 1]) for number, etag in enumerate(etags, start=1))


def _parse_pending(value: dict[str, Any], bucket: str, prefix: str, job_id: str) -> SinglePending:
    require_valid(type(value["version"]) is int and value["version"] == _VERSION, f"version is not {_VERSION}")
    require_valid(read_text_field(value, "bucket") == bucket, "the bucket is another one")
    key = read_text_field(value, "destinationKey")
    require_valid(is_unicode(key), "destinationKey is not valid Unicode")
    # A manipulated record must not make a job write elsewhere, or replace Holdfast's own records (C7).
    require_valid(key.startswith(prefix) and layout.is_safe_path(key[len(prefix) :]), "the key leaves the destination")
    check_uri(uri := read_text_field(value, "uri"))
    owner = read_optional_text_field(value, "jobId")
    require_valid(owner in ("", job_id), "it is another job's")
    extra = read_text_map_field(value, "extraData")
    size_bytes = read_count_field(value, "length")
    return SinglePending(
        bucket=bucket,
        key=key,
        upload_id=read_text_field(value, "uploadId"),
        parts=_parse_parts(value, extra.get(_SIZES), size_bytes),
        size_bytes=size_bytes,
        uri=uri,
        rows=_parse_count(extra.get(_ROWS, "0"), _ROWS),
        created_ms=_parse_created_ms(value),
        job_id=owner,
        task_id=read_optional_text_field(value, "taskId"),
        statistics=decode_statistics(value.get("iostatistics")),
    )


def decode_pending(record: str, data: bytes, *, bucket: str, prefix: str, job_id: str) -> SinglePending:
    """Decode a pending upload, and check that completing it can only create a file in this destination.

    Args:
        record: key of the record itself, for error messages.
        bucket: bucket of the destination.
        prefix: key prefix of the destination; empty or ending in ``/``.
        job_id: the job that the upload must belong to; a record without a job is accepted.

    Raises:
        CorruptDataError: a field is missing or wrong; the error says which. The record is not deleted: report it, or
            abort the job.
    """

    def decode_fields() -> SinglePending:
        require_valid(len(data) <= MAX_PENDING_BYTES, "it is too long for one upload")
        return _parse_pending(parse_json_object(data), bucket, prefix, job_id)

    return decode_record(record, decode_fields)


def decode_pendingset(record: str, data: bytes, *, bucket: str, prefix: str, job_id: str) -> PendingSet:
    """Decode the pending uploads of a task. Check each like `decode_pending`, and that no file occurs twice.

    Args:
        job_id: the job that the set must belong to; a set without a job, like those of Hadoop's staging committers, is
            accepted.

    Raises:
        CorruptDataError: a field is missing or wrong, or the set belongs to another job.
    """

    def decode_fields() -> PendingSet:
        require_valid(len(data) <= MAX_PENDINGSET_BYTES, "it is too long for the uploads of one task")
        value = parse_json_object(data)
        require_valid(type(value["version"]) is int and value["version"] in _SET_VERSIONS, "version is neither 2 nor 3")
        owner = read_optional_text_field(value, "jobId")
        require_valid(owner in ("", job_id), "it is another job's")
        found = value["commits"]
        require_valid(
            isinstance(found, list) and all(isinstance(one, dict) for one in found),
            "commits are not a list of objects",
        )
        commits = tuple(_parse_pending(one, bucket, prefix, job_id) for one in found)
        require_valid(
            len({pending.key for pending in commits}) == len(commits), "two uploads have the same destination"
        )
        return PendingSet(
            job_id=job_id,
            commits=commits,
            attempt=read_text_map_field(value, "extraData").get(_ATTEMPT, ""),
            statistics=decode_statistics(value.get("iostatistics")),
        )

    return decode_record(record, decode_fields)


MAGIC = "__magic"
"""Name of the magic directory up to Hadoop 3.3."""

MAGIC_JOB_PREFIX = "__magic_job-"
"""Start of the magic directory's name since Hadoop 3.4. The job id follows, so that jobs do not share a directory."""

BASE = "__base"
"""A directory below the magic directory. The tree below it is preserved; the committer chooses the segments above
it.
"""

PENDING = ".pending"
PENDINGSET = ".pendingset"

MARKER_LENGTH = "x-hadoop-s3a-magic-data-length"
"""Metadata key, on the empty marker at a magic path, that stores the file's size in bytes (HADOOP-17414)."""


def magic_dir(job: str) -> str:
    """Return the name of a job's magic directory."""
    return MAGIC_JOB_PREFIX + job


def _magic_index(segments: list[str]) -> int:
    """Return the index of the first magic directory, or -1."""
    for index, segment in enumerate(segments):
        if segment == MAGIC or (segment.startswith(MAGIC_JOB_PREFIX) and segment != MAGIC_JOB_PREFIX):
            return index
    return -1


def is_magic_path(path: str) -> bool:
    """Check whether `path` is a magic directory or is below one."""
    return _magic_index(path.split("/")) >= 0


def is_pending_path(path: str) -> bool:
    """Check whether `path` names the record of one pending upload."""
    return path.endswith(PENDING)


def is_pendingset_path(path: str) -> bool:
    """Check whether `path` names the record of all pending uploads of a task."""
    return path.endswith(PENDINGSET)


def pending_path(path: str) -> str:
    """Return the path of the record of the upload that the magic `path` stands for."""
    return path + PENDING


def final_path(path: str) -> str:
    """Return the final path of a file written to `path`: `path` itself if it is not magic, or is a committer's record.

    If names occur twice, the first magic directory counts and, below it, the last ``__base``; a ``__base`` above the
    magic directory is an ordinary name. Without ``__base``, the whole tree below the magic directory is preserved:
    ``dest/__magic/1/2`` stands for ``dest/1/2``, as in paper 000. In that case Hadoop preserves only the last segment
    (``dest/2``), so that two files of one task may collide. Committers always use ``__base``; below it, Hadoop and
    Holdfast agree.

    Raises:
        InvalidRequestError: nothing follows the magic directory or its ``__base``, a segment is empty, ``.`` or ``..``,
            or a magic directory is below ``__base``: write to a plain path below the task's directory.
    """
    segments = path.split("/")
    magic = _magic_index(segments)
    if magic < 0 or is_pending_path(path) or is_pendingset_path(path):
        return path
    below = segments[magic + 1 :]
    if BASE in below:
        below = below[len(below) - below[::-1].index(BASE) :]
    if not below:
        raise InvalidRequestError("a magic path needs a file name below the magic directory: add one", path=path)
    if any(segment in ("", ".", "..") for segment in below) or _magic_index(below) >= 0:
        raise InvalidRequestError(
            "a magic path must not leave its directory or contain another one: write to a plain path", path=path
        )
    return "/".join(segments[:magic] + below)
