"""A client whose clock was far ahead, and that died, keeps nobody from work until that time comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from holdfast.errors import ConflictError, CorruptDataError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import BeingWrittenError, DirectoryFrozenError
from holdfast.namespace.inode import MOST_SKEW_S, decode_inode
from holdfast.namespace.keys import LEADER, MAINTENANCE, inode_key
from holdfast.namespace.maintenance import LeaderElection, MaintenanceLock, current_leader
from holdfast.namespace.trees import TreeUsageCounter
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import ObjectStore
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import Commit
from tests.clocks import CountingIds, StillClock
from tests.interceptors import Recorder
from tests.namespace_world import HookedDatabase, World

_YEAR_S = 365 * 86_400.0
_START_S = 1_800_000_000.0
_LARGE = b"0123456789"


class _DiedError(BaseException):
    """The process is gone."""


def _ahead(world: World, by_s: float, before: Callable[[str, object], None] = lambda call, argument: None) -> Namespace:
    """Open the namespace with another clock."""
    environment = Environment(clock=StillClock(world.clock.at_s + by_s), ids=world.ids, runner=SerialRunner())
    database = HookedDatabase(world.database, before)
    return Namespace(database, world.blobs, world.configuration, environment, user=world.superuser)


def _die_at(name: str) -> Callable[[str, object], None]:
    def die(call: str, argument: object) -> None:
        if call == name:
            raise _DiedError

    return die


def _freeze(world: World, by_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark the directory /d as a client does that dies while it counts."""
    with monkeypatch.context() as patch:
        patch.setattr(TreeUsageCounter, "_remove_freeze_mark", lambda *arguments: None)
        with pytest.raises(_DiedError):
            _ahead(world, by_s, _die_at("scan")).set_quota("/d", names=1000)


