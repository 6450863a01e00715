"""Name the paths of the committer `manifest`, relative to the destination (paper 002, "Directory Structure").

``_temporary/manifest_<job>/``
└── ``00/``                                    the attempt at the job
    ├── ``job.json``                           Holdfast's own: while it exists, the job is not over
    ├── ``manifests/<task>-manifest.json``     which files to rename; one per task
    │              ``<attempt>-manifest.json.tmp``
    └── ``tasks/<attempt>/…``                  the attempts' files, under their final paths
"""

from __future__ import annotations

from holdfast.commit.hadoop import manifest_job_dir
from holdfast.commit.hadoop_names import attempt_name, task_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.records import JobRecord

TEMPORARY = "_temporary"
"""A directory shared with other jobs and committers: in it, a job deletes only its own directory (C7)."""

MANIFEST_SUFFIX = "-manifest.json"
"""The suffix of the file names of committed tasks' manifests."""


def job_dir(job: JobId) -> str:
    """Return the directory of a job, which contains all attempts at the job."""
    return manifest_job_dir(job).rstrip("/")


def job_attempt_dir(job: JobRecord) -> str:
    """Return the directory of one attempt at a job."""
    return f"{job_dir(job.job)}/{job.job_attempt:02d}"


def job_mark(job: JobRecord) -> str:
    """Return the path of the job's record, which takes the place of Hadoop's job attempt directory."""
    return f"{job_attempt_dir(job)}/job.json"


def manifests_dir(job: JobRecord) -> str:
    """Return the directory of the committed tasks' manifests."""
    return f"{job_attempt_dir(job)}/manifests"


def tasks_dir(job: JobRecord) -> str:
    """Return the directory that contains the directories of all task attempts."""
    return f"{job_attempt_dir(job)}/tasks"


def attempt_dir(job: JobRecord, owner: FileOwner) -> str:
    """Return the directory in which only this task attempt writes."""
    return f"{tasks_dir(job)}/{attempt_name(owner)}"


def task_manifest(job: JobRecord, task: int) -> str:
    """Return the path of the task's manifest. The last attempt that renames its manifest to this path wins."""
    return f"{manifests_dir(job)}/{task_name(job.job, task)}{MANIFEST_SUFFIX}"


def attempt_manifest(job: JobRecord, owner: FileOwner) -> str:
    """Return the path of an attempt's manifest while it is being saved."""
    return f"{manifests_dir(job)}/{attempt_name(owner)}{MANIFEST_SUFFIX}.tmp"


def success_draft(job: JobRecord) -> str:
    """Return the path of ``_SUCCESS`` while it is being saved."""
    return f"{job_attempt_dir(job)}/_SUCCESS.tmp"
