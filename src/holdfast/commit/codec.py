"""Write stored JSON in one format, and validate every field that is read.

A failed check raises `BadFieldError`. `decode_record` turns this and every other error during decoding into a
`CorruptDataError` with the record's key and the reason. The bytes of such a record are neither deleted nor overwritten.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.commit import layout
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_owner, is_job_id
from holdfast.commit.records import JobRecord, SaveMode, StreamBatch, Totals
from holdfast.errors import MALFORMED, CorruptDataError
from holdfast.wording import is_unicode

T = TypeVar("T")

_GZIP = 31  # zlib's code for the gzip format; it stores no timestamp, so equal lists have equal bytes
_GZIP_MAGIC = b"\x1f\x8b"


class BadFieldError(Exception):
    """A field is missing or invalid; the message says which. `decode_record` makes a `CorruptDataError` of it."""


def require_valid(condition: bool, what: str) -> None:
    """Raise `BadFieldError` with the message `what` unless `condition` holds."""
    if not condition:
        raise BadFieldError(what)


def decode_record(key: str, decode: Callable[[], T]) -> T:
    """Return the result of `decode`, which decodes the record at `key`.

    Raises:
        CorruptDataError: the record is invalid; its bytes are not changed.
    """
    try:
        return decode()
    except (BadFieldError, *MALFORMED) as error:
        raise CorruptDataError(
            "a stored record cannot be read; its bytes are kept: report them, or restore the record",
            key=key,
            reason=str(error) or type(error).__name__,
        ) from error


def encode_json_line(value: Mapping[str, object]) -> bytes:
    """Encode `value` as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"


class PackedLines:
    """Collects lines of JSON in memory, compressed as they are added: a job may have or replace a million files."""

    def __init__(self) -> None:
        self.count = 0
        self._packer = zlib.compressobj(level=1, wbits=_GZIP)
        self._packed = bytearray()

    def add(self, value: Mapping[str, object]) -> None:
        """Append `value` as one line of JSON."""
        self.count += 1
        self._packed += self._packer.compress(encode_json_line(value))

    def encode(self) -> bytes:
        """Return the lines added so far, compressed with gzip."""
        return bytes(self._packed) + self._packer.copy().flush()


def iter_json_lines(key: str, data: bytes) -> Iterator[dict[str, Any]]:
    """Iterate over the objects in lines of JSON, compressed or not, decompressing them lazily.

    Raises:
        CorruptDataError: a line of the record at `key` is invalid.
    """
    lines = gzip.GzipFile(fileobj=io.BytesIO(data)) if data.startswith(_GZIP_MAGIC) else io.BytesIO(data)

    def parse_next_line() -> dict[str, Any] | None:
        try:
            line = lines.readline()
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError("it cannot be decompressed") from error
        return parse_json_object(line) if line else None

    while (value := decode_record(key, parse_next_line)) is not None:
        yield value


def parse_json_object(line: bytes) -> dict[str, Any]:
    """Parse `line`, which must be a JSON object: any other JSON value raises `BadFieldError`."""
    value = json.loads(line)
    require_valid(isinstance(value, dict), "not an object")
    return value  # type: ignore[no-any-return]  # checked in the line above


def read_text_field(value: dict[str, Any], name: str, *, empty: bool = False) -> str:
    """Return the string in field `name`; an empty string is an error unless `empty` is True."""
    found = value[name]
    require_valid(isinstance(found, str) and (empty or bool(found)), f"{name} is not a text")
    return str(found)


def read_optional_text_field(value: dict[str, Any], name: str) -> str:
    """Return the string in field `name`; an empty string if the field is missing or null."""
    return "" if value.get(name) is None else read_text_field(value, name, empty=True)


def read_text_map_field(value: dict[str, Any], name: str) -> dict[str, str]:
    """Return the object in field `name`, whose values must be strings; empty if the field is missing or null."""
    found = {} if value.get(name) is None else value[name]
    require_valid(isinstance(found, dict), f"{name} is not an object")
    require_valid(all(isinstance(text, str) for text in found.values()), f"{name} contains values that are not texts")
    return dict(found)


def read_count_field(value: dict[str, Any], name: str) -> int:
    """Return the count in field `name`: an integer from 0 to 2**63 - 1."""
    found = value[name]
    require_valid(type(found) is int and 0 <= found < 2**63, f"{name} is not a count")
    return int(found)


def read_crc_field(value: dict[str, Any]) -> int:
    """Return the CRC-32 in field ``crc32``: an integer of 32 bits."""
    found = read_count_field(value, "crc32")
    require_valid(found < 2**32, "crc32 is not a checksum")
    return found


_JOB_FORMAT = "holdfast-job/1"
_INTENTS_FORMAT = "holdfast-intents/1"


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


# --- writing ----------------------------------------------------------------------------------------------------------
def encode_totals(totals: Totals) -> dict[str, int]:
    """Convert counts to the JSON fields ``files``, ``bytes`` and ``rows`` of a record."""
    return {"files": totals.files, "bytes": totals.size_bytes, "rows": totals.rows}


