"""Where `magic` keeps a job's records below the destination, until the job ends.

    __magic_job-<job>/job-<job>/00/task_<job>_m_000003.pendingset     what a task committed
    __magic_job-<job>/job-<job>/00/tasks/attempt_<job>_m_000003_<attempt>/__base/<path>
                                                                      an attempt's marker, its .pending beside it

That is where Hadoop's magic committer keeps them from 3.4 on, under the UUID of the job: its job commit finds what
tasks of ours have committed, and ours what its tasks have. ``00`` is the first attempt at the job, the only one.

Sources: paper 000, VI.A; paper 001, "Magic Committer"; HADOOP-18797 for the name with the job in it; what 3.5.0 does.
"""

from __future__ import annotations

from holdfast.commit.attempt_names import attempt_name, attempt_owner, task_name
from holdfast.commit.hadoop.magic_path import BASE, PENDINGSET, magic_dir
from holdfast.commit.ids import FileOwner, JobId

__all__ = ["attempt_dir", "attempts_dir", "magic_work_path", "path_owner", "pendingset_path", "pendingset_start"]


def _job_attempt_dir(job: JobId) -> str:
    return f"{magic_dir(job)}/job-{job}/00"


def attempts_dir(job: JobId) -> str:
    """The directories of attempts that have not committed."""
    return f"{_job_attempt_dir(job)}/tasks"


def attempt_dir(owner: FileOwner) -> str:
    """Everything of one attempt; gone when it has committed."""
    return f"{attempts_dir(owner.job)}/{attempt_name(owner)}"


def magic_work_path(owner: FileOwner) -> str:
    """The directory in which a running attempt writes through a file system, relative to the destination.

    A file ``a/b`` below it becomes ``a/b`` of the destination when the job commits. Put the destination's url before it
    and write with `holdfast.fs.MagicFileSystem`.
    """
    return f"{attempt_dir(owner)}/{BASE}"


def path_owner(path: str) -> FileOwner | None:
    """The attempt in whose directory `path` lies, or None."""
    directory, _, rest = path.partition("/tasks/")
    owner = attempt_owner(rest.partition("/")[0])
    return owner if owner is not None and directory == _job_attempt_dir(owner.job) else None


def pendingset_start(job: JobId) -> str:
    """What the paths of all pending sets of a job start with, and nothing that attempts write does."""
    return f"{_job_attempt_dir(job)}/task_"


def pendingset_path(job: JobId, task: int) -> str:
    """What a task committed. Attempts share it: the last one counts (HADOOP-17258)."""
    return f"{_job_attempt_dir(job)}/{task_name(job, task)}{PENDINGSET}"
