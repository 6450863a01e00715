"""Sweep at a safety age of 0 while others work: no blob that a file has, or will have, is ever deleted.

And check while others work: a namespace that is whole is found whole; a repair does not disturb them. The steps of a
sweep, a check or a repair and those of the others interleave at every call of the database, at every page of the
listing and at every page of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.namespace import Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.fsck import CheckedNamespace, Severity, check, repair
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.keys import blob_name_in_key
from holdfast.namespace.other_records import HARD_LIMIT_MS, SOFT_LIMIT_MS
from holdfast.namespace.sweep import sweep_namespace
from holdfast.stores.base import ObjectPage
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, StillClock
from tests.namespace_world import HookedDatabase, World

_PATHS = ["/d/a", "/d/b", "/e/a", "/e/b", "/a"]
_DIRECTORIES = ["/d", "/e", "/d/e"]
_LARGE = b"0123456789"

Step = tuple[str, str, object]

paths = st.sampled_from(_PATHS)
steps = st.one_of(
    st.tuples(st.just("create"), paths, st.booleans()),
    st.tuples(st.just("open"), paths, st.just("")),
    st.tuples(st.just("append"), paths, st.just("")),
    st.tuples(st.just("sync"), paths, st.just("")),
    st.tuples(st.just("lose"), paths, st.just("")),
    st.tuples(st.just("close"), paths, st.just("")),
    st.tuples(st.just("rename"), st.sampled_from(_PATHS + _DIRECTORIES), st.sampled_from(_PATHS + _DIRECTORIES)),
    st.tuples(st.just("concat"), paths, paths),
    st.tuples(st.just("delete"), st.sampled_from(_PATHS + _DIRECTORIES), st.just("")),
    st.tuples(st.just("collect"), st.just(""), st.just("")),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from([1.0, SOFT_LIMIT_MS / 1000 + 1, HARD_LIMIT_MS / 1000 + 1])),
)


@dataclass
class _Store(MemoryStore):
    """A store with small pages, which runs the next steps of the others between them."""

    def __init__(self, clock: StillClock, ids: CountingIds) -> None:
        super().__init__(clock=clock, ids=ids)
        self.between = lambda: None

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        self.between()
        return super().list_page(prefix, start_after, 2, token)


@dataclass
class _Others:
    """Everybody but the sweep."""

    world: World
    namespace: Namespace
    writers: dict[str, FileWriter] = field(default_factory=dict)

    def do(self, step: Step) -> None:
        """Do a step; a step that is impossible now is none."""
        what, path, more = step
        try:
            getattr(self, f"_{what}")(path, more)
        except (HoldfastError, KeyError):
            return

    def _create(self, path: str, overwrite: bool) -> None:
        self.namespace.write_file(path, _LARGE, overwrite=overwrite)

    def _open(self, path: str, _: object) -> None:
        self.writers[path] = self.namespace.create_with_lease(path)
        self.writers[path].write(_LARGE)

    def _append(self, path: str, _: object) -> None:
        self.writers[path] = self.namespace.append(path)
        self.writers[path].write(_LARGE)

    def _sync(self, path: str, _: object) -> None:
        self.writers[path].sync()
        self.writers[path].write(_LARGE)

    def _close(self, path: str, _: object) -> None:
        self.writers.pop(path).close()

    def _lose(self, path: str, _: object) -> None:
        """The writer dies between its blob and the transaction."""
        number = self.namespace.status(path).id
        blob = self.world.blobs.open_write(number)
        blob.write(_LARGE)
        blob.close()

    def _rename(self, path: str, target: str) -> None:
        self.namespace.rename(path, target, overwrite=True)

    def _concat(self, path: str, source: str) -> None:
        self.namespace.concat(path, [source])

    def _delete(self, path: str, _: object) -> None:
        self.namespace.delete(path, recursive=True)

    def _collect(self, path: str, _: object) -> None:
        self.namespace.collect()

    def _wait(self, path: str, seconds: float) -> None:
        self.world.clock.at_s += seconds


def _worlds() -> tuple[World, _Store]:
    clock, ids = StillClock(1_800_000_000.0), CountingIds()
    store = _Store(clock, ids)
    world = World(safety_age_s=0, clock=clock, ids=ids, store=store)
    for path in _DIRECTORIES:
        world.client().mkdirs(path)
    return world, store


def _is_whole(namespace: Namespace) -> bool:
    for entry in namespace.walk("/"):
        if not entry.is_directory:
            content = namespace.open(entry.path).read()
            assert content == _LARGE * (len(content) // len(_LARGE)), entry
    return namespace.check().is_healthy


def _beside(before: list[Step], beside: list[list[Step]], work: Callable[[CheckedNamespace, World], object]) -> World:
    """Do some steps, then the work, with more steps in each of its gaps."""
    world, store = _worlds()
    others = _Others(world, world.client())
    for step in before:
        others.do(step)
    gaps: Iterator[list[Step]] = iter(beside)

    def go_on(call: str = "", argument: object = None) -> None:
        for step in next(gaps, []):
            others.do(step)

    store.between = go_on
    blobs = BlobStore(store, "data/", world.ids)
    work(CheckedNamespace(HookedDatabase(world.database, go_on), blobs, world.environment, 0), world)
    store.between = lambda: None
    namespace = world.client()
    namespace.collect()
    world.clock.at_s += 1
    namespace.collect()
    assert _is_whole(namespace)
    for path in list(others.writers):
        others.do(("close", path, ""))
    assert _is_whole(namespace)
    return world


def _sweep(subject: CheckedNamespace, world: World) -> None:
    sweep_namespace(subject, closing_s=0)


def _check(subject: CheckedNamespace, world: World) -> None:
    report = check(subject)
    assert report.is_healthy, report


def _repair(subject: CheckedNamespace, world: World) -> None:
    report = repair(subject, world.configuration)
    assert {finding.kind.severity for finding in report.repaired} <= {Severity.LEFTOVER}, report
    assert report.failed == []


histories = st.lists(steps, max_size=8), st.lists(st.lists(steps, max_size=3), max_size=14)
long_histories = st.lists(steps, max_size=20), st.lists(st.lists(steps, max_size=4), max_size=25)


@pytest.mark.parametrize("work", [_sweep, _check, _repair])
@settings(max_examples=40)
@given(*histories)
def test_what_files_have_stays(
    work: Callable[[CheckedNamespace, World], object], before: list[Step], beside: list[list[Step]]
) -> None:
    _beside(before, beside, work)


@pytest.mark.slow
@pytest.mark.parametrize("work", [_sweep, _check, _repair])
@settings(max_examples=1000)
@given(*long_histories)
def test_long_histories(
    work: Callable[[CheckedNamespace, World], object], before: list[Step], beside: list[list[Step]]
) -> None:
    _beside(before, beside, work)


def _sweep_in_each_gap(before: list[Step], waited_s: float, closing_s: float, *, leased: bool) -> None:
    """Write a file, and sweep before one of the writer's calls; repeat for each of its calls."""
    gap = 0
    while gap < _sweep_in_gap(gap, before, waited_s, closing_s, leased=leased):
        gap += 1
    assert gap > 2, "the writer makes several calls"


