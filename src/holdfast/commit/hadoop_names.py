"""Format and parse Hadoop's and Spark's names of tasks, task attempts and files."""

from __future__ import annotations

import re

from holdfast.commit.ids import AttemptId, FileOwner, JobId

_JOB = r"\d{17}-[0-9a-f]{12}"
_TASK_PATTERN = re.compile(rf"task_({_JOB})_m_(\d{{6,9}})")
_ATTEMPT_PATTERN = re.compile(rf"attempt_({_JOB})_m_(\d{{6,9}})_([0-9a-f]{{12}})")
_FILE_PATTERN = re.compile(rf"part-\d{{5,9}}-({_JOB})-c\d{{3,9}}(?:\.[A-Za-z0-9_.]+)?")


def task_name(job: JobId, task: int) -> str:
    """Return Hadoop's ``TaskID``: ``task_<job>_m_000003``."""
    return f"task_{job}_m_{task:06d}"


def task_number(job: JobId, name: str) -> int | None:
    """Parse the name of a task of `job`, and return the task's number; None for any other name."""
    match = _TASK_PATTERN.fullmatch(name)
    return int(match[2]) if match is not None and match[1] == job else None


def attempt_name(owner: FileOwner) -> str:
    """Return Hadoop's ``TaskAttemptID``, numbered with random digits: ``attempt_<job>_m_000003_<attempt>``."""
    return f"attempt_{owner.job}_m_{owner.task:06d}_{owner.attempt}"


def attempt_owner(name: str) -> FileOwner | None:
    """Parse an attempt's name; return None if it is not one."""
    match = _ATTEMPT_PATTERN.fullmatch(name)
    return None if match is None else FileOwner(JobId(match[1]), int(match[2]), AttemptId(match[3]))


def file_name(owner: FileOwner, number: int, extension: str) -> str:
    """Return the name of a task's `number`-th file, in Spark's format: ``part-00003-<job>-c000.snappy.parquet``.

    All attempts of a task use the same name. A later attempt's file replaces an earlier one's.
    """
    return f"part-{owner.task:05d}-{owner.job}-c{number:03d}{extension}"


def file_job(path: str) -> JobId | None:
    """Parse a name that `file_name` returned, and return the job id in it; None for any other name."""
    match = _FILE_PATTERN.fullmatch(path.rpartition("/")[2])
    return None if match is None else JobId(match[1])
