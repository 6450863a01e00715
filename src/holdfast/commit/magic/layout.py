"""Name the paths of a `magic` job's records below the destination. The records exist until the job ends.

    __magic_job-<job>/job-<job>/00/task_<job>_m_000003.pendingset     what a task committed
    __magic_job-<job>/job-<job>/00/tasks/attempt_<job>_m_000003_<attempt>/__base/<path>
                                                                      an attempt's marker, with its .pending next to it

Hadoop's magic committer has used the same paths since 3.4, under the UUID of the job. So Hadoop's job commit finds the
pending sets of Holdfast's tasks, and Holdfast's job commit finds those of Hadoop's tasks. ``00`` is the number of the
job attempt; a job has only one attempt.

Sources: paper 000, VI.A; paper 001, "Magic Committer"; HADOOP-18797 for the name with the job in it; observed behavior
of Hadoop 3.5.0.
"""

from __future__ import annotations

from holdfast.commit.hadoop.magic_path import BASE, PENDINGSET, magic_dir
from holdfast.commit.hadoop_names import attempt_name, attempt_owner, task_name
from holdfast.commit.ids import FileOwner, JobId


def _job_attempt_dir(job: JobId) -> str:
    return f"{magic_dir(job)}/job-{job}/00"


def attempts_dir(job: JobId) -> str:
    """Return the directory of all attempts that have not committed."""
    return f"{_job_attempt_dir(job)}/tasks"


def attempt_dir(owner: FileOwner) -> str:
    """Return the directory of one attempt. It is deleted when the attempt has committed."""
    return f"{attempts_dir(owner.job)}/{attempt_name(owner)}"


def magic_work_path(owner: FileOwner) -> str:
    """Return the directory in which a running attempt writes through a file system, relative to the destination.

    A file ``a/b`` below this directory becomes ``a/b`` of the destination when the job commits. Append the directory to
    the destination's URL, and write with `holdfast.fs.MagicFileSystem`.
    """
    return f"{attempt_dir(owner)}/{BASE}"


def path_owner(path: str) -> FileOwner | None:
    """Return the attempt whose directory contains `path`, or None."""
    directory, _, rest = path.partition("/tasks/")
    owner = attempt_owner(rest.partition("/")[0])
    return owner if owner is not None and directory == _job_attempt_dir(owner.job) else None


def pendingset_start(job: JobId) -> str:
    """Return the prefix of the paths of all of a job's pending sets. Nothing else has a path with this prefix."""
    return f"{_job_attempt_dir(job)}/task_"


def pendingset_path(job: JobId, task: int) -> str:
    """Return the path of a task's pending set. The task's attempts share it; the last writer wins (HADOOP-17258)."""
    return f"{_job_attempt_dir(job)}/{task_name(job, task)}{PENDINGSET}"