def _sweep_in_gap(gap: int, before: list[Step], waited_s: float, closing_s: float, *, leased: bool) -> int:
    """Return the number of the writer's calls."""
    world, _ = _worlds()
    others = _Others(world, world.client())
    for step in before:
        others.do(step)
    calls = 0

    def sweep_once(call: str, argument: object) -> None:
        nonlocal calls
        if calls == gap:
            world.clock.at_s += waited_s
            sweep_namespace(CheckedNamespace(world.database, world.blobs, world.environment, 0), closing_s=closing_s)
            for key in world.records(b"g"):  # what the collector does with notes
                world.blobs.delete_many([blob_name_in_key(key)])
        calls += 1

    namespace = world.client(database=HookedDatabase(world.database, sweep_once))
    writer = namespace.create_with_lease("/new") if leased else namespace.create("/new")
    writer.write(_LARGE)
    if leased:
        writer.sync()
        writer.write(_LARGE)
    writer.close()
    assert world.client().open("/new").read() == _LARGE * (2 if leased else 1)
    assert _is_whole(world.client())
    return calls


@settings(max_examples=10)
@given(st.lists(steps, max_size=6), st.integers(0, 599))
def test_a_file_that_is_being_closed_keeps_its_blob(before: list[Step], waited_s: int) -> None:
    """The blob is durable, and the transaction that publishes it comes after the sweep; it has ten minutes for that."""
    _sweep_in_each_gap(before, waited_s, CLOSING_S, leased=False)


@settings(max_examples=10)
@given(st.lists(steps, max_size=6))
def test_a_writer_with_a_lease_has_all_the_time(before: list[Step]) -> None:
    """Between its blobs and its transactions, hours may pass."""
    _sweep_in_each_gap(before, 7200, 0, leased=True)
