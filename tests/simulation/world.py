"""Provide a small deterministic world: one store, and processes that each have their own handle to it.

Time and randomness are seeded and all work is serial, so that the nth store call of a process is the same call in every
run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    CommitSettings,
    JobOutcome,
    JobRecord,
    SaveMode,
    TaskCommit,
    verify,
)
from holdfast.commit.layout import is_hidden
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import MultipartLimits, ObjectPage, ObjectStore, iter_objects, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall
from holdfast_checker.simulated.memory import RestorableStore
from tests.clocks import CountingIds, SimulatedClock
from tests.interceptors import Fault, Faulty

T = TypeVar("T")

HOME = "out put/dataset1/"
TASKS = 2
STEPWISE = ["upload", "rename"]
"""Publications that carry a decision out step by step, so that a process can die between the steps."""
PUBLICATIONS = [*STEPWISE, "transaction"]


class At:
    """An interceptor that runs an action in the middle of a process: just before its nth call."""

    def __init__(self, nth: int, action: Callable[[], object]) -> None:
        self._nth = nth
        self._action = action
        self.calls = 0
        self.fired = False

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        self.calls += 1
        if self.calls == self._nth:
            self.fired = True
            self._action()
        return proceed()


def allow_nesting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow nested destinations, as older data may have: each job must still leave the others alone (C7)."""
    for module in ("job", "decision"):
        monkeypatch.setattr(
            f"holdfast.commit.two_phase.{module}.refuse_nested_destination", lambda ctx, **_options: None
        )
    monkeypatch.setattr("holdfast.commit.two_phase.replacement.refuse_inner_destination", lambda ctx, folder: None)


class SmallPages(InterceptedStore):
    """A store that lists two objects per page, so that a small listing takes many calls, as a large one does."""

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        return super().list_page(prefix, start_after, min(max_keys, 2), token)


class World:
    """One bucket and the processes that use it.

    Args:
        publication: the kind of store: ``upload``, ``rename`` or ``transaction``.
    """

    def __init__(self, publication: str) -> None:
        self.clock = SimulatedClock()
        self.ids = CountingIds()
        rename = publication == "rename"
        limits = None if rename else MultipartLimits(min_part_size_bytes=4)
        transactions = publication == "transaction"
        self.store = RestorableStore(
            limits=limits, rename=rename, transactions=transactions, clock=self.clock, ids=self.ids
        )

    def context(self, *faults: Fault, home: str = HOME, store: ObjectStore | None = None) -> CommitContext:
        """Return the context of a process with its own store handle."""
        handle = store or (InterceptedStore(self.store, Faulty(*faults)) if faults else self.store)
        return CommitContext(
            store=handle,
            prefix=home,
            url=f"memory://world/{home}",
            settings=CommitSettings(part_size_bytes=4),
            environment=Environment(clock=self.clock, ids=self.ids, runner=SerialRunner()),
        )

    def intercepted(self, interceptor: At) -> CommitContext:
        return self.context(store=SmallPages(self.store, interceptor))

    # --- observations -------------------------------------------------------------------------------------------------
    def listing(self, home: str = HOME) -> dict[str, bytes]:
        """Return what a plain reader sees below the destination: path to content."""
        keys = [info.key for info in iter_objects(self.store, home)]
        return {key[len(home) :]: self.store.get(key) for key in keys if not is_hidden(key[len(home) :])}

    def contents(self, home: str = HOME) -> list[bytes]:
        """Return the visible contents, sorted. Contents identify files."""
        return sorted(self.listing(home).values())

    def pending(self) -> list[str]:
        """Return the keys of all pending uploads in the bucket."""
        if self.store.capabilities.multipart is None:
            return []
        return [upload.key for upload in iter_uploads(self.store, "")]

    def leftovers(self, home: str = HOME) -> list[str]:
        """Return the objects in job folders: there must be none when no job is open."""
        return [info.key for info in iter_objects(self.store, home + "_holdfast/jobs/")]


def interleavings(
    publication: str, prepare: Callable[[World], tuple[Callable[[CommitContext], object], Callable[[], object]]]
) -> Iterator[World]:
    """Yield each world in which the first process stopped before call n, the second ran, and the first continued."""
    for nth in itertools.count(1):
        world = World(publication)
        first, second = prepare(world)
        stop = At(nth, second)
        first(world.intercepted(stop))
        if not stop.fired:
            assert nth > 3, "the process made no calls: nothing was tested"
            return
        yield world


def payload(name: str, task: int, number: int) -> bytes:
    """Return content that names its writer and is longer than two parts."""
    return f"{name}/{task}/{number}".encode()


def expected(name: str, tasks: int = TASKS) -> list[bytes]:
    """Return the contents that `run_tasks` writes."""
    return sorted(payload(name, task, number) for task in range(tasks) for number in range(2))


def run_task(ctx: CommitContext, job: JobRecord, task: int, name: str) -> TaskCommit:
    """Run one attempt that writes two files in two partitions, the first file in several parts."""
    with TWO_PHASE.setup_task(ctx, job, task) as attempt:
        for number in range(2):
            path = f"day={number}/{attempt.file_name('.txt')}"
            sink = attempt.open(path)
            content = payload(name, task, number)
            sink.write(content[:5])
            sink.write(content[5:])
            sink.close()
            attempt.record_rows(path, 1)
        return attempt.commit()


def run_tasks(ctx: CommitContext, job: JobRecord, name: str, tasks: int = TASKS) -> list[TaskCommit | None]:
    return [run_task(ctx, job, task, name) for task in range(tasks)]


def start(ctx: CommitContext, mode: SaveMode = SaveMode.APPEND) -> JobRecord:
    job = TWO_PHASE.setup_job(ctx, mode, {})
    assert job is not None
    return job


def run_job(ctx: CommitContext, name: str, mode: SaveMode = SaveMode.APPEND, tasks: int = TASKS) -> JobOutcome:
    """Run a job from start to end."""
    job = start(ctx, mode)
    return TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, name, tasks), tasks)


def result(mode: SaveMode, name: str = "new") -> list[bytes]:
    """Return the destination's contents after `name` committed over ``old`` in this mode."""
    return sorted(expected("old") + expected(name)) if mode is SaveMode.APPEND else expected(name)


def assert_settled(world: World, contents: list[bytes]) -> None:
    assert world.contents() == contents
    assert world.pending() == [], "C9: no pending upload remains"
    assert world.leftovers() == [], "no job folder remains"
    report = verify(world.context())
    assert report.verified, report.problems
