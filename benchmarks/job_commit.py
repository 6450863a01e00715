"""Compare the job commit with a copy-and-delete rename of the same files, on the same store with the same threads."""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.job_files import JobShape, check_files, commit_by_rename, prepare_job, put_temporary_files
from benchmarks.measure import Result, Say, run_in_turn
from holdfast.commit import CommitContext, CommitSettings
from holdfast.runtime import Environment, ThreadRunner
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import ObjectStore, Part
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.s3.store import S3Store
from tests.interceptors import Recorder, Throttled, ThrottleOptions

__all__ = ["PAPER_S3", "measure_embedded_s3", "measure_requests", "measure_throttled"]

_KIB = 1024
_MIB = 1024 * _KIB
_BUCKET = "bench"

PAPER_S3 = ThrottleOptions(request_s=0.05, copy_bytes_per_s=10e6)
"""Paper 000, section IX: 6-10 MB/s for a copy within S3 (here the faster end), 50 ms for a request."""


class _OneContent(MemoryStore):
    """A store in which all parts share one bytes object, so that copies cost neither memory nor time.

    A real server does not join parts while a completion waits, and 100 files of 32 MiB would fill 3 GB.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        assert data == self._content, "every file consists of one part"
        return super().upload_part(key, upload_id, number, self._content)


class _Destinations:
    """Runs each contender in a new directory, and times only the part that counts."""

    def __init__(self, store: ObjectStore, quick: ObjectStore, shape: JobShape, data: bytes, threads: int) -> None:
        self._store = store
        self._quick = quick
        self._shape = shape
        self._data = data
        self._runner = ThreadRunner(threads)

    def _contexts(self, prefix: str) -> tuple[CommitContext, CommitContext]:
        timed = CommitContext(
            store=self._store,
            prefix=prefix,
            url=f"bench/{prefix}",
            settings=CommitSettings(part_size_bytes=self._shape.file_bytes),
            environment=Environment(runner=self._runner),
        )
        return timed, replace(timed, store=self._quick)

    def holdfast(self, number: int) -> float:
        prefix = f"round-{number}/holdfast/"
        timed, untimed = self._contexts(prefix)
        job = prepare_job(untimed, self._shape, self._data)
        check_files(self._quick, prefix, JobShape(tasks=0, files_per_task=0, file_bytes=0))  # no file is visible yet
        started_s = time.perf_counter()
        job.commit(timed)
        return self._ended(prefix, started_s)

    def rename(self, number: int) -> float:
        return self._renamed(f"round-{number}/rename/", bulk_delete=False)

    def rename_bulk(self, number: int) -> float:
        return self._renamed(f"round-{number}/rename-bulk/", bulk_delete=True)

    def _renamed(self, prefix: str, *, bulk_delete: bool) -> float:
        timed, untimed = self._contexts(prefix)
        assert self._store.capabilities.copy
        put_temporary_files(untimed, self._shape, self._data)
        started_s = time.perf_counter()
        commit_by_rename(timed, bulk_delete=bulk_delete)
        return self._ended(prefix, started_s)

    def _ended(self, prefix: str, started_s: float) -> float:
        taken_s = time.perf_counter() - started_s
        check_files(self._quick, prefix, self._shape)
        return taken_s


def _compared(
    benchmark: str, title: str, target: float, shape: JobShape, threads: int, seconds: dict[str, list[float]]
) -> Result:
    result = Result(
        benchmark=benchmark,
        title=title,
        figure=0.0,
        figure_name="of the rename's time",
        target=target,
        seconds=seconds,
        settings={"tasks": shape.tasks, "files": shape.files, "file_bytes": shape.file_bytes, "threads": threads},
    )
    return result.with_figure(result.ratio_of("holdfast", "rename"))


def measure_embedded_s3(rounds: int, threads: int, say: Say, shape: JobShape | None = None) -> Result:
    """Compare both with many small files on a local server, where a copy costs little more than other requests."""
    shape = shape or JobShape(tasks=50, files_per_task=20, file_bytes=10 * _KIB)
    with SeaweedServer() as server:
        server.create_bucket(_BUCKET)
        store = S3Store(_BUCKET, server.options)
        try:
            destinations = _Destinations(store, store, shape, bytes(shape.file_bytes), threads)
            seconds = run_in_turn(
                {
                    "holdfast": destinations.holdfast,
                    "rename": destinations.rename,
                    "rename, bulk delete": destinations.rename_bulk,
                },
                rounds,
                say,
            )
        finally:
            store.close()
    title = f"job commit of {shape.files} files of {shape.file_bytes // _KIB} KiB, embedded S3 server"
    return _compared("commit-s3", title, 0.5, shape, threads, seconds)


def measure_throttled(
    rounds: int, threads: int, say: Say, shape: JobShape | None = None, throttle: ThrottleOptions = PAPER_S3
) -> Result:
    """Compare both with a few large files on a store with simulated latency. All files have the same content."""
    shape = shape or JobShape(tasks=10, files_per_task=10, file_bytes=32 * _MIB)
    content = bytes(shape.file_bytes)
    memory = _OneContent(content)
    slow = InterceptedStore(memory, Throttled(throttle))
    destinations = _Destinations(slow, memory, shape, content, threads)
    contenders = {"holdfast": destinations.holdfast, "rename": destinations.rename}
    seconds = run_in_turn(contenders, rounds, say, warm_ups=0)  # no warm-up needed: most of the time is waiting
    title = f"job commit of {shape.files} files of {shape.file_bytes // _MIB} MiB, store throttled to paper 000's S3"
    return _compared("commit-throttled", title, 0.05, shape, threads, seconds)


def measure_requests(threads: int, shape: JobShape | None = None) -> Result:
    """Count the requests of a job commit."""
    shape = shape or JobShape(tasks=200, files_per_task=5, file_bytes=10)
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(), recorded)
    ctx = CommitContext(store=store, prefix="t/", url="bench/t", environment=Environment(runner=ThreadRunner(threads)))
    job = prepare_job(ctx, shape, bytes(shape.file_bytes))
    recorded.clear()
    job.commit(ctx)
    check_files(store, "t/", shape)
    counts = recorded.counts()
    return Result(
        benchmark="requests",
        title=f"requests of a job commit: {shape.tasks} tasks x {shape.files_per_task} files",
        figure=sum(counts.values()) / shape.files,
        figure_name="requests per file",
        target=1.2,
        settings={"tasks": shape.tasks, "files": shape.files},
        details={operation.value: count for operation, count in counts.most_common()},
    )
