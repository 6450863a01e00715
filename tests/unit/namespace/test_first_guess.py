"""The first operation of a client, which has no hints yet."""

from __future__ import annotations

import pytest

from holdfast.namespace.errors import PathExistsError
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.view import Entry
from tests.namespace_world import World


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
    hints = namespace._operations.hints
    look = hints.get
    made: list[bool] = []

    def look_and_learn(key: bytes) -> Entry | None:
        """Another thread makes the directory just after it was looked up."""
        found = look(key)
        if found is None and key.endswith(b"new") and not made:
            made.append(world.client().mkdirs("/a/new"))
            record = world.database.get_many([key])[key]
            hints.put(key, Entry(record.version, decode_inode(key, record.value)))
        return found

    hints.get = look_and_learn
    assert namespace.mkdirs("/a/new") is False and made == [True], "somebody else has made it"
    assert [entry.path for entry in namespace.list("/a")] == ["/a/new"]
