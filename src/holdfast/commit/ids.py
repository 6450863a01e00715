"""Names that are never used twice: jobs, attempts, and the files that carry both.

Because every file name holds its job and its attempt, whoever finds a leftover knows whose it is, and completing
or deleting it again can never touch anything else (C7, C10).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NewType

from holdfast.runtime import Clock, Ids

__all__ = ["AttemptId", "FileOwner", "JobId", "file_name", "file_owner", "is_job_id", "new_attempt_id", "new_job_id"]

JobId = NewType("JobId", str)
"""UTC time to the millisecond and twelve random digits: sorts by start, unique also within a second (SPARK-33402)."""

AttemptId = NewType("AttemptId", str)
"""Twelve random digits made inside the attempt: Spark's own attempt numbers repeat across stages and restarts."""

_JOB = r"\d{17}-[0-9a-f]{12}"
_JOB_PATTERN = re.compile(_JOB)
_FILE_PATTERN = re.compile(rf"part-(\d{{5,9}})-({_JOB})-([0-9a-f]{{12}})-\d{{5,9}}(?:\.[A-Za-z0-9_.]+)?")


@dataclass(frozen=True, slots=True)
class FileOwner:
    """Whose file it is, as its name tells."""

    job: JobId
    task: int
    attempt: AttemptId


def new_job_id(clock: Clock, ids: Ids) -> JobId:
    """A job id that no other job has."""
    now = datetime.fromtimestamp(clock.now_s(), tz=timezone.utc)
    return JobId(f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}-{ids.token()}")


def new_attempt_id(ids: Ids) -> AttemptId:
    """An attempt id that no other attempt has."""
    return AttemptId(ids.token())


def is_job_id(text: str) -> bool:
    """Whether `text` has the form of a job id."""
    return _JOB_PATTERN.fullmatch(text) is not None


def file_name(owner: FileOwner, number: int, extension: str) -> str:
    """Base name of the `number`-th file of an attempt, e.g. ``part-00003-<job>-<attempt>-00000.snappy.parquet``."""
    return f"part-{owner.task:05d}-{owner.job}-{owner.attempt}-{number:05d}{extension}"


def file_owner(path: str) -> FileOwner | None:
    """Whose file `path` is, or None if Holdfast did not name it."""
    match = _FILE_PATTERN.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    return FileOwner(JobId(match[2]), int(match[1]), AttemptId(match[3]))
