"""Encode and decode the stored records that protocols share, as JSON. Every field that is read is validated.

If a record is invalid, decoding raises `CorruptDataError`, and the record's bytes are neither deleted nor overwritten.
Unknown fields are ignored; an unknown major version is an error.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

from holdfast.commit import layout
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_owner, is_job_id
from holdfast.commit.json_fields import count_field, guarded, json_line, json_object, require, text_field
from holdfast.commit.records import JobRecord, StreamBatch, Totals
from holdfast.commit.save_mode import SaveMode

_JOB_FORMAT = "holdfast-job/1"
_INTENTS_FORMAT = "holdfast-intents/1"


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


# --- writing ----------------------------------------------------------------------------------------------------------
def totals_fields(totals: Totals) -> dict[str, int]:
    """Return the record fields ``files``, ``bytes`` and ``rows`` for these counts."""
    return {"files": totals.files, "bytes": totals.size_bytes, "rows": totals.rows}


def job_fields(record: JobRecord) -> dict[str, object]:
    """Return the record fields that describe a job."""
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
    """Encode a job's record, as one line."""
    return json_line({"format": _JOB_FORMAT, **job_fields(record)})


def encode_intents(owner: FileOwner, paths: Sequence[str]) -> bytes:
    """Encode an intent record: a header line, then one line for each path to which an attempt is about to upload."""
    header = {
        "format": _INTENTS_FORMAT,
        "job": owner.job,
        "task": owner.task,
        "attempt": owner.attempt,
        "files": len(paths),
    }
    return b"".join([json_line(header), *(json_line({"path": path}) for path in paths)])


# --- reading ----------------------------------------------------------------------------------------------------------


def job_id_field(value: dict[str, Any]) -> JobId:
    """Check the field ``job`` and return the job id in it."""
    found = text_field(value, "job")
    require(is_job_id(found), "job is not a job id")
    return JobId(found)


def totals_of_fields(value: dict[str, Any]) -> Totals:
    """Check the fields ``files``, ``bytes`` and ``rows``, and return the counts in them."""
    return Totals(
        files=count_field(value, "files"), size_bytes=count_field(value, "bytes"), rows=count_field(value, "rows")
    )


def seconds_field(value: dict[str, Any], name: str) -> float:
    """Check the field `name` and return the time in it, in seconds since the epoch."""
    found = value[name]
    require(type(found) in (int, float) and 0 <= found < 1e12, f"{name} is not a time")
    return float(found)


def job_of_fields(value: dict[str, Any]) -> JobRecord:
    """Check the fields that `job_fields` writes, and return the job record that they encode."""
    details = value["details"]
    require(isinstance(details, dict), "details is not an object")
    return JobRecord(
        job=job_id_field(value),
        committer=text_field(value, "committer"),
        publication=text_field(value, "publication", empty=True),
        mode=SaveMode(value["mode"]),
        base_seq=count_field(value, "base_seq"),
        started_at_s=seconds_field(value, "started_at_s"),
        details=details,
        stream=_read_stream(value["stream"]) if "stream" in value else None,
        announced=value.get("announced") is True,
    )


def _read_stream(value: Any) -> StreamBatch:
    require(isinstance(value, dict), "stream is not an object")
    return StreamBatch(
        stream=text_field(value, "stream"),
        checkpoint=text_field(value, "checkpoint"),
        batch=count_field(value, "batch"),
    )


def decode_job(key: str, data: bytes) -> JobRecord:
    """Decode a job's record; `key` must be the key of this job's record."""

    def decode() -> JobRecord:
        value = json_object(data)
        require(value["format"] == _JOB_FORMAT, "format is unknown")
        record = job_of_fields(value)
        require(f"{record.job}/" in key, "the record belongs to another job")
        return record

    return guarded(key, decode)


def decode_intents(key: str, data: bytes) -> tuple[FileOwner, tuple[str, ...]]:
    """Decode an intent record; `key` must belong to the same attempt, and every path must be below the destination.

    A path that names another attempt is an error: it belongs to that attempt, and no other may claim it (C7).
    """

    def decode() -> tuple[FileOwner, tuple[str, ...]]:
        lines = data.splitlines()
        header = json_object(lines[0] if lines else b"null")
        require(header["format"] == _INTENTS_FORMAT, "format is unknown")
        owner = FileOwner(job_id_field(header), count_field(header, "task"), AttemptId(text_field(header, "attempt")))
        number = key.rpartition("-")[2].partition(".")[0]
        require(number.isascii() and number.isdigit(), "its key has no number")
        place = layout.intents(owner.job, owner.task, owner.attempt, int(number))
        require(key.endswith(place), "the record belongs to another attempt")
        paths = tuple(text_field(json_object(line), "path") for line in lines[1:])
        require(count_field(header, "files") == len(paths), "paths are missing")
        for path in paths:
            require(layout.is_safe_path(path), "path leaves the destination")
            require(file_owner(path) in (None, owner), "path belongs to another attempt")
        return owner, paths

    return guarded(key, decode)
