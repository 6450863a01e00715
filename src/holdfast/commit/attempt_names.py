"""Names as Hadoop and Spark give them: tasks, attempts, and files that two attempts at one task name alike."""

from __future__ import annotations

import re

from holdfast.commit.ids import AttemptId, FileOwner, JobId

__all__ = ["attempt_name", "attempt_owner", "file_job", "file_name", "task_name", "task_number"]

_JOB = r"\d{17}-[0-9a-f]{12}"
_TASK_PATTERN = re.compile(rf"task_({_JOB})_m_(\d{{6,9}})")
_ATTEMPT_PATTERN = re.compile(rf"attempt_({_JOB})_m_(\d{{6,9}})_([0-9a-f]{{12}})")
_FILE_PATTERN = re.compile(rf"part-\d{{5,9}}-({_JOB})-c\d{{3,9}}(?:\.[A-Za-z0-9_.]+)?")


def task_name(job: JobId, task: int) -> str:
    """Hadoop's ``TaskID``: ``task_<job>_m_000003``."""
    return f"task_{job}_m_{task:06d}"


def task_number(job: JobId, name: str) -> int | None:
    """The task of `job` that `name` names, or None."""
    match = _TASK_PATTERN.fullmatch(name)
    return int(match[2]) if match is not None and match[1] == job else None


def attempt_name(owner: FileOwner) -> str:
    """Hadoop's ``TaskAttemptID``, with random digits for the number: ``attempt_<job>_m_000003_<attempt>``."""
    return f"attempt_{owner.job}_m_{owner.task:06d}_{owner.attempt}"


def attempt_owner(name: str) -> FileOwner | None:
    """The attempt that `name` names, or None."""
    match = _ATTEMPT_PATTERN.fullmatch(name)
    return None if match is None else FileOwner(JobId(match[1]), int(match[2]), AttemptId(match[3]))


def file_name(owner: FileOwner, number: int, extension: str) -> str:
    """Base name of a task's `number`-th file, as Spark's: ``part-00003-<job>-c000.snappy.parquet``.

    Attempts at one task share the name: the later one's file replaces the earlier one's.
    """
    return f"part-{owner.task:05d}-{owner.job}-c{number:03d}{extension}"


def file_job(path: str) -> JobId | None:
    """The job that a file of `file_name` belongs to, or None."""
    match = _FILE_PATTERN.fullmatch(path.rpartition("/")[2])
    return None if match is None else JobId(match[1])
