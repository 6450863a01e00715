"""Run one job through one committer in its own directory and measure each phase."""

from __future__ import annotations

import collections
import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from benchmarks.job_files import JobShape, write_files
from holdfast.commit import CommitContext, Committer, JobRecord, Place, SaveMode, TaskCommit
from holdfast.commit.context import StagingPlaces
from holdfast.commit.layout import iter_visible
from holdfast.runtime import Environment, ThreadRunner
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import Capabilities, ObjectStore
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from holdfast.stores.s3.store import S3Store
from tests.interceptors import Throttled, ThrottleOptions

__all__ = ["FAR_RENAME", "FAR_UPLOAD", "SERVER", "CommitterRun", "Shape", "World", "run_committer"]

T = TypeVar("T")

_BUCKET = "bench"
_TASK_SLOTS = 16


@dataclass(frozen=True, kw_only=True)
class Shape(JobShape):
    """The files of a job and the number of threads of its driver."""

    threads: int


@dataclass(frozen=True, kw_only=True)
class World:
    """A store to run on.

    Attributes:
        name: the name in tables and plots.
        rename: whether the in-memory store supports rename.
        server: whether to use an S3 server on this machine instead of the in-memory store.
        request_s: the latency of the in-memory store.
    """

    name: str
    rename: bool = False
    server: bool = False
    request_s: float = 0.05

    @contextlib.contextmanager
    def opened(self) -> Iterator[ObjectStore]:
        """Open the store, and run its server, if any, until the end."""
        if not self.server:
            options = ThrottleOptions(request_s=self.request_s, copy_bytes_per_s=10e6)
            yield InterceptedStore(MemoryStore(rename=self.rename), Throttled(options))
            return
        with SeaweedServer() as server:
            server.create_bucket(_BUCKET)
            store = S3Store(_BUCKET, server.options)
            try:
                yield store
            finally:
                store.close()

    def fits(self, committer: Committer, capabilities: Capabilities) -> bool:
        """Check whether to run the committer here: a store with rename is only for committers that rename."""
        renames = any("rename" in need.what for need in committer.needs)
        if self.rename and not renames:
            return False
        return not committer.explain_misfit(capabilities)


FAR_UPLOAD = World(name="object store, 50 ms")
FAR_RENAME = World(name="file system, 50 ms", rename=True)
SERVER = World(name="local S3 server", server=True)


class _Tally:
    """An interceptor that counts the requests of a phase by kind, and the bytes that the store copied."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: collections.Counter[str] = collections.Counter()
        self.copied_bytes = 0

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        with self._lock:
            if call.operation not in (StoreOperation.FILE_WRITE, StoreOperation.FILE_DISCARD):
                self.requests[call.operation.value] += 1
            if call.operation is StoreOperation.COPY:
                self.copied_bytes += call.size_bytes
        return proceed()


@dataclass(frozen=True, kw_only=True)
class CommitterRun:
    """The cost of one committer in one environment.

    Attributes:
        committer: the committer's name.
        world: the name of the environment.
        task_commit_s: median duration of a task commit, after the last byte was written.
        job_commit_s: duration of the job commit in the driver, including clean-up.
        cleanup_s: duration of the clean-up.
        task_requests, job_requests: requests by kind, of all tasks and of the job commit.
        copied_bytes: bytes that the store copied, in tasks and job commit.
    """

    committer: str
    world: str
    task_commit_s: float
    job_commit_s: float
    cleanup_s: float
    task_requests: Mapping[str, int] = field(default_factory=dict)
    job_requests: Mapping[str, int] = field(default_factory=dict)
    copied_bytes: int = 0

    def job_requests_per_file(self, shape: Shape) -> float:
        return sum(self.job_requests.values()) / shape.files


def run_committer(committer: Committer, world: World, store: ObjectStore, shape: Shape) -> CommitterRun:
    """Run a whole job, and check that exactly its files are visible afterwards."""
    committer = replace(committer, needs=())  # `World.fits` has decided
    tasks, driver = _Tally(), _Tally()
    home = f"{committer.name}/"
    context = CommitContext(
        store=store,
        prefix=home,
        url=f"memory://bench/{home}",
        staging=StagingPlaces(scratch=_place("scratch"), shared=_place("shared")),
        environment=Environment(runner=ThreadRunner(shape.threads)),
    )
    in_task = _over(context, tasks)
    job = committer.setup_job(context, SaveMode.APPEND, {})
    assert job is not None  # mode append always writes
    seconds: list[float] = []

    def run_task(task: int) -> TaskCommit:
        return _run_task(committer, in_task, job, task, shape, seconds)

    commits = list(ThreadRunner(_TASK_SLOTS).map(run_task, range(shape.tasks)))
    started_s = time.perf_counter()
    outcome = committer.commit_job(_over(context, driver), job, commits, shape.tasks)
    job_commit_s = time.perf_counter() - started_s
    found = sum(1 for _ in iter_visible(store, home))
    assert found == shape.files, f"{committer.name}: {found} files are visible, but {shape.files} were written"
    cleanup = outcome.statistics.durations.get("job_stage_cleanup")
    return CommitterRun(
        committer=committer.name,
        world=world.name,
        task_commit_s=statistics.median(seconds),
        job_commit_s=job_commit_s,
        cleanup_s=cleanup.total_ms / 1000 if cleanup else 0.0,
        task_requests=dict(tasks.requests),
        job_requests=dict(driver.requests),
        copied_bytes=tasks.copied_bytes + driver.copied_bytes,
    )


def _run_task(
    committer: Committer, ctx: CommitContext, job: JobRecord, task: int, shape: Shape, seconds: list[float]
) -> TaskCommit:
    data = bytes(shape.file_bytes)
    with committer.setup_task(ctx, job, task) as attempt:
        write_files(attempt, shape, data)
        started_s = time.perf_counter()
        commit = attempt.commit()
        seconds.append(time.perf_counter() - started_s)
        return commit


def _over(ctx: CommitContext, tally: _Tally) -> CommitContext:
    return replace(ctx, store=InterceptedStore(ctx.store, tally))


def _place(name: str) -> Place:
    # A local disk and a cluster's file system are much faster than the store, so they are not throttled.
    return Place(store=MemoryStore(rename=True), prefix=f"{name}/", url=f"memory://bench/{name}")
