"""Run whole jobs with any committer, on the kind of store that it is made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from holdfast.commit import COMMITTERS, CommitContext, CommitSettings, Committer, JobOutcome, JobRecord, Place, SaveMode
from holdfast.commit.context import StagingPlaces
from holdfast.commit.layout import iter_visible
from holdfast.commit.records import TaskCommit
from holdfast.runtime import Environment, Runner, SerialRunner
from holdfast.stores.base import MultipartLimits, ObjectStore, iter_objects, iter_uploads
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock

RENAMING = ("manifest", "file-v1", "file-v2")
SAFE = ("two_phase", "magic", "staging-directory", "staging-partitioned", "manifest", "file-v1")
CONCURRENT = tuple(name for name in SAFE if name != "file-v1")  # file-v1 has only one `_temporary`

__all__ = ["CONCURRENT", "RENAMING", "SAFE", "Bucket", "with_shared"]


@dataclass
class Bucket:
    """A store for one committer, and everything else that its jobs need.

    Args:
        committer: its name.
        part_bytes: minimum and actual size of a part.
        known: the committers among which it is.
    """

    committer: str
    part_bytes: int = 4
    runner: Runner = field(default_factory=SerialRunner)
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    ids: CountingIds = field(default_factory=CountingIds)
    known: Mapping[str, Committer] = field(default_factory=lambda: COMMITTERS)

    def __post_init__(self) -> None:
        limits = MultipartLimits(min_part_size_bytes=self.part_bytes)
        self.store = MemoryStore(limits=limits, rename=self.committer in RENAMING, clock=self.clock, ids=self.ids)
        self.scratch = MemoryStore(rename=True, clock=self.clock, ids=self.ids)
        self.shared = MemoryStore(rename=True, clock=self.clock, ids=self.ids)

    @property
    def value(self) -> Committer:
        return self.known[self.committer]

    def context(
        self,
        home: str = "out put/dataset1/",
        *,
        store: ObjectStore | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        settings: CommitSettings | None = None,
    ) -> CommitContext:
        return CommitContext(
            store=store or self.store,
            prefix=home,
            url=f"memory://bucket/{home}",
            staging=StagingPlaces(
                scratch=Place(store=self.scratch, prefix="", url="memory://scratch"),
                shared=Place(store=self.shared, prefix="", url="memory://shared"),
            ),
            settings=settings or CommitSettings(part_size_bytes=self.part_bytes),
            progress=progress or (lambda stage, done, total: None),
            environment=Environment(clock=self.clock, ids=self.ids, runner=self.runner),
        )

    def start(self, ctx: CommitContext, mode: SaveMode = SaveMode.APPEND) -> JobRecord:
        job = self.value.setup_job(ctx, mode, {})
        assert job is not None
        return job

    def run_task(self, ctx: CommitContext, job: JobRecord, task: int, contents: list[bytes]) -> TaskCommit:
        """Run an attempt that writes one file per content, each into the partition of its number."""
        with self.value.setup_task(ctx, job, task) as attempt:
            for number, content in enumerate(contents):
                path = f"day={number}/{attempt.file_name('.txt')}"
                sink = attempt.open(path)
                sink.write(content)
                sink.close()
                attempt.record_rows(path, 1)
            return attempt.commit()

    def commit(self, ctx: CommitContext, job: JobRecord, commits: list[TaskCommit]) -> JobOutcome:
        return self.value.commit_job(ctx, job, commits, len(commits))

    def run_job(self, ctx: CommitContext, name: str, tasks: int = 2) -> JobOutcome:
        job = self.start(ctx)
        return self.commit(
            ctx, job, [self.run_task(ctx, job, task, self.contents(name, task)) for task in range(tasks)]
        )

    @staticmethod
    def contents(name: str, task: int) -> list[bytes]:
        return [f"{name}/{task}/{number}".encode() for number in range(2)]

    def expected(self, name: str, tasks: int = 2) -> list[bytes]:
        return sorted(content for task in range(tasks) for content in self.contents(name, task))

    def visible(self, home: str = "out put/dataset1/") -> dict[str, bytes]:
        return {path: self.store.get(info.key) for path, info in iter_visible(self.store, home)}

    def debris(self) -> list[str]:
        """Return pending uploads, hidden files except log and reports, scratch and shared files: must be empty."""
        uploads = [upload.key for upload in iter_uploads(self.store, "")]
        kept = ("_SUCCESS", "_holdfast/log/")
        hidden = [
            info.key
            for info in iter_objects(self.store, "")
            if not any(part in info.key for part in kept) and ("/_" in info.key or "/." in info.key)
        ]
        beside = [info.key for store in (self.scratch, self.shared) for info in iter_objects(store, "")]
        return uploads + hidden + beside


def with_shared(ctx: CommitContext, store: ObjectStore, url: str = "memory://shared") -> CommitContext:
    """Return the context with another store for the shared directory."""
    assert ctx.staging is not None
    return replace(ctx, staging=replace(ctx.staging, shared=Place(store=store, prefix="", url=url)))
