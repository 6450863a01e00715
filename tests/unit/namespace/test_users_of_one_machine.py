"""Several users of one machine share an SQLite file and a directory of data, set up as the guide says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.opening import groups_of_user
from tests.children import Child

_GROUP, _ANN, _BOB = 60_000, 60_001, 60_002


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory as in the guide. It is not below those of pytest, which only their owner may enter."""
    if os.getuid() != 0:
        pytest.skip("only the superuser can act for other users")
    _use(f"sqlite://{tmp_path}/other.db", tmp_path / "other", is_new=True)  # the users cannot import from this checkout
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, 0, _GROUP)
        os.chmod(directory, 0o2770)
        yield Path(directory)


def _use(database: str, data: Path, *, is_new: bool = False, name: str = "f") -> None:
    if is_new:
        init_namespace(Configuration(name="prod", data=str(data), superuser="root"), database, register=False)
    with open_namespace(database, user="root") as namespace:
        namespace.write_file(f"/{name}", bytes(3), overwrite=True)
        for number in range(30):  # in some directories that others have made, and in some new ones
            namespace.write_file(f"/{name}{number}", bytes(70_000), overwrite=True)
        namespace.delete(f"/{name}0")
        namespace.collect()
        namespace.sweep()


def _as_user(number: int, work: Callable[[], None]) -> None:
    def run() -> None:
        os.setgroups([_GROUP])
        os.setgid(number)
        os.setuid(number)
        os.umask(0o007)
        work()

    Child(run).result()


def test_whoever_comes_later_may_write_everything_too(place: Path) -> None:
    database, data = f"sqlite://{place}/prod.db", place / "data"
    _as_user(_ANN, lambda: _use(database, data, is_new=True))
    _as_user(_BOB, lambda: _use(database, data, name="g"))
    _as_user(_BOB, lambda: _use(database, data))
    _as_user(_ANN, lambda: _use(database, data, name="g"))
    with open_namespace(database, user="root") as namespace:
        assert namespace.check().totals == {} and len(list(namespace.list("/"))) == 60


def test_the_groups_of_a_user_are_those_of_the_machine() -> None:
    found = subprocess.run(["id", "-Gn", "root"], capture_output=True, text=True, check=True)
    assert sorted(groups_of_user("root")) == sorted(found.stdout.split())
    assert groups_of_user("no such user") == []
