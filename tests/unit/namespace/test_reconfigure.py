"""The configuration of a namespace changes while it is in use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.configuration import load_configuration
from holdfast.namespace.errors import PermissionDeniedError
from holdfast.namespace.keys import CONFIGURATION
from holdfast.namespace.opening import reconfigure_namespace
from holdfast.runtime import Environment
from holdfast.stores.base import iter_objects
from holdfast.transactions.base import Commit
from tests.clocks import SimulatedClock
from tests.namespace_world import HookedDatabase, World
from tests.unit.namespace.fresh import fresh_namespace

_LARGE = b"0123456789"
_DAY_S = 24 * 3600


def _reopened(world: World) -> Namespace:
    """Return a client that has begun after the change."""
    world.configuration = load_configuration(world.database)
    return world.client()


def _blobs(world: World) -> int:
    return sum(1 for _ in iter_objects(world.store, world.blobs.key("")))


def test_a_shorter_safety_age_frees_deleted_bytes_at_once() -> None:
    world = World(safety_age_s=_DAY_S)
    namespace = world.client()
    namespace.write_file("/f", _LARGE)
    namespace.delete("/f")
    world.clock.at_s += 2
    assert namespace.collect().blobs == 0
    assert reconfigure_namespace(namespace, safety_age_s=1).safety_age_s == 1
    assert _reopened(world).collect().blobs == 1
    assert _blobs(world) == 0


def _begin_file(world: World) -> None:
    """Write a blob whose file is not published yet."""
    writer = world.blobs.open_write(77)
    writer.write(_LARGE)
    writer.close()


def test_a_sweep_leaves_writers_the_longest_age_that_they_may_count_on() -> None:
    world = World(safety_age_s=_DAY_S)
    _begin_file(world)
    reconfigure_namespace(world.client(), safety_age_s=0)
    world.clock.at_s += _DAY_S - 60
    assert _reopened(world).sweep().blobs == 0
    world.clock.at_s += 120
    assert _reopened(world).sweep().blobs == 1, "that writer could not publish it anymore"


def test_a_sweeper_that_runs_heeds_a_longer_age() -> None:
    world = World(safety_age_s=3600)
    sweeper = world.client()
    reconfigure_namespace(world.client(), safety_age_s=_DAY_S)
    _begin_file(world)
    world.clock.at_s += 7200
    assert sweeper.sweep().blobs == 0
    world.clock.at_s += _DAY_S
    assert sweeper.sweep().blobs == 1


def test_only_the_superuser_may_and_there_is_a_new_one() -> None:
    world = World()
    with pytest.raises(PermissionDeniedError):
        reconfigure_namespace(world.client("ann"), safety_age_s=0)
    reconfigure_namespace(world.client(), superuser="ann", supergroup="staff")
    world.configuration = load_configuration(world.database)
    assert world.client("ann").caller.is_superuser and world.client("bob", ["staff"]).caller.is_superuser


def test_two_changes_at_once_both_hold() -> None:
    world = World()

    def before(call: str, argument: object) -> None:
        if call == "commit" and isinstance(argument, Commit) and CONFIGURATION in argument.puts:
            reconfigure_namespace(world.client(), supergroup="staff")

    database = HookedDatabase(world.database, before)
    with pytest.raises(ConflictError, match="all the time"):
        reconfigure_namespace(world.client(database=database), superuser="ann")
    database.before = _once(lambda: reconfigure_namespace(world.client(), supergroup="admins"))
    reconfigure_namespace(world.client(database=database), superuser="ann")
    found = load_configuration(world.database)
    assert (found.superuser, found.supergroup) == ("ann", "admins")


def _once(act: Callable[[], object]) -> Callable[[str, object], None]:
    calls = iter([act])

    def before(call: str, argument: object) -> None:
        if call == "commit" and (now := next(calls, None)) is not None:
            now()

    return before


@pytest.mark.parametrize("change", [{"safety_age_s": -1}, {"superuser": ""}, {"data_options": {"endpoint": "h"}}])
def test_what_is_not_valid_changes_nothing(change: dict[str, object]) -> None:
    world = World()
    with pytest.raises(InvalidRequestError):
        reconfigure_namespace(world.client(), **change)  # type: ignore[arg-type]  # each fits its parameter
    assert load_configuration(world.database) == replace(
        world.configuration, created_ms=load_configuration(world.database).created_ms
    )


def test_data_that_moved_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite://{tmp_path}/n.db"
    configuration = Configuration(name="ns", data=str(tmp_path / "old"), superuser="root", inline_bytes=4)
    init_namespace(configuration, url, register=False)
    with open_namespace(url, user="root") as namespace:
        namespace.write_file("/f", _LARGE)
        with pytest.raises(InvalidRequestError, match="not at this place"):
            reconfigure_namespace(namespace, data=str(tmp_path / "new"))
    shutil.move(tmp_path / "old", tmp_path / "new")
    with open_namespace(url, user="root") as namespace:
        assert reconfigure_namespace(namespace, data="new").data == str(tmp_path / "new")
    monkeypatch.chdir("/")
    with open_namespace(url, user="root") as namespace:
        assert namespace.open("/f").read() == _LARGE
        assert namespace.check().totals == {}


def test_the_time_of_the_creation_is_kept_in_milliseconds() -> None:
    with fresh_namespace(environment=Environment(clock=SimulatedClock(1_800_000_000.25, 0))) as namespace:
        assert namespace.configuration.created_ms == 1_800_000_000_250
