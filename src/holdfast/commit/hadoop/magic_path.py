"""Magic paths: a file that is written below one becomes a pending upload to another place.

``dest/__magic_job-7/tasks/attempt_3/__base/year=2026/x`` stands for ``dest/year=2026/x``. Where a store has no rename,
this is how a program that knows nothing of commits writes files that nobody sees yet.

Sources: paper 000, VI.A and Table III; paper 001, "Magic Committer"; HADOOP-18797 for the name with the job in it.
"""

from __future__ import annotations

from holdfast.errors import InvalidRequestError

__all__ = [
    "BASE",
    "MAGIC",
    "MAGIC_JOB_PREFIX",
    "MARKER_LENGTH",
    "PENDING",
    "PENDINGSET",
    "final_path",
    "is_magic",
    "is_pending",
    "is_pendingset",
    "magic_dir",
    "pending_path",
]

MAGIC = "__magic"
"""Name of the directory whose descendants are magic, until Hadoop 3.3."""

MAGIC_JOB_PREFIX = "__magic_job-"
"""Start of that name from Hadoop 3.4 on; the job's id follows, so that jobs on one destination do not share it."""

BASE = "__base"
"""The directory below magic whose tree is kept: what lies above it, up to magic, is only for the committer."""

PENDING = ".pending"
PENDINGSET = ".pendingset"

MARKER_LENGTH = "x-hadoop-s3a-magic-data-length"
"""Metadata key of the empty marker that stands where a magic file was written: how many bytes were (HADOOP-17414)."""


def magic_dir(job: str) -> str:
    """Name of the magic directory of a job."""
    return MAGIC_JOB_PREFIX + job


def _magic_index(segments: list[str]) -> int:
    """Index of the first magic directory, or -1."""
    for index, segment in enumerate(segments):
        if segment == MAGIC or (segment.startswith(MAGIC_JOB_PREFIX) and segment != MAGIC_JOB_PREFIX):
            return index
    return -1


def is_magic(path: str) -> bool:
    """Whether `path` is a magic directory or lies below one."""
    return _magic_index(path.split("/")) >= 0


def is_pending(path: str) -> bool:
    """Whether `path` names the record of one pending upload."""
    return path.endswith(PENDING)


def is_pendingset(path: str) -> bool:
    """Whether `path` names the record of all pending uploads of a task."""
    return path.endswith(PENDINGSET)


def pending_path(path: str) -> str:
    """Where the record of the upload that `path` stands for is kept."""
    return path + PENDING


def final_path(path: str) -> str:
    """Where a file that is written to `path` will appear; `path` itself if that is not magic or one of our records.

    The first magic directory counts and, below it, the last ``__base``; a ``__base`` above magic is a name like any
    other. Without ``__base`` everything below magic keeps its tree: ``dest/__magic/1/2`` stands for ``dest/1/2``, as
    paper 000 says. Hadoop keeps only the last name there (``dest/2``), so that two files of one task may collide;
    below ``__base``, which committers always use, both agree.

    Raises:
        InvalidRequestError: nothing lies below magic or its ``__base``, a segment is empty, ``.`` or ``..``, or magic
            lies below ``__base``: write to a plain path below the task's directory.
    """
    segments = path.split("/")
    magic = _magic_index(segments)
    if magic < 0 or is_pending(path) or is_pendingset(path):
        return path
    below = segments[magic + 1 :]
    if BASE in below:
        below = below[len(below) - below[::-1].index(BASE) :]
    if not below:
        raise InvalidRequestError("a magic path needs a file name below the magic directory: add one", path=path)
    if any(segment in ("", ".", "..") for segment in below) or _magic_index(below) >= 0:
        raise InvalidRequestError("a magic path may not leave its directory or nest: write to a plain path", path=path)
    return "/".join(segments[:magic] + below)
