"""List and load the manifests of a job's tasks in bounded memory.

Hadoop spills the entries of all manifests to a local file between loading and renaming (MAPREDUCE-7435). Here each
manifest is read once, and the data that the renames need stays in memory, compressed to about ten bytes per file.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.files import file_info, list_files, read_listed
from holdfast.commit.hadoop.manifest.format import (
    MAX_MANIFEST_BYTES,
    DirStatus,
    IntermediateManifest,
    ManifestFile,
    decode_intermediate_manifest,
    manifest_job_dir,
)
from holdfast.commit.ids import FileOwner, JobId, attempt_name, task_name
from holdfast.commit.records import JobRecord, TaskCommit, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedJob:
    """The merged content of a job's manifests.

    Attributes:
        tasks: names of the committed tasks, which are the tasks that have a manifest.
        directories: the directories that must exist before the renames, and what the tasks found at their paths.
        partitions: directories that receive files (``""`` for the destination itself).
        statistics: the merged statistics of all tasks.
        names: the targets of the first hundred files.
        packed: the compressed list of files to rename, one chunk per task.
        marks: digests of the files' targets, which `is_target` looks up.
    """

    tasks: frozenset[str]
    totals: Totals
    directories: Mapping[str, DirStatus]
    partitions: frozenset[str]
    statistics: Statistics
    names: tuple[str, ...]
    packed: Sequence[bytes]
    marks: Collection[bytes]

    def files(self) -> Iterator[ManifestFile]:
        """Iterate over every file, task by task; decompress chunks on demand."""
        for chunk in self.packed:
            for source, dest, size_bytes, etag in json.loads(zlib.decompress(chunk)):
                yield ManifestFile(source=source, dest=dest, size_bytes=size_bytes, etag=etag)

    def is_target(self, path: str) -> bool:
        """Check whether `path` is the target of a file of the job."""
        return _mark(path) in self.marks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """The part of one manifest that stays in memory."""

    task: str
    totals: Totals
    directories: Mapping[str, DirStatus]
    partitions: frozenset[str]
    statistics: Statistics
    names: tuple[str, ...]
    packed: bytes
    marks: Sequence[bytes]


def _mark(path: str) -> bytes:
    return hashlib.blake2b(path.encode(), digest_size=16).digest()  # 100,000 long paths would fill the memory


def require_open(ctx: CommitContext, job: JobRecord) -> None:
    """Raise an error if the job is over.

    Raises:
        NotFoundError: the job was already committed or aborted (scenarios 8, 10), or the destination was renamed or
            deleted.
    """
    if file_info(ctx, job_mark(job)) is None:
        raise NotFoundError(
            "the job's directory does not exist, because the job was committed or aborted before, or the destination "
            "was renamed or deleted: unless files of it are visible, run it again",
            url=ctx.url,
            job=job.job,
        )


def check_reported(job: JobRecord, loaded: LoadedJob, commits: Sequence[TaskCommit]) -> None:
    """Refuse to commit if the manifest of a task that has reported is missing (C1). Do not check the reported counts.

    Raises:
        NotFoundError: a manifest was deleted.
    """
    missing = [commit.task for commit in commits if task_name(job.job, commit.task) not in loaded.tasks]
    if missing:
        raise NotFoundError(
            "manifests of committed tasks do not exist: run the job again", job=job.job, missing=missing[:5]
        )


def load_manifests(ctx: CommitContext, job: JobRecord) -> LoadedJob:
    """Load every manifest in the job's directory. A task counts if it has a manifest there, no matter who wrote it.

    Raises:
        CorruptDataError: a manifest is not one that a task of this job would write.
        InvalidRequestError: two files have the same target (paper 002, "Benefits": the preflight check).
    """
    prefix = f"{manifests_dir(job)}/"
    listed = [(path, info) for path, info in list_files(ctx, manifests_dir(job)) if path.endswith(MANIFEST_SUFFIX)]
    listed = [entry for entry in listed if "/" not in entry[0][len(prefix) :]]  # like Hadoop, skip subdirectories
    tasks: set[str] = set()
    packed: list[bytes] = []
    directories: dict[str, DirStatus] = {}
    partitions: set[str] = set()
    marks: set[bytes] = set()
    names: list[str] = []
    statistics, totals = NO_STATISTICS, Totals()
    for done, part in enumerate(ctx.runner.map(lambda entry: _load(ctx, job, *entry), listed), start=1):
        for path, status in part.directories.items():
            directories[path] = _merged(directories.get(path), status)
        partitions |= part.partitions
        before = len(marks)
        marks.update(part.marks)
        if len(marks) != before + len(part.marks):
            raise InvalidRequestError(
                "two files of the job have the same target: put the partition's number into the names",
                job=job.job,
                task=part.task,
            )
        names += part.names[: FILENAME_LIMIT - len(names)]
        statistics += part.statistics
        totals += part.totals
        tasks.add(part.task)
        packed.append(part.packed)
        ctx.progress("manifests", done, len(listed))
    return LoadedJob(
        tasks=frozenset(tasks),
        totals=totals,
        directories=directories,
        partitions=frozenset(partitions),
        statistics=statistics,
        names=tuple(names),
        packed=packed,
        marks=marks,
    )


def _merged(known: DirStatus | None, status: DirStatus) -> DirStatus:
    """Merge the statuses that two tasks recorded for one directory path.

    A file, which must be deleted, takes precedence over every other status; then an existing directory.
    """
    order = (DirStatus.FILE, DirStatus.DIR, DirStatus.CREATED_DIR, DirStatus.UNKNOWN, DirStatus.NOT_FOUND)
    return status if known is None else min(known, status, key=order.index)


def _load(ctx: CommitContext, job: JobRecord, path: str, info: ObjectInfo) -> _Loaded:
    if info.size_bytes > MAX_MANIFEST_BYTES:
        raise CorruptDataError("a manifest is too long for one task and is left as it is: report it", key=path)
    manifest = decode_intermediate_manifest(path, read_listed(ctx, path, "manifest"), url=ctx.url, job_id=job.job)
    if path != f"{manifests_dir(job)}/{manifest.task_id}{MANIFEST_SUFFIX}":
        raise CorruptDataError("a manifest belongs to another task and is left as it is: report it", key=path)
    return _packed(manifest)


def _packed(manifest: IntermediateManifest) -> _Loaded:
    files = manifest.files
    rows = [(file.source, file.dest, file.size_bytes, file.etag) for file in files]
    return _Loaded(
        task=manifest.task_id,
        totals=Totals(
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            rows=sum(file.rows for file in files),
        ),
        directories={directory.path: directory.status for directory in manifest.directories},
        partitions=frozenset(file.dest.rpartition("/")[0] for file in files),
        statistics=manifest.statistics,
        names=tuple(file.dest for file in files[:FILENAME_LIMIT]),
        packed=zlib.compress(json.dumps(rows).encode(), level=1),
        marks=[_mark(file.dest) for file in files],
    )


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
