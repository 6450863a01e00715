"""Name the records of a `manifest` job; encode and decode the manifest of a task attempt in Hadoop's format.

The field names are those of Hadoop 3.3.5 to 3.5.0, and were checked against what 3.5.0 writes and reads: a file is
``{"s": source, "d": dest, "z": size, "e": etag}``. Paths are absolute URIs in the stored manifest, and relative to the
destination in this module's values. Hadoop has no row counts; Holdfast stores them in an extra field of the file's
entry, which Hadoop ignores. Hadoop also lists directories to create, which Holdfast's renames do not need.

    _temporary/manifest_<job>/00/job.json                              from the start to the end of the job
    _temporary/manifest_<job>/00/tasks/<attempt>/<path>                while an attempt writes, until the job commit
    _temporary/manifest_<job>/00/manifests/<task>-manifest.json        what a task committed

Sources: paper 002, "The Intermediate Manifest"; Hadoop's TaskManifest and FileEntry.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit import layout
from holdfast.commit.codec import (
    decode_record,
    encode_json_line,
    parse_json_object,
    read_count_field,
    read_optional_text_field,
    read_text_field,
    require_valid,
)
from holdfast.commit.hadoop.uri import encode_uri, path_below
from holdfast.commit.ids import FileOwner, make_hadoop_attempt_id, make_hadoop_task_id
from holdfast.commit.records import JobRecord
from holdfast.commit.statistics import NO_STATISTICS, Statistics, decode_statistics, encode_statistics

MAX_MANIFEST_BYTES = 256 * 1024 * 1024
"""About half a million files; a larger manifest would only fill the driver's memory."""

_TYPE = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1"
_VERSION = 1
_ROWS = "holdfast.rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A file to rename from `source` to `dest`, both relative to the destination; `etag` is empty if unknown."""

    source: str
    dest: str
    size_bytes: int
    etag: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntermediateManifest:
    """The files that one task attempt wrote.

    Attributes:
        job_attempt: number of the attempt at the job, counted from 0.
        task_attempt_dir: the directory that contains the attempt's files, relative to the destination.
    """

    job_id: str
    task_id: str
    task_attempt_id: str
    task_attempt_dir: str
    files: tuple[ManifestFile, ...]
    job_attempt: int = 0
    statistics: Statistics = NO_STATISTICS


# --- paths ------------------------------------------------------------------------------------------------------------
TEMPORARY = "_temporary"
"""A directory shared with other jobs and committers: in it, a job deletes only its own directory (C7)."""

MANIFEST_SUFFIX = "-manifest.json"
"""The suffix of the file names of committed tasks' manifests."""


def job_dir(job: str) -> str:
    """Return the directory of a job, which contains all attempts at the job."""
    return f"{TEMPORARY}/manifest_{job}"


def job_attempt_dir(job: JobRecord) -> str:
    """Return the directory of one attempt at a job."""
    return f"{job_dir(job.job)}/{job.job_attempt:02d}"


def job_record_path(job: JobRecord) -> str:
    """Return the path of the job's record, which takes the place of Hadoop's job attempt directory."""
    return f"{job_attempt_dir(job)}/job.json"


def manifests_dir(job: JobRecord) -> str:
    """Return the directory of the committed tasks' manifests."""
    return f"{job_attempt_dir(job)}/manifests"


def tasks_dir(job: JobRecord) -> str:
    """Return the directory that contains the directories of all task attempts."""
    return f"{job_attempt_dir(job)}/tasks"


def attempt_dir(job: JobRecord, owner: FileOwner) -> str:
    """Return the directory in which only this task attempt writes."""
    return f"{tasks_dir(job)}/{make_hadoop_attempt_id(owner)}"


def task_manifest_path(job: JobRecord, task: int) -> str:
    """Return the path of the task's manifest. The last attempt that renames its manifest to this path wins."""
    return f"{manifests_dir(job)}/{make_hadoop_task_id(job.job, task)}{MANIFEST_SUFFIX}"


def attempt_manifest_path(job: JobRecord, owner: FileOwner) -> str:
    """Return the path of an attempt's manifest while it is being saved."""
    return f"{manifests_dir(job)}/{make_hadoop_attempt_id(owner)}{MANIFEST_SUFFIX}.tmp"


