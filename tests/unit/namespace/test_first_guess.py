"""The guess what is on a path: without hints, with those of others, and with what the client has done itself."""

from __future__ import annotations

import pytest

from holdfast.namespace.errors import PathExistsError
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.view import SeenRecord
from tests.namespace_world import HookedDatabase, World


def test_the_root_is_not_taken_for_absent() -> None:
    world = World()
    assert world.client().mkdirs("/") is False
    with pytest.raises(PathExistsError):
        world.client().mkdirs("/", parents=False)
    assert world.client().delete("/", recursive=True) is False
    world.client().set_permission("/", 0o700)
    assert world.client().status("/").mode == 0o700


def test_a_hint_that_comes_while_the_guess_is_made() -> None:
    """Defect: the guess took a directory for absent on the path, and for present among what it had read."""
    world = World()
    namespace = world.client()
    namespace.mkdirs("/a")
    hints = namespace.operations.hints
    look = hints.get
    made: list[bool] = []

    def look_and_learn(key: bytes) -> SeenRecord | None:
        """Another thread makes the directory just after it was looked up."""
        found = look(key)
        if found is None and key.endswith(b"new") and not made:
            made.append(world.client().mkdirs("/a/new"))
            record = world.database.get_many([key])[key]
            hints.put(key, SeenRecord(record.version, decode_inode(key, record.value)))
        return found

    hints.get = look_and_learn
    assert namespace.mkdirs("/a/new") is False and made == [True], "somebody else has made it"
    assert [entry.path for entry in namespace.list("/a")] == ["/a/new"]


def test_what_a_client_has_done_itself_it_knows() -> None:
    """Each of its next changes is one call of the database, whatever it has made, renamed or deleted before."""
    world = World()
    calls: list[str] = []
    namespace = world.client(database=HookedDatabase(world.database, lambda name, _argument: calls.append(name)))
    namespace.mkdirs("/a")
    for change in (
        lambda: namespace.mkdirs("/a/b"),
        lambda: namespace.set_permission("/a/b", 0o700),
        lambda: namespace.rename("/a/b", "/a/c"),
        lambda: namespace.rename_into("/a/c", "/a/d"),
        lambda: namespace.rename_into("/a/d", "/a/c"),
        lambda: namespace.set_permission("/a/c", 0o755),
        lambda: namespace.mkdirs("/a/b"),
        lambda: namespace.delete("/a/c"),
        lambda: namespace.mkdirs("/a/c"),
        lambda: namespace.delete("/a/c"),
        lambda: namespace.write_file("/a/c", b"1"),
        lambda: namespace.write_file("/a/c", b"12", overwrite=True),
        lambda: namespace.delete("/a/c"),
        lambda: namespace.write_file("/a/c", b"long"),
    ):
        calls.clear()
        change()
        assert calls == ["commit"]
