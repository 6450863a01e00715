"""The background work of the server that leads."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace import Namespace
from holdfast.namespace.keys import LEADER, kind_range, receipt_key
from holdfast.namespace.maintenance import LeaderElection, LockTerm, current_leader
from holdfast.transactions.base import Commit
from holdfast.webhdfs.duties import Duties
from holdfast.webhdfs.servers import SILENT_S, ServerRecord, list_servers, server_key
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from tests.namespace_world import HookedDatabase, World

TREES = 10
_TRASH = "/user/ann/.Trash"


def _duties(
    world: World, database: HookedDatabase | None = None, user: str = "root", trash_s: float | None = None
) -> Duties:
    namespace = world.client(database=database).as_user(user)
    tokens = TokenStore(namespace.database, world.environment)
    return Duties(namespace, tokens, ServerSettings(url="holdfast://world", trash_s=trash_s), "a-server")


def _names(namespace: Namespace, path: str) -> list[str]:
    return [entry.name for entry in namespace.list(path)]


def _with_trees_to_collect(world: World) -> None:
    client = world.client()
    for number in range(TREES):
        client.mkdirs(f"/{number}")
        client.delete(f"/{number}", recursive=True)


def _collects(call: str, argument: object) -> bool:
    """Return whether a call of the database removes a deleted tree."""
    start, end = kind_range(b"r")
    return isinstance(argument, Commit) and any(start <= key < end for key in argument.deletes)


def test_a_server_that_stops_does_not_wait_for_its_collection() -> None:
    """Defect: it did for up to 30 seconds."""
    world = World()
    _with_trees_to_collect(world)

    def stop_in_the_middle(call: str, argument: object) -> None:
        if _collects(call, argument):
            duties.stop()

    duties = _duties(world, HookedDatabase(world.database, stop_in_the_middle))
    duties.run_round()
    assert 0 < len(world.records(b"r")) < TREES
    duties.end()
    _duties(world).run_round()
    assert not world.records(b"r"), "the next leader goes on"


def test_a_server_of_any_user_empties_the_trash_of_all() -> None:
    """Defect: it had no permission, because a home is for its owner."""
    world = World()
    client = world.client()
    client.mkdirs("/user/ann/.Trash/Current/data")
    client.mkdirs("/user/ann/.Trash/200101000000/old")
    client.set_permission("/user/ann", 0o700)
    client.set_permission("/user/ann/.Trash", 0o700)
    _duties(world, user="holdfast", trash_s=3600.0).run_round()
    left = [entry.name for entry in client.list("/user/ann/.Trash")]
    assert len(left) == 1
    assert left[0] not in ("Current", "200101000000"), "a checkpoint of now"
    assert client.exists(f"/user/ann/.Trash/{left[0]}/data")


def test_a_collection_renews_the_lead() -> None:
    world = World()
    _with_trees_to_collect(world)

    def let_time_pass(call: str, argument: object) -> None:
        world.clock.at_s += 6.0 * _collects(call, argument)

    _duties(world, HookedDatabase(world.database, let_time_pass)).run_round()
    leader = current_leader(world.database, world.clock)
    assert leader is not None and leader.holder == "a-server"
    assert not world.records(b"r")


def test_a_collection_ends_if_another_server_leads() -> None:
    world = World()
    _with_trees_to_collect(world)

    def let_another_lead(call: str, argument: object) -> None:
        if _collects(call, argument):
            world.clock.at_s += 31.0
            LeaderElection(world.database, world.clock, "another").try_to_lead()

    _duties(world, HookedDatabase(world.database, let_another_lead)).run_round()
    assert 0 < len(world.records(b"r")) < TREES


def test_the_trash_is_put_aside_and_deleted_when_it_is_old() -> None:
    world = World()
    client, duties = world.client(), _duties(world, trash_s=3600)
    client.mkdirs(f"{_TRASH}/notes")
    client.write_file("/user/no-home", b"")
    for name in ("old", "new"):
        client.mkdirs(f"{_TRASH}/Current/{name}")
        duties.run_round()
        world.clock.at_s += 2000
    *checkpoints, other = _names(client, _TRASH)
    assert other == "notes"
    assert [_names(client, f"{_TRASH}/{one}") for one in checkpoints] == [["old"], ["new"]]
    duties.run_round()
    assert _names(client, _TRASH) == [checkpoints[1], "notes"]
    world.clock.at_s += 2000
    duties.run_round()
    assert _names(client, _TRASH) == ["notes"]


def test_a_server_that_has_lost_the_lead_leaves_trash_and_tokens_alone() -> None:
    """It was stopped between its last read and its commit."""
    world = World()
    world.client().mkdirs(f"{_TRASH}/Current/d")
    TokenStore(world.database, world.environment).issue("ann", 1.0)
    world.clock.at_s += 2.0
    was_asked: list[str] = []

    def let_another_lead(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and LEADER in argument.reads and LEADER not in argument.puts:
            world.database.commit(Commit(puts={LEADER: LockTerm("another", world.clock.at_s + 30).encode()}))
            was_asked.append(call)

    _duties(world, HookedDatabase(world.database, let_another_lead), trash_s=3600).run_round()
    assert was_asked == ["commit"]
    assert _names(world.client(), _TRASH) == ["Current"]
    assert world.records(b"a"), "the other server does the rest"


def test_what_has_expired_is_removed() -> None:
    world = World()
    for token, silent_s in (("dead", 3 * SILENT_S), ("from the future", -3 * SILENT_S), ("silent", 1.5 * SILENT_S)):
        record = ServerRecord(token=token, host="", port=1, pid=1, since_s=0, at_s=world.clock.at_s - silent_s)
        world.database.commit(Commit(puts={server_key(token): record.encode()}))
    world.database.commit(Commit(puts={receipt_key("ann", "/x"): b"1 1 1 a-server it"}))
    TokenStore(world.database, world.environment).issue("ann", 1.0)
    world.clock.at_s += 2.0
    _duties(world).run_round()
    assert {one.token for one in list_servers(world.database)} == {"a-server", "silent"}
    assert not world.records(b"q")
    assert not world.records(b"a")


def test_the_trash_of_one_user_does_not_keep_that_of_others() -> None:
    """Defect: names that one user had taken ended the round."""
    world = World()
    client = world.client()
    for user in ("mal", "zoe"):
        client.mkdirs(f"/user/{user}/.Trash/Current/data")
    now_s = world.clock.now_s()
    for later_s in range(60):
        client.mkdirs("/user/mal/.Trash/" + time.strftime("%y%m%d%H%M%S", time.localtime(now_s + later_s)))
    client.write_file("/user/ann", b"no home")
    _duties(world, trash_s=3600.0).run_round()
    assert client.exists("/user/mal/.Trash/Current")
    assert not client.exists("/user/zoe/.Trash/Current")
    client.delete("/user/mal/.Trash/" + time.strftime("%y%m%d%H%M%S", time.localtime(now_s + 59)))
    world.clock.at_s = now_s
    _duties(world, trash_s=3600.0).run_round()
    assert not client.exists("/user/mal/.Trash/Current")


def test_a_trash_that_cannot_be_emptied_does_not_keep_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    client = world.client()
    for user in ("ann", "zoe"):
        client.mkdirs(f"/user/{user}/.Trash/Current")
    duties = _duties(world, trash_s=3600.0)
    shipped = duties._iter_checkpoints

    def fail(trash: str) -> Iterator[tuple[str, float]]:
        if "ann" in trash:
            raise UnavailableError("a directory is frozen: repeat later")
        return shipped(trash)

    monkeypatch.setattr(duties, "_iter_checkpoints", fail)
    duties.run_round()
    assert client.exists("/user/ann/.Trash/Current")
    assert not client.exists("/user/zoe/.Trash/Current")
