"""Provide a store that generates its contents, so that a million files need only a few bytes each.

With it, a benchmark measures the commit itself. An in-memory store would need hundreds of bytes per object and shift a
list of a million keys at each change. A real store would take hours. Records (log, job records, lists) are stored as
they are. The files of a job and the manifests of its tasks are computed from their numbers.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import TaskCommit, layout
from holdfast.commit.codec import sha256_hex
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_name
from holdfast.commit.records import FileEntry, ManifestRef, Totals
from holdfast.commit.two_phase.records import TaskManifest, encode_manifest
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.stores.base import (
    Capabilities,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    Support,
    UploadInfo,
    UploadPage,
)
from holdfast.stores.memory import MemoryStore

__all__ = ["GeneratedFiles", "GeneratedStore"]

_PENDING, _VISIBLE, _GONE = 0, 1, 2
_SIZE = 7
_ETAG = "0123456789abcdef0123456789abcdef"
_UPLOADS_PER_PAGE = 1000


@dataclass(frozen=True)
class GeneratedFiles:
    """The output of one job in a destination at the store's root: each task writes the same number of files.

    Attributes:
        job: the id of the job.
        tasks: the number of tasks.
        files_per_task: the number of files of each task.
        partitions: the number of directories, ``p=00000`` etc., over which each task's files are spread; 0 for none.
        states: the state of each file by number; numbers follow the order of keys.
        manifests: the state of each task's manifest.
    """

    job: JobId
    tasks: int
    files_per_task: int
    partitions: int = 0
    states: bytearray = field(default_factory=bytearray)
    manifests: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        assert self.partitions in (0, self.files_per_task), "each task has one file in each partition if there are any"
        assert self.tasks <= 100_000, "with more tasks, names do not sort by task number"
        self.states.extend(bytes([_PENDING]) * self.files)
        self.manifests.extend(bytes([_VISIBLE]) * self.tasks)

    @property
    def files(self) -> int:
        return self.tasks * self.files_per_task

    # --- names --------------------------------------------------------------------------------------------------------
    def _owner(self, task: int) -> FileOwner:
        return FileOwner(self.job, task, AttemptId(f"{task:012x}"))

    def path(self, number: int) -> str:
        """Return the path of the file with this number in the order of keys."""
        if self.partitions:
            partition, task = divmod(number, self.tasks)
            return f"p={partition:05d}/{file_name(self._owner(task), partition, '.parquet')}"
        task, file = divmod(number, self.files_per_task)
        return file_name(self._owner(task), file, ".parquet")

    def number_of(self, key: str) -> int | None:
        """Return the number of the file with this key, or None."""
        _, _, name = key.rpartition("/")
        words = name.partition(".")[0].split("-")
        if len(words) != 6 or words[0] != "part" or f"{words[2]}-{words[3]}" != self.job:
            return None
        task, file = int(words[1]), int(words[5])
        return file * self.tasks + task if self.partitions else task * self.files_per_task + file

    def manifest_key(self, task: int) -> str:
        return layout.manifest_path(self.job, task, self._owner(task).attempt)

    def task_of(self, key: str) -> int | None:
        """Return the task whose manifest has this key, or None."""
        before, found, name = key.partition(f"{layout.job_dir(self.job)}attempts/")
        return int(name.partition("-")[0]) if found and not before and name.endswith(".jsonl") else None

    # --- records ------------------------------------------------------------------------------------------------------
    def manifest(self, task: int) -> bytes:
        """Return the task's manifest."""
        numbers = (
            [file * self.tasks + task for file in range(self.partitions)]
            if self.partitions
            else range(task * self.files_per_task, (task + 1) * self.files_per_task)
        )
        files = tuple(
            FileEntry(
                path=self.path(number), size_bytes=_SIZE, rows=1, upload_id=f"{number:032x}", parts=((_ETAG, _SIZE),)
            )
            for number in numbers
        )
        return encode_manifest(TaskManifest(job=self.job, task=task, attempt=self._owner(task).attempt, files=files))

    def message(self, task: int) -> TaskCommit:
        """Return the task's message to the driver."""
        totals = Totals(files=self.files_per_task, size_bytes=_SIZE * self.files_per_task, rows=self.files_per_task)
        ref = ManifestRef(key=self.manifest_key(task), sha256=sha256_hex(self.manifest(task)), task=task, totals=totals)
        return TaskCommit(job=self.job, task=task, attempt=self._owner(task).attempt, totals=totals, ref=ref)

    def visible(self) -> int:
        """Return the number of visible files."""
        return self.states.count(_VISIBLE)


