"""The steps of a collector are bounded, and end."""

from __future__ import annotations

import pytest

from holdfast.errors import CorruptDataError, UnavailableError
from holdfast.namespace import collector
from holdfast.stores.base import iter_objects
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World

_LARGE = b"0123456789"


def test_a_step_takes_a_bounded_number_of_extents(monkeypatch) -> None:  # type: ignore[no-untyped-def]  # a fixture
    monkeypatch.setattr(collector, "_MOST_EXTENTS", 3)
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    for name in "abc":
        with namespace.create_with_lease(f"/d/{name}") as file:
            for _ in range(2):
                file.write(b"12")
                file.sync()
    namespace.delete("/d", recursive=True)
    sizes: list[int] = []

    def count(call: str, argument: object) -> None:
        if isinstance(argument, Commit):
            sizes.append(sum(key[:1] == b"i" for key in argument.deletes))

    done = world.client(database=HookedDatabase(world.database, count)).collect()
    assert sizes == [1, 1, 1, 0]
    assert (done.trees, done.files) == (1, 3)
    assert world.records(b"s") == {}


def test_a_file_with_more_extents_than_a_step_takes_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MOST_EXTENTS", 3)
    world = World()
    namespace = world.client()
    with namespace.create_with_lease("/d/a") as file:
        for _ in range(5):
            file.write(b"12")
            file.sync()
    namespace.delete("/d", recursive=True)
    commits = 0

    def count(call: str, argument: object) -> None:
        nonlocal commits
        commits += call == "commit"
        assert commits < 20, "the collector goes round"

    assert world.client(database=HookedDatabase(world.database, count)).collect().files == 1
    assert world.records(b"s") == {}


def test_a_collector_that_always_comes_second_ends() -> None:
    """Its record of the tree is never the present one."""
    world = World()
    namespace = world.client()
    namespace.write_file("/d/a", b"1")
    namespace.delete("/d", recursive=True)
    (key,) = world.records(b"r")

    def change(call: str, argument: object) -> None:
        if call == "commit":
            world.database.commit(Commit(puts={key: world.records(b"r")[key].value}))

    done = world.client(database=HookedDatabase(world.database, change)).collect()
    assert (done.trees, done.files) == (0, 0)
    assert world.client().collect().trees == 1


def test_one_damaged_record_keeps_no_other_work_waiting() -> None:
    world = World(safety_age_s=3600)
    namespace = world.client()
    namespace.mkdirs("/q")
    namespace.set_quota("/q", names=3)
    namespace.write_file("/q/d/f", _LARGE)
    namespace.write_file("/g", _LARGE)
    namespace.create_with_lease("/open")
    world.clock.at_s += 10_000
    namespace.delete("/g")
    namespace.delete("/q/d", recursive=True)
    damaged = {
        b"r" + bytes(8): b"?",
        b"l" + bytes(8): b"?",
        b"g" + bytes(8) + b"\xff": b"",
        b"g" + b"\x7f" * 8 + b"\xff": b"",
    }
    world.database.commit(Commit(puts=damaged))
    namespace.mkdirs("/q/a")
    namespace.mkdirs("/q/b")  # makes room in the quota
    world.clock.at_s += 3601
    with pytest.raises(CorruptDataError, match="run holdfast namespace fsck"):
        namespace.collect()
    assert not namespace.status("/open").is_open
    assert namespace.check().counts.blobs == 0
    assert all(key in world.records(key[:1]) for key in damaged), "nothing damaged is touched"


def test_garbage_that_could_not_be_deleted_is_deleted_later(monkeypatch) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """A blob without a note would stay until somebody sweeps."""
    world = World()
    namespace = world.client()
    namespace.write_file("/f", b"0123456789")
    namespace.delete("/f")
    world.clock.at_s += world.safety_age_s + 1

    def fail(*_arguments: object) -> None:
        raise UnavailableError("the store is down")

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "delete_many", fail)
        with pytest.raises(UnavailableError):
            namespace.collect()
    assert len(list(iter_objects(world.store, ""))) == 1
    assert namespace.collect().blobs == 1
    assert list(iter_objects(world.store, "")) == []
    assert world.records(b"g") == {}
