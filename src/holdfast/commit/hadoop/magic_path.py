"""Interpret magic paths: a file that is written to a magic path becomes a pending upload to another path.

``dest/__magic_job-7/tasks/attempt_3/__base/year=2026/x`` stands for ``dest/year=2026/x``. In this way a program that
knows nothing about commits can write hidden files on a store without rename.

Sources: paper 000, VI.A and Table III; paper 001, "Magic Committer"; HADOOP-18797 for the name with the job in it.
"""

from __future__ import annotations

from holdfast.errors import InvalidRequestError

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