class GeneratedStore:
    """A `MultipartStore` of `GeneratedFiles` and of records in memory."""

    def __init__(self, *outputs: GeneratedFiles) -> None:
        self.outputs = list(outputs)
        self.records = MemoryStore()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(conditional_put=Support.YES, multipart=MultipartLimits(), lists_uploads=Support.YES)

    @property
    def retries(self) -> int:
        return 0

    def _file(self, key: str) -> tuple[GeneratedFiles, int] | None:
        return next(((one, n) for one in self.outputs if (n := one.number_of(key)) is not None), None)

    def _manifest(self, key: str) -> tuple[GeneratedFiles, int] | None:
        return next(((one, n) for one in self.outputs if (n := one.task_of(key)) is not None), None)

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        assert self._file(key) is None and self._manifest(key) is None, key
        return self.records.put(key, data, mode, metadata)

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        found = self._manifest(key)
        if found is None:
            return self.records.get(key, start, length, etag)
        output, task = found
        if output.manifests[task] != _VISIBLE:
            raise NotFoundError("no such object: check the key", key=key)
        return output.manifest(task)

    def head(self, key: str) -> ObjectInfo:
        found = self._file(key)
        if found is None:
            return self.records.head(key)
        output, number = found
        if output.states[number] != _VISIBLE:
            raise NotFoundError("no such object: check the key", key=key)
        return ObjectInfo(key, _SIZE, _ETAG)

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        after = start_after if token is None else token
        records = self.records.list_page(prefix, after, max_keys + 1).objects
        made = [self._made(output, prefix, after) for output in self.outputs]
        merged = heapq.merge(records, *made, key=lambda info: info.key)
        found = list(itertools.islice(merged, max_keys + 1))
        page = found[:max_keys]
        return ObjectPage(page, page[-1].key if len(found) > max_keys else None)

    def _made(self, output: GeneratedFiles, prefix: str, after: str) -> Iterator[ObjectInfo]:
        below = layout.job_dir(output.job)
        if prefix.startswith(below) or below.startswith(prefix):
            for task in range(_first_above(output.manifest_key, output.tasks, after), output.tasks):
                if output.manifests[task] == _VISIBLE and (key := output.manifest_key(task)).startswith(prefix):
                    yield ObjectInfo(key, 1, _ETAG)
        if prefix.startswith(layout.HOME):
            return
        number = output.states.find(_VISIBLE, _first_above(output.path, output.files, after))
        while number >= 0:
            if (key := output.path(number)).startswith(prefix):
                yield ObjectInfo(key, _SIZE, _ETAG)
            number = output.states.find(_VISIBLE, number + 1)

    def delete(self, key: str) -> None:
        if found := self._manifest(key):
            found[0].manifests[found[1]] = _GONE
        elif found := self._file(key):
            found[0].states[found[1]] = _GONE
        else:
            self.records.delete(key)

    def delete_many(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        raise InvalidRequestError("this store only generates files: do not upload any", key=key)

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        raise InvalidRequestError("this store only generates files: do not upload any", key=key)

    def _pending(self, key: str, upload_id: str) -> tuple[GeneratedFiles, int]:
        found = self._file(key)
        if found is None or found[0].states[found[1]] != _PENDING or int(upload_id, 16) != found[1]:
            raise NotFoundError(
                "no such upload: it was completed, aborted or never created", key=key, upload_id=upload_id
            )
        return found

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        output, number = self._pending(key, upload_id)
        assert [part.etag for part in parts] == [_ETAG]
        output.states[number] = _VISIBLE
        return ObjectInfo(key, _SIZE, _ETAG)

    def abort_upload(self, key: str, upload_id: str) -> None:
        try:
            output, number = self._pending(key, upload_id)
        except NotFoundError:
            return
        output.states[number] = _GONE

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        after = "" if marker is None else marker[0]
        made = [self._made_uploads(output, prefix, after) for output in self.outputs]
        found = list(itertools.islice(heapq.merge(*made, key=lambda upload: upload.key), _UPLOADS_PER_PAGE + 1))
        page = found[:_UPLOADS_PER_PAGE]
        more = len(found) > _UPLOADS_PER_PAGE
        return UploadPage(page, (page[-1].key, page[-1].upload_id) if more else None)

    @staticmethod
    def _made_uploads(output: GeneratedFiles, prefix: str, after: str) -> Iterator[UploadInfo]:
        number = output.states.find(_PENDING, _first_above(output.path, output.files, after))
        while number >= 0:
            if (key := output.path(number)).startswith(prefix):
                yield UploadInfo(key, f"{number:032x}")
            number = output.states.find(_PENDING, number + 1)


def _first_above(name: Callable[[int], str], count: int, after: str) -> int:
    """Return the least number whose name is greater than `after`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if name(middle) > after:
            high = middle
        else:
            low = middle + 1
    return low
