"""Generate names that are never used twice: for jobs, for attempts, and for files.

Every generated file name contains the ids of its job and its attempt. So the name shows which job and attempt
a leftover file belongs to, and publishing or deleting the file again can never affect another file (C7, C10).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NewType

from holdfast.runtime import Clock, Ids

JobId = NewType("JobId", str)
"""UTC time in milliseconds and twelve random digits. Ids sort by start time, and are unique even within a second
(SPARK-33402).
"""

AttemptId = NewType("AttemptId", str)
"""Twelve random digits that the attempt itself draws, because Spark's attempt numbers repeat across stages and
restarts.
"""

_JOB = r"\d{17}-[0-9a-f]{12}"
_JOB_PATTERN = re.compile(_JOB)
_FILE_PATTERN = re.compile(rf"part-(\d{{5,9}})-({_JOB})-([0-9a-f]{{12}})-\d{{5,9}}(?:\.[A-Za-z0-9_.]+)?")


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The job, the task and the attempt that a file belongs to; `file_owner` parses them from its name."""

    job: JobId
    task: int
    attempt: AttemptId


def new_job_id(clock: Clock, ids: Ids) -> JobId:
    """Return a new, unique job id."""
    now = datetime.fromtimestamp(clock.now_s(), tz=timezone.utc)
    return JobId(f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}-{ids.token()}")


def new_attempt_id(ids: Ids) -> AttemptId:
    """Return a new, unique attempt id."""
    return AttemptId(ids.token())


def is_job_id(text: str) -> bool:
    """Check whether `text` has the format of a job id."""
    return _JOB_PATTERN.fullmatch(text) is not None


def file_name(owner: FileOwner, number: int, extension: str) -> str:
    """Return the base name of an attempt's file, such as ``part-00003-<job>-<attempt>-00000.snappy.parquet``."""
    return f"part-{owner.task:05d}-{owner.job}-{owner.attempt}-{number:05d}{extension}"


def file_owner(path: str) -> FileOwner | None:
    """Return the owner of the file at `path`, or None if Holdfast did not generate its name."""
    match = _FILE_PATTERN.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    return FileOwner(JobId(match[2]), int(match[1]), AttemptId(match[3]))


_ATTEMPT_PATTERN = re.compile(rf"attempt_({_JOB})_m_(\d{{6,9}})_([0-9a-f]{{12}})")
_SPARK_FILE = re.compile(rf"part-\d{{5,9}}-({_JOB})-c\d{{3,9}}(?:\.[A-Za-z0-9_.]+)?")


def make_hadoop_task_id(job: JobId, task: int) -> str:
    """Return Hadoop's ``TaskID``: ``task_<job>_m_000003``."""
    return f"task_{job}_m_{task:06d}"


def make_hadoop_attempt_id(owner: FileOwner) -> str:
    """Return Hadoop's ``TaskAttemptID``, numbered with random digits: ``attempt_<job>_m_000003_<attempt>``."""
    return f"attempt_{owner.job}_m_{owner.task:06d}_{owner.attempt}"


def parse_hadoop_attempt_id(name: str) -> FileOwner | None:
    """Parse an attempt's name; return None if it is not one."""
    match = _ATTEMPT_PATTERN.fullmatch(name)
    return None if match is None else FileOwner(JobId(match[1]), int(match[2]), AttemptId(match[3]))


def spark_file_name(owner: FileOwner, number: int, extension: str) -> str:
    """Return the name of a task's `number`-th file, in Spark's format: ``part-00003-<job>-c000.snappy.parquet``.

    All attempts of a task use the same name. A later attempt's file replaces an earlier one's.
    """
    return f"part-{owner.task:05d}-{owner.job}-c{number:03d}{extension}"


def job_in_file_name(path: str) -> JobId | None:
    """Parse a name that `spark_file_name` returned, and return the job id in it; None for any other name."""
    match = _SPARK_FILE.fullmatch(path.rpartition("/")[2])
    return None if match is None else JobId(match[1])
