"""The steps of a collector are bounded, and end."""

from __future__ import annotations

from holdfast.namespace import collector
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World


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
    assert world.records(b"d") == {}


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
