"""Where `manifest` keeps what, relative to the destination (paper 002, "Directory Structure").

``_temporary/manifest_<job>/``
└── ``00/``                                    the attempt at the job
    ├── ``job.json``                           ours: the job is not over while it is there
    ├── ``manifests/<task>-manifest.json``     which files to rename; one a task
    │              ``<attempt>-manifest.json.tmp``
    └── ``tasks/<attempt>/…``                  the attempts' files, where they will be below the destination
"""

from __future__ import annotations

from holdfast.commit.attempt_names import attempt_name, task_name
from holdfast.commit.hadoop import manifest_job_dir
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.records import JobRecord

__all__ = [
    "MANIFEST_SUFFIX",
    "TEMPORARY",
    "attempt_dir",
    "attempt_manifest",
    "job_attempt_dir",
    "job_dir",
    "job_mark",
    "manifests_dir",
    "success_draft",
    "task_manifest",
    "tasks_dir",
]

TEMPORARY = "_temporary"
"""Shared with other jobs and committers: nothing but a job's own directory is ever removed in it (C7)."""

MANIFEST_SUFFIX = "-manifest.json"
"""Ends the name of every committed task's manifest."""


def job_dir(job: JobId) -> str:
    """Everything of a job, all attempts at it."""
    return manifest_job_dir(job).rstrip("/")


def job_attempt_dir(job: JobRecord) -> str:
    """Everything of one attempt at a job."""
    return f"{job_dir(job.job)}/{job.job_attempt:02d}"


def job_mark(job: JobRecord) -> str:
    """Stands for Hadoop's directory of the job's attempt: made first, and gone when the job is over."""
    return f"{job_attempt_dir(job)}/job.json"


def manifests_dir(job: JobRecord) -> str:
    """What committed tasks report."""
    return f"{job_attempt_dir(job)}/manifests"


def tasks_dir(job: JobRecord) -> str:
    """Directories of all task attempts."""
    return f"{job_attempt_dir(job)}/tasks"


def attempt_dir(job: JobRecord, owner: FileOwner) -> str:
    """Where one task attempt, and nobody else, writes."""
    return f"{tasks_dir(job)}/{attempt_name(owner)}"


def task_manifest(job: JobRecord, task: int) -> str:
    """What the task's committed attempt wrote: whoever renames last to this name is the one."""
    return f"{manifests_dir(job)}/{task_name(job.job, task)}{MANIFEST_SUFFIX}"


def attempt_manifest(job: JobRecord, owner: FileOwner) -> str:
    """The same, while it is being saved."""
    return f"{manifests_dir(job)}/{attempt_name(owner)}{MANIFEST_SUFFIX}.tmp"


def success_draft(job: JobRecord) -> str:
    """``_SUCCESS`` while it is being saved."""
    return f"{job_attempt_dir(job)}/_SUCCESS.tmp"