# --- writing ----------------------------------------------------------------------------------------------------------
def encode_intermediate_manifest(manifest: IntermediateManifest, url: str) -> bytes:
    """Encode a manifest as Hadoop's JSON.

    Args:
        manifest: the value to encode.
        url: URL of the destination, in the form of `Destination.url`; all URIs in the manifest start with it.
    """

    def encode_file(entry: ManifestFile) -> dict[str, object]:
        return {
            "s": encode_uri(url, entry.source),
            "d": encode_uri(url, entry.dest),
            "z": entry.size_bytes,
            **({"e": entry.etag} if entry.etag else {}),
            **({_ROWS: entry.rows} if entry.rows else {}),
        }

    value = {
        "extraData": {},
        "type": _TYPE,
        "version": _VERSION,
        "jobId": manifest.job_id,
        "jobAttemptNumber": manifest.job_attempt,
        "taskID": manifest.task_id,
        "taskAttemptID": manifest.task_attempt_id,
        "taskAttemptDir": encode_uri(url, manifest.task_attempt_dir),
        "files": [encode_file(entry) for entry in manifest.files],
        "directories": [],
        "iostatistics": encode_statistics(manifest.statistics),
    }
    return encode_json_line(value)


# --- reading ----------------------------------------------------------------------------------------------------------
def _is_path_below(path: str, directory: str) -> bool:
    """Check whether `path` is below `directory`, which ends in ``/``, and contains only plain names."""
    own = path[len(directory) :].split("/")
    return path.startswith(directory) and not any(segment in ("", ".", "..") or "\0" in segment for segment in own)


def _decode_file(value: object, url: str, attempt_dir: str) -> ManifestFile:
    require_valid(isinstance(value, dict), "a file is not an object")
    assert isinstance(value, dict)
    source, dest = read_optional_text_field(value, "s"), read_optional_text_field(value, "d")
    require_valid(bool(source), "the source of a file is missing")
    require_valid(bool(dest), "the dest of a file is missing")
    source, dest = path_below(source, url), path_below(dest, url)
    # A manipulated record must not make a job rename other files, or replace Holdfast's own records (C7).
    require_valid(_is_path_below(source, attempt_dir), "a source is outside the attempt's directory")
    require_valid(layout.is_safe_path(dest), "a dest leaves the destination")
    require_valid(type(value.get("z")) is int and value["z"] >= 0, "the size of a file is not a count")
    return ManifestFile(
        source=source,
        dest=dest,
        size_bytes=read_count_field(value, "z"),
        etag=read_optional_text_field(value, "e"),
        rows=read_count_field(value, _ROWS) if _ROWS in value else 0,
    )


def decode_intermediate_manifest(key: str, data: bytes, *, url: str, job_id: str) -> IntermediateManifest:
    """Decode a manifest, and check that it only moves files of its own attempt to paths below the destination.

    Args:
        key: key of the manifest itself, for error messages.
        url: URL of the destination.
        job_id: the job that the manifest must belong to.

    Raises:
        CorruptDataError: a field is missing or wrong, two files have the same target, or the manifest belongs to
            another job; the error says which. The manifest is not deleted: report it, or abort the job.
    """

    def decode_fields() -> IntermediateManifest:
        require_valid(len(data) <= MAX_MANIFEST_BYTES, "it is too long for one task")
        value = parse_json_object(data)
        require_valid(value.get("type") == _TYPE, "type is not that of a task's manifest")
        require_valid(type(value.get("version")) is int and value["version"] == _VERSION, f"version is not {_VERSION}")
        require_valid(read_text_field(value, "jobId") == job_id, "it is another job's")
        attempt_dir = path_below(read_text_field(value, "taskAttemptDir"), url)
        require_valid(
            _is_path_below(attempt_dir, f"{job_dir(job_id)}/"), "the attempt's directory is outside the job's"
        )
        listed = value.get("files", [])
        require_valid(isinstance(listed, list), "files is not a list")
        files = tuple(_decode_file(one, url, f"{attempt_dir}/") for one in listed)
        require_valid(len({file.dest for file in files}) == len(files), "two files have the same dest")
        return IntermediateManifest(
            job_id=job_id,
            task_id=read_text_field(value, "taskID"),
            task_attempt_id=read_text_field(value, "taskAttemptID"),
            task_attempt_dir=attempt_dir,
            files=files,
            job_attempt=read_count_field(value, "jobAttemptNumber"),
            statistics=decode_statistics(value.get("iostatistics")),
        )

    return decode_record(key, decode_fields)