@pytest.mark.parametrize("by_s", [MOST_SKEW_S + 1, _YEAR_S])
def test_a_mark_from_the_future_freezes_nothing(by_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    _freeze(world, by_s, monkeypatch)
    assert [finding.kind.name for finding in namespace.check().findings] == ["expired-mark"]
    namespace.mkdirs("/d/e")
    record = world.records(b"i")[inode_key(1, b"d")]
    assert decode_inode(b"", record.value).moving == "", "whoever finds the mark removes it"
    namespace.set_quota("/d", names=1000)
    assert namespace.check().totals == {}


def test_a_clock_that_is_a_little_ahead_keeps_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    _freeze(world, MOST_SKEW_S - 1, monkeypatch)
    with pytest.raises(DirectoryFrozenError):
        namespace.mkdirs("/d/e")


def test_a_mark_from_the_future_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    _freeze(world, _YEAR_S, monkeypatch)
    assert [kind.name for kind in namespace.check().totals] == ["expired-mark"]
    namespace.mkdirs("/d/e")


def test_a_lock_from_the_future_has_ended() -> None:
    world = World()
    far = Environment(clock=StillClock(world.clock.at_s + _YEAR_S), ids=world.ids, runner=SerialRunner())
    held = MaintenanceLock.hold(world.database, far, "sweep")
    held.__enter__()
    assert world.client().sweep().blobs == 0
    assert MAINTENANCE not in world.records(b"x")
    near = Environment(clock=StillClock(world.clock.at_s + MOST_SKEW_S), ids=world.ids, runner=SerialRunner())
    held = MaintenanceLock.hold(world.database, near, "sweep")
    held.__enter__()
    with pytest.raises(ConflictError):
        world.client().repair()


def test_a_leader_from_the_future_leads_no_longer() -> None:
    world = World()
    far = StillClock(world.clock.at_s + _YEAR_S)
    assert LeaderElection(world.database, far, "dead").try_to_lead()
    assert current_leader(world.database, world.clock) is None
    assert LeaderElection(world.database, world.clock, "living").try_to_lead()
    assert not LeaderElection(world.database, world.clock, "third").try_to_lead()


@pytest.mark.parametrize("until", [b"NaN", b"Infinity", b"1e300"])
def test_an_end_that_is_no_time_is_over(until: bytes) -> None:
    world = World()
    value = b'{"holder": "sweep x", "until": ' + until + b"}"
    world.database.commit(Commit(puts={LEADER: value, MAINTENANCE: value}))
    assert LeaderElection(world.database, world.clock, "living").try_to_lead()
    assert world.client().sweep().blobs == 0


def test_a_lease_from_a_day_to_come_is_that_of_a_silent_writer() -> None:
    world = World()
    namespace = world.client()
    _ahead(world, _YEAR_S).create_with_lease("/far")
    _ahead(world, 3600).create_with_lease("/near")
    with pytest.raises(BeingWrittenError):
        namespace.append("/near")
    assert [finding.kind.name for finding in namespace.check().findings] == ["stale-lease"]
    assert namespace.collect().leases == 1
    with namespace.append("/far") as file:
        file.write(b"1")
    assert namespace.open("/far").read() == b"1"


def test_garbage_from_the_future_has_its_safety_age_from_now_on() -> None:
    world = World(safety_age_s=3600)
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    _ahead(world, _YEAR_S).delete("/f")
    assert namespace.collect().blobs == 0
    world.clock.at_s += 3601
    assert namespace.collect().blobs == 1
    assert world.records(b"g") == {} and namespace.check().totals == {}


@pytest.mark.parametrize("replaces", [False, True])
def test_a_client_whose_clock_is_behind_leaves_what_is_younger_its_safety_age(replaces: bool) -> None:
    world = World(safety_age_s=3600)
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    reader = namespace.open("/f")
    behind = _ahead(world, -86_400)
    if replaces:
        behind.write_file("/f", b"", overwrite=True)
    else:
        behind.delete("/f")
    world.clock.at_s += 3599
    assert namespace.collect().blobs == 0
    assert reader.read() == _LARGE
    world.clock.at_s += 2
    assert namespace.collect().blobs == 1
    with pytest.raises(CorruptDataError, match="open the file again"):
        reader.read()


@pytest.mark.parametrize("by_s", [-_YEAR_S, -2 * MOST_SKEW_S, 2 * MOST_SKEW_S, _YEAR_S])
def test_a_collector_whose_clock_is_wrong_leaves_garbage_its_safety_age(by_s: float) -> None:
    """It neither deletes it too early, nor gives it another date."""
    world = World(safety_age_s=3600)
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    reader = namespace.open("/f")
    namespace.delete("/f")
    wrong = _ahead(world, by_s)
    for at_s in (1, 3599):
        world.clock.at_s = _START_S + at_s
        assert wrong.collect().blobs == 0
        assert namespace.collect().blobs == 0
        assert reader.read() == _LARGE
    world.clock.at_s += 2
    assert namespace.collect().blobs == 1


@pytest.mark.parametrize("by_s", [-_YEAR_S, _YEAR_S])
def test_a_store_whose_clock_is_wrong_leaves_garbage_its_safety_age(by_s: float) -> None:
    ids = CountingIds()
    clock = StillClock(_START_S + by_s)
    world = World(safety_age_s=3600, ids=ids, store=MemoryStore(clock=clock, ids=ids))
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    namespace.delete("/f")
    assert namespace.collect().blobs == 0
    world.clock.at_s += 3599
    assert namespace.collect().blobs == 0
    world.clock.at_s += 2
    clock.at_s += 3601
    assert namespace.collect().blobs == (1 if by_s > 0 else 0), "a store in the past keeps it, and says nothing wrong"


def test_a_store_without_a_clock_changes_no_date() -> None:
    ids = CountingIds()
    world = World(safety_age_s=3600, ids=ids, store=MemoryStore(clock=StillClock(0.0), ids=ids))
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    namespace.delete("/f")
    before = world.records(b"g").keys()
    assert _ahead(world, -_YEAR_S).collect().blobs == 0
    assert world.records(b"g").keys() == before
    world.clock.at_s += 3601
    assert namespace.collect().blobs == 1


def test_a_collection_without_garbage_asks_the_object_store_nothing() -> None:
    recorded = Recorder()
    world = World(store=cast("ObjectStore", InterceptedStore(MemoryStore(), recorded)))
    namespace = world.client()
    namespace.mkdirs("/d/e")
    namespace.delete("/d", recursive=True)
    assert namespace.collect().trees == 2
    assert recorded.calls == []


@pytest.mark.parametrize("at_s", [-5.0, 0.0, 1000.0])
def test_a_clock_near_the_epoch(at_s: float) -> None:
    world = World(safety_age_s=3600, clock=StillClock(0.0))
    world.clock.at_s = at_s
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    namespace.delete("/f")
    namespace.collect()
    assert namespace.sweep().blobs == 0
    assert namespace.check().is_healthy
