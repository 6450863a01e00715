"""The background work of the server that leads."""

from __future__ import annotations

from holdfast.namespace.keys import kind_range
from holdfast.transactions.base import Commit
from holdfast.webhdfs.duties import Duties
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from tests.namespace_world import HookedDatabase, World

TREES = 10


def _duties(
    world: World, database: HookedDatabase | None = None, user: str = "root", trash_s: float | None = None
) -> Duties:
    namespace = world.client(database=database).as_user(user)
    tokens = TokenStore(namespace.database, world.environment)
    return Duties(namespace, tokens, ServerSettings(url="holdfast://world", trash_s=trash_s), "a-server")


def test_a_server_that_stops_does_not_wait_for_its_collection() -> None:
    """Defect: it did for up to 30 seconds."""
    world = World()
    client = world.client()
    for number in range(TREES):
        client.mkdirs(f"/{number}")
        client.delete(f"/{number}", recursive=True)
    start, end = kind_range(b"r")

    def stop_in_the_middle(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(start <= key < end for key in argument.deletes):
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