def encode_job_fields(record: JobRecord) -> dict[str, object]:
    """Convert a job's description to the JSON fields of a record; the inverse of `parse_job_fields`."""
    return {
        "job": record.job,
        "committer": record.committer,
        "publication": record.publication,
        "mode": record.mode.value,
        "base_seq": record.base_seq,
        "started_at_s": record.started_at_s,
        "details": dict(record.details),
        **({"stream": dataclasses.asdict(record.stream)} if record.stream else {}),
        **({"announced": True} if record.announced else {}),
    }


def encode_job(record: JobRecord) -> bytes:
    """Encode a job's record as one line of JSON."""
    return encode_json_line({"format": _JOB_FORMAT, **encode_job_fields(record)})


def encode_intents(owner: FileOwner, paths: Sequence[str]) -> bytes:
    """Encode an intent record: a header line, then one line for each path to which an attempt is about to upload."""
    header = {
        "format": _INTENTS_FORMAT,
        "job": owner.job,
        "task": owner.task,
        "attempt": owner.attempt,
        "files": len(paths),
    }
    return b"".join([encode_json_line(header), *(encode_json_line({"path": path}) for path in paths)])


# --- reading ----------------------------------------------------------------------------------------------------------


def read_job_id_field(value: dict[str, Any]) -> JobId:
    """Check the field ``job`` and return the job id in it."""
    found = read_text_field(value, "job")
    require_valid(is_job_id(found), "job is not a job id")
    return JobId(found)


def parse_totals(value: dict[str, Any]) -> Totals:
    """Check the fields ``files``, ``bytes`` and ``rows``, and return the counts in them."""
    return Totals(
        files=read_count_field(value, "files"),
        size_bytes=read_count_field(value, "bytes"),
        rows=read_count_field(value, "rows"),
    )


def read_seconds_field(value: dict[str, Any], name: str) -> float:
    """Check the field `name` and return the time in it, in seconds since the epoch."""
    found = value[name]
    require_valid(type(found) in (int, float) and 0 <= found < 1e12, f"{name} is not a time")
    return float(found)


def parse_job_fields(value: dict[str, Any]) -> JobRecord:
    """Check the JSON fields of `encode_job_fields`; return the job's description. For errors, see `decode_record`."""
    details = value["details"]
    require_valid(isinstance(details, dict), "details is not an object")
    require_valid(all(is_unicode(text) for text in details.values() if isinstance(text, str)), "details are no Unicode")
    return JobRecord(
        job=read_job_id_field(value),
        committer=read_text_field(value, "committer"),
        publication=read_text_field(value, "publication", empty=True),
        mode=SaveMode(value["mode"]),
        base_seq=read_count_field(value, "base_seq"),
        started_at_s=read_seconds_field(value, "started_at_s"),
        details=details,
        stream=_parse_stream_batch(value["stream"]) if "stream" in value else None,
        announced=value.get("announced") is True,
    )


def _parse_stream_batch(value: Any) -> StreamBatch:
    require_valid(isinstance(value, dict), "stream is not an object")
    return StreamBatch(
        stream=read_text_field(value, "stream"),
        checkpoint=read_text_field(value, "checkpoint"),
        batch=read_count_field(value, "batch"),
    )


def decode_job(key: str, data: bytes) -> JobRecord:
    """Decode a job's record; raise `CorruptDataError` if it is damaged, or `key` is not that of the job's record."""

    def decode_fields() -> JobRecord:
        value = parse_json_object(data)
        require_valid(value["format"] == _JOB_FORMAT, "format is unknown")
        record = parse_job_fields(value)
        require_valid(f"{record.job}/" in key, "the record belongs to another job")
        return record

    return decode_record(key, decode_fields)


def decode_intents(key: str, data: bytes) -> tuple[FileOwner, tuple[str, ...]]:
    """Decode an intent record, the list of paths to which an attempt is about to upload; return the attempt and paths.

    Raises:
        CorruptDataError: the record is damaged, `key` is that of another attempt's record, or a path is outside the
            destination or that of another attempt's file (C7).
    """

    def decode_lines() -> tuple[FileOwner, tuple[str, ...]]:
        lines = data.splitlines()
        header = parse_json_object(lines[0] if lines else b"null")
        require_valid(header["format"] == _INTENTS_FORMAT, "format is unknown")
        owner = FileOwner(
            read_job_id_field(header), read_count_field(header, "task"), AttemptId(read_text_field(header, "attempt"))
        )
        number = key.rpartition("-")[2].partition(".")[0]
        require_valid(number.isascii() and number.isdigit(), "its key has no number")
        place = layout.intents_path(owner.job, owner.task, owner.attempt, int(number))
        require_valid(key.endswith(place), "the record belongs to another attempt")
        paths = tuple(read_text_field(parse_json_object(line), "path") for line in lines[1:])
        require_valid(read_count_field(header, "files") == len(paths), "paths are missing")
        for path in paths:
            require_valid(layout.is_safe_path(path), "path leaves the destination")
            require_valid(file_owner(path) in (None, owner), "path belongs to another attempt")
        return owner, paths

    return decode_record(key, decode_lines)
