"""A recursive deletion asks for all permissions in the tree, in one snapshot; the superuser's is one step.

Files below that are being written go with the tree if they have a lease.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest

from holdfast.namespace import Namespace, listing
from holdfast.namespace.errors import LeaseLostError, PathNotFoundError, PermissionDeniedError, UncheckedTreeError
from holdfast.transactions.base import Record, ScanPage, SnapshotReader
from holdfast.transactions.memory import MemoryBackend
from tests.namespace_world import World


class Counting(MemoryBackend):
    """Counts snapshots and the scans in them; calls a function when a snapshot ends."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots = 0
        self.scans = 0
        self.afterwards: list[Namespace] = []

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        self.snapshots += 1
        with super().snapshot() as reader:
            yield _CountingReader(self, reader)
        if self.afterwards:
            other = self.afterwards.pop()
            other.rename("/t/a", "/t/kept")
            other.rename("/t/b", "/t/a")


class _CountingReader:
    def __init__(self, counting: Counting, reader: SnapshotReader) -> None:
        self._counting = counting
        self._reader = reader

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._reader.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._counting.scans += 1
        return self._reader.scan(start, end, limit, guards)


def _world() -> tuple[World, Counting]:
    database = Counting()
    world = World(database=database)
    world.client().mkdirs("/t", mode=0o777)
    return world, database


def test_the_superuser_deletes_without_a_look_at_the_tree() -> None:
    world, database = _world()
    world.client().write_file("/t/a/b/c/f", b"x")
    assert world.client().delete("/t/a", recursive=True)
    assert database.snapshots == 0


def test_nothing_is_read_when_permissions_are_off() -> None:
    database = Counting()
    world = World(database=database, permissions=False)
    alice = world.client("alice")
    alice.write_file("/t/a/b/c/f", b"x")
    assert alice.delete("/t/a", recursive=True)
    assert database.snapshots == 0


def test_others_read_each_directory_once_in_one_snapshot() -> None:
    world, database = _world()
    alice = world.client("alice")
    for path in ("/t/a/b/c/f", "/t/a/b/g", "/t/a/h"):
        alice.write_file(path, b"x")
    assert alice.delete("/t/a", recursive=True)
    assert (database.snapshots, database.scans) == (1, 3)


def test_files_and_missing_paths_need_no_look() -> None:
    world, database = _world()
    alice = world.client("alice")
    alice.write_file("/t/f", b"x")
    assert alice.delete("/t/f", recursive=True)
    assert not alice.delete("/t/f", recursive=True)
    assert database.snapshots == 0


def test_a_directory_of_somebody_else_below_keeps_the_tree() -> None:
    world, _ = _world()
    world.client("alice").mkdirs("/t/a/b", mode=0o777)
    world.client("bob").mkdirs("/t/a/b/c")
    world.client("bob").write_file("/t/a/b/c/f", b"x")
    with pytest.raises(PermissionDeniedError):
        world.client("alice").delete("/t/a", recursive=True)
    assert world.client().exists("/t/a/b/c/f")
    world.client("bob").delete("/t/a/b/c/f")
    assert world.client("alice").delete("/t/a", recursive=True), "an empty directory needs no permission"


def test_a_tree_is_checked_to_the_end_of_its_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 2)
    world, _ = _world()
    alice, bob = world.client("alice"), world.client("bob")
    alice.mkdirs("/t/a", mode=0o777)
    for name in ("a", "b", "c", "d"):
        alice.write_file(f"/t/a/{name}", b"alice's")
    bob.mkdirs("/t/a/e", mode=0o755)
    bob.write_file("/t/a/e/f", b"bob's")
    with pytest.raises(PermissionDeniedError):
        alice.delete("/t/a", recursive=True)
    assert bob.open("/t/a/e/f").read() == b"bob's"


def test_a_tree_that_gets_the_path_after_the_check_is_checked_too() -> None:
    world, database = _world()
    alice, bob = world.client("alice"), world.client("bob")
    alice.write_file("/t/a/f", b"alice's")
    bob.mkdirs("/t/b", mode=0o755)
    bob.write_file("/t/b/f", b"bob's")
    database.afterwards = [world.client()]
    with pytest.raises(PermissionDeniedError):
        alice.delete("/t/a", recursive=True)
    assert alice.open("/t/a/f").read() == b"bob's"
    assert database.snapshots == 2


def test_a_path_that_changes_after_every_check_is_given_up() -> None:
    world, database = _world()
    alice = world.client("alice")
    for name in ("a", "b"):
        alice.write_file(f"/t/{name}/f", b"x")

    class Swapping:
        """Changes the tree at the path after each check."""

        def rename(self, source: str, target: str) -> None:
            if target == "/t/kept":
                alice.rename("/t/a", "/t/kept")
            else:
                alice.rename("/t/b", "/t/a")
                alice.rename("/t/kept", "/t/b")

    database.afterwards = [Swapping()] * 100  # type: ignore[list-item]  # what is called is there
    with pytest.raises(UncheckedTreeError):
        alice.delete("/t/a", recursive=True)
    assert alice.exists("/t/a/f") and alice.exists("/t/b/f")


# --- writers below ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("collects", [False, True])
def test_a_file_under_a_lease_goes_with_its_directory(collects: bool) -> None:
    world = World()
    namespace = world.client()
    file = namespace.create_with_lease("/d/f")
    file.write(b"larger than small")
    world.client().delete("/d", recursive=True)
    if collects:
        world.client().collect()
    with pytest.raises(LeaseLostError):
        file.close()
    file.discard()
    assert not namespace.exists("/d")


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize("collects", [False, True])
def test_a_file_without_a_lease_is_created_when_it_is_closed(collects: bool, parents: bool) -> None:
    """With its parents, if that is wanted."""
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    file = namespace.create("/d/f", parents=parents)
    file.write(b"larger than small")
    world.client().delete("/d", recursive=True)
    if collects:
        world.client().collect()
    if parents:
        file.close()
        assert namespace.open("/d/f").read() == b"larger than small"
        return
    with pytest.raises(PathNotFoundError, match="create it first"):
        file.close()
    file.discard()
    assert not namespace.exists("/d")
