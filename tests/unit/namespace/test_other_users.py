"""One open namespace serves several users."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import PermissionDeniedError
from tests.namespace_world import SUPERUSER, HookedDatabase, World


def test_each_has_the_rights_of_its_user() -> None:
    world = World()
    shared = world.client()
    ann, bob = shared.as_user("ann", ["staff"]), shared.as_user("bob")
    shared.mkdirs("/home", mode=0o777)
    ann.write_file("/home/f", b"1")
    ann.set_permission("/home/f", 0o640)
    ann.set_owner("/home/f", group="staff")
    assert ann.as_user("eve", ["staff"]).open("/home/f").read() == b"1"
    with pytest.raises(PermissionDeniedError):
        bob.open("/home/f")
    assert (ann.status("/home/f").owner, ann.trash_root()) == ("ann", "/user/ann/.Trash")
    assert shared.as_user("any", [world.configuration.supergroup]).caller.is_superuser
    assert ann.as_user(SUPERUSER).caller.is_superuser
    with pytest.raises(InvalidRequestError, match="user"):
        shared.as_user("")


def test_they_share_what_was_read() -> None:
    world = World()
    calls: list[str] = []
    shared = world.client(database=HookedDatabase(world.database, lambda call, argument: calls.append(call)))
    shared.mkdirs("/home", mode=0o777)
    calls.clear()
    shared.as_user("ann").mkdirs("/home/a")
    assert calls == ["commit"], "the hints of the other user are enough"


def test_closing_the_shared_one_ends_all() -> None:
    world = World()
    closed: list[str] = []

    class Closed(HookedDatabase):
        def close(self) -> None:
            closed.append("database")

    shared = world.client(database=Closed(world.database, lambda call, argument: None))
    with shared.as_user("ann") as ann:
        ann.exists("/")
    assert closed == []
    ann.exists("/")
    shared.close()
    assert closed == ["database"]
