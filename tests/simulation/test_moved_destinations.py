"""A destination that is renamed or deleted while a job runs takes the job with it: nothing is split or comes back.

The rename or deletion comes before each store call of the job, from its set-up to its decision; for the committers
without a decision, to its end: either all of the job's files have been at one place, or the job fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, recover, verify
from holdfast.errors import HoldfastError, LogRemovedError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import ObjectStore, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.clocks import StillClock
from tests.namespace_world import World as NamespaceWorld
from tests.simulation.world import HOME, PUBLICATIONS, TASKS, World, expected, run_job, run_tasks, start
from tests.unit.commit.committer_jobs import Bucket
from tests.variants import variants

T = TypeVar("T")

_NEW_HOME = "moved/"
_OLD, _NEW = HOME.rstrip("/"), _NEW_HOME.rstrip("/")

_Event = Callable[[ObjectStore], object]


# --- by tools that know nothing of Holdfast ---------------------------------------------------------------------------
def _copy_and_delete(store: ObjectStore) -> None:
    for info in list(iter_objects(store, HOME)):
        store.put(_NEW_HOME + info.key[len(HOME) :], store.get(info.key))
        store.delete(info.key)


def _delete_all(store: ObjectStore) -> None:
    store.delete_many([info.key for info in iter_objects(store, HOME)])


# --- by the interfaces of a namespace ---------------------------------------------------------------------------------
def _fs(store: ObjectStore) -> NamespaceFileSystem:
    return NamespaceFileSystem.over(cast("NamespaceStore", store).namespace)


def _rename(store: ObjectStore) -> None:
    cast("NamespaceStore", store).namespace.rename(f"/{_OLD}", f"/{_NEW}")


def _delete(store: ObjectStore) -> None:
    cast("NamespaceStore", store).namespace.delete(f"/{_OLD}", recursive=True)


def _mv(store: ObjectStore) -> None:
    _fs(store).mv(f"world/{_OLD}", f"world/{_NEW}")


def _rm(store: ObjectStore) -> None:
    _fs(store).rm(f"world/{_OLD}", recursive=True)


# --- jobs -------------------------------------------------------------------------------------------------------------
class _Happening:
    """An interceptor that lets an event happen once, before the nth call, and notes what was there then.

    Attributes:
        with_decision: whether this call decides the job.
        decided, announced: whether the job was decided, and whether its record existed.
        visible: what a plain reader saw.
    """

    def __init__(self, nth: int, world: World, event: _Event) -> None:
        self._nth = nth
        self._world = world
        self._event = event
        self._entries = len(_objects(world, f"{HOME}_holdfast/log/"))
        self._calls = 0
        self.fired = self.with_decision = self.decided = self.announced = False
        self.visible: list[bytes] = []

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        self._calls += 1
        if self._calls == self._nth:
            self.fired = True
            self.with_decision = call.operation is StoreOperation.PUT and call.key.startswith(f"{HOME}_holdfast/log/")
            self.decided = len(_objects(self._world, f"{HOME}_holdfast/log/")) > self._entries
            self.announced = any(key.endswith("/job.json") for key in _objects(self._world, HOME))
            self.visible = self._world.contents()
            self._event(self._world.store)
        return proceed()


def _objects(world: World, prefix: str) -> list[str]:
    return [info.key for info in iter_objects(world.store, prefix)]


def _run(ctx: CommitContext) -> None:
    """Run a job as Spark does: a task or a commit that fails is followed by an abort."""
    job = start(ctx)
    try:
        commits = run_tasks(ctx, job, "new")
        TWO_PHASE.commit_job(ctx, job, commits, TASKS)
    except HoldfastError:
        TWO_PHASE.abort_job(ctx, job)
        raise


def _each(
    new_world: Callable[[], World], event: _Event, *, has_table: bool
) -> Iterator[tuple[World, _Happening, bool]]:
    """Yield each world in which the event happened before another call of a job, and whether the job succeeded.

    On a store that changes one object at a time, nothing can notice an event that comes with the decision itself, and
    what comes later is damage: the worlds end there.
    """
    for nth in itertools.count(1):
        world = new_world()
        if has_table:
            run_job(world.context(), "old")
        else:
            world.store.put(f"{HOME}_there", b"")
        happening = _Happening(nth, world, event)
        ctx = world.context(store=InterceptedStore(world.store, happening))
        failure: HoldfastError | None = None
        try:
            _run(ctx)
        except HoldfastError as error:
            failure = error
        if not world.store.capabilities.transactions and (happening.with_decision or happening.decided):
            return
        if not happening.fired:
            assert nth > 10
            return
        assert failure is None or isinstance(failure, LogRemovedError)
        assert failure is None or "run the job again" in failure.message
        yield world, happening, failure is None


def _judge(world: World, happening: _Happening, succeeds: bool, *, moves: bool) -> None:
    """Check that the job has gone with its destination, unless it began after the destination had gone."""
    assert world.contents(_NEW_HOME) == (happening.visible if moves else []), "what was visible has moved"
    if happening.decided or happening.announced:
        assert succeeds is happening.decided
        assert _objects(world, HOME) == [], "nothing comes back"
    else:
        assert world.contents() == (expected("new") if succeeds else [])
    assert [key for key in world.pending() if key.startswith(HOME)] == []


@pytest.mark.parametrize("has_table", [False, True], ids=["new", "table"])
@pytest.mark.parametrize("event", [_copy_and_delete, _delete_all])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_by_tools_that_know_nothing_of_holdfast(publication: str, event: _Event, has_table: bool) -> None:
    seen = 0
    for world, happening, succeeds in _each(lambda: World(publication), event, has_table=has_table):
        _judge(world, happening, succeeds, moves=event is _copy_and_delete)
        seen += happening.announced
    assert seen > 5


class _InNamespace(World):
    def __init__(self) -> None:
        super().__init__("transaction")
        self.namespace = NamespaceWorld(clock=StillClock(1_800_000_000.0)).client()
        self.store = NamespaceStore(self.namespace, close_namespace=False)  # type: ignore[assignment]  # another store


@pytest.mark.parametrize("has_table", variants([True, False]), ids=["table", "new"])
@pytest.mark.parametrize("event", [_rename, _mv, _delete, _rm])
def test_by_the_interfaces_of_a_namespace(event: _Event, has_table: bool) -> None:
    moves = event not in (_delete, _rm)
    decided = 0
    for world, happening, succeeds in _each(_InNamespace, event, has_table=has_table):
        _judge(world, happening, succeeds, moves=moves)
        assert isinstance(world, _InNamespace)
        if happening.announced and not happening.decided:
            assert not world.namespace.exists(f"/{_OLD}"), "not even an empty directory comes back"
        decided += happening.decided
        if moves and has_table:
            recover(world.context(home=_NEW_HOME), older_than_s=0)
            assert verify(world.context(home=_NEW_HOME)).verified
            assert world.pending() == [] and world.leftovers(_NEW_HOME) == []
    assert decided, "also after the decision"


# --- the committers without a decision log ----------------------------------------------------------------------------
_OTHERS = ("magic", "staging-directory", "manifest", "file-v1", "file-v2")
_BY_NAMESPACES = list(itertools.product(_OTHERS[:2], [_rename, _delete]))  # the others need renames


class _BucketHappening:
    """An interceptor that lets an event happen once, before the nth call, and notes what the job had published."""

    def __init__(self, nth: int, bucket: Bucket, event: _Event) -> None:
        self._nth, self._bucket, self._event = nth, bucket, event
        self._calls = 0
        self.fired = False
        self.published: list[bytes] = []

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        self._calls += 1
        if self._calls == self._nth:
            self.fired = True
            self.published = _new_files(self._bucket, HOME)
            self._event(self._bucket.store)
        return proceed()


def _new_files(bucket: Bucket, home: str) -> list[bytes]:
    return sorted(content for content in bucket.visible(home).values() if content.startswith(b"new"))


@pytest.mark.parametrize(
    ("committer", "event"),
    variants(
        itertools.chain(_BY_NAMESPACES, itertools.product(_OTHERS, [_copy_and_delete, _delete_all])),
        *_BY_NAMESPACES,
        *itertools.product(_OTHERS[2:], [_delete_all]),
    ),
)
def test_other_committers_report_no_part_of_a_job_as_a_success(committer: str, event: _Event) -> None:
    outcomes = set()
    for nth in itertools.count(1):
        bucket = Bucket(committer)
        if event not in (_copy_and_delete, _delete_all):
            namespace = NamespaceWorld(clock=StillClock(1_800_000_000.0)).client()
            bucket.store = NamespaceStore(namespace, close_namespace=False)  # type: ignore[assignment]  # another store
        bucket.store.put(f"{HOME}_there", b"")
        happening = _BucketHappening(nth, bucket, event)
        ctx = bucket.context(HOME, store=InterceptedStore(bucket.store, happening))
        succeeds = True
        job = None
        try:
            job = bucket.start(ctx)
            commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
            bucket.commit(ctx, job, commits)
        except HoldfastError:
            succeeds = False
            if job is not None:
                bucket.value.abort_job(ctx, job)
        if not happening.fired:
            break
        outcomes.add(succeeds)
        places = [happening.published, _new_files(bucket, HOME), _new_files(bucket, _NEW_HOME)]
        assert not succeeds or bucket.expected("new") in places, (nth, places)
    assert outcomes == {True, False} and nth > 10
