"""Interpret magic paths: a file that is written below one becomes a pending upload to another path.

``dest/__magic_job-7/tasks/attempt_3/__base/year=2026/x`` stands for ``dest/year=2026/x``. On a store without rename, a
program that knows nothing of commits can write hidden files this way.

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
"""Name of the magic directory until Hadoop 3.3."""

MAGIC_JOB_PREFIX = "__magic_job-"
"""Start of that name since Hadoop 3.4; the job id follows, so that jobs in one destination do not share it."""

BASE = "__base"
"""The directory below the magic directory whose tree is kept; the segments between the two are the committer's own."""

PENDING = ".pending"
PENDINGSET = ".pendingset"

MARKER_LENGTH = "x-hadoop-s3a-magic-data-length"
"""Metadata key of the empty marker at a magic path: the size of the file in bytes (HADOOP-17414)."""


def magic_dir(job: str) -> str:
    """Return the name of a job's magic directory."""
    return MAGIC_JOB_PREFIX + job


def _magic_index(segments: list[str]) -> int:
    """Return the index of the first magic directory, or -1."""
    for index, segment in enumerate(segments):
        if segment == MAGIC or (segment.startswith(MAGIC_JOB_PREFIX) and segment != MAGIC_JOB_PREFIX):
            return index
    return -1


def is_magic(path: str) -> bool:
    """Check whether `path` is a magic directory or is below one."""
    return _magic_index(path.split("/")) >= 0


def is_pending(path: str) -> bool:
    """Check whether `path` names the record of one pending upload."""
    return path.endswith(PENDING)


def is_pendingset(path: str) -> bool:
    """Check whether `path` names the record of all pending uploads of a task."""
    return path.endswith(PENDINGSET)


def pending_path(path: str) -> str:
    """Return the path of the record of the upload that `path` stands for."""
    return path + PENDING


def final_path(path: str) -> str:
    """Return the final path of a file written to `path`; `path` itself if it is not magic or a committer's record.

    The first magic directory counts and, below it, the last ``__base``; a ``__base`` above it is an ordinary name.
    Without ``__base``, everything below the magic directory keeps its tree: ``dest/__magic/1/2`` stands for
    ``dest/1/2``, as in paper 000. Hadoop keeps only the last segment then (``dest/2``), so that two files of one task
    may collide. Below ``__base``, which committers always use, both agree.

    Raises:
        InvalidRequestError: nothing follows the magic directory or its ``__base``, a segment is empty, ``.`` or ``..``,
            or a magic directory is below ``__base``: write to a plain path below the task's directory.
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
        raise InvalidRequestError(
            "a magic path must not leave its directory or contain another one: write to a plain path", path=path
        )
    return "/".join(segments[:magic] + below)
