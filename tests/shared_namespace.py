"""A namespace on a database that several processes share, for tests of what they do to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.stores.registry import open_destination
from holdfast.transactions.registry import open_backend
from tests.namespace_check import problems_of

__all__ = ["SHARED", "SharedNamespace", "shared", "shared_namespace", "shared_on"]


@dataclass(frozen=True)
class SharedNamespace:
    """A namespace that each process opens by itself.

    Attributes:
        rounds: how often a test repeats what it tries.
    """

    url: str
    data: str
    rounds: int = 1
    locks: bool = False

    def open(self) -> Namespace:
        """Open the namespace as its superuser."""
        namespace = open_namespace(self.url, user="root", groups=[])
        if self.locks:
            namespace.operations.tries_without_locks = 0
        return namespace

    def problems(self, *, strays: bool = False) -> list[str]:
        """Describe what is wrong with the namespace: see `problems_of`."""
        database, blobs = open_backend(self.url), open_destination(self.data)
        try:
            return problems_of(database, blobs.store, blobs.key(""), strays=strays)
        finally:
            database.close()

    def is_whole_after_collection(self, *, strays: bool = False) -> None:
        """Check the namespace as it is, and once more after a collection."""
        self.is_whole(strays=strays)
        with self.open() as namespace:
            namespace.collect()
        self.is_whole(strays=strays)

    def is_whole(self, *, strays: bool = False) -> None:
        """Check the namespace as it is: by its own `check`, and by a second opinion."""
        with self.open() as namespace:
            report = namespace.check()
        assert report.is_healthy, report
        problems = self.problems(strays=strays)
        assert problems == [], "\n".join(problems)


def shared_namespace(url: str, folder: Path, *, inline_bytes: int = 8) -> SharedNamespace:
    """Create a namespace; files of more than `inline_bytes` are in a folder."""
    data = str(folder / "data")
    configuration = Configuration(name="shared", data=data, superuser="root", inline_bytes=inline_bytes)
    init_namespace(configuration, url, register=False)
    return SharedNamespace(url, data)


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> SharedNamespace:
    # What is lost when the machine crashes is no matter here, and a hundred times faster.
    return shared_namespace(f"sqlite://{folder}/ns.db?synchronous=normal", folder)


def _server(fixture: str) -> Callable[[pytest.FixtureRequest, Path], SharedNamespace]:
    return lambda request, folder: shared_namespace(request.getfixturevalue(fixture)(), folder)


_DATABASES = {"sqlite": _sqlite, "postgresql": _server("new_postgres_url"), "mysql": _server("new_mysql_url")}


def shared_on(database: str, locks: bool = False, rounds: int = 1) -> object:
    """Return a value for an indirect parameter of the fixture `shared`."""
    return _DATABASES[database], locks, rounds


_SLOW = pytest.mark.slow
SHARED = [
    pytest.param(shared_on("sqlite"), id="sqlite"),
    pytest.param(shared_on("sqlite", rounds=40), id="sqlite-long", marks=_SLOW),
    pytest.param(shared_on("sqlite", locks=True, rounds=4), id="sqlite-pessimistic", marks=_SLOW),
    pytest.param(shared_on("postgresql", rounds=8), id="postgresql", marks=_SLOW),
    pytest.param(shared_on("postgresql", locks=True), id="postgresql-pessimistic", marks=_SLOW),
    pytest.param(shared_on("mysql", rounds=8), id="mysql", marks=_SLOW),
]
"""For an indirect parameter of the fixture `shared`."""


@pytest.fixture
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> SharedNamespace:
    """Create a namespace on the database of the parameter."""
    make, locks, rounds = request.param
    made: SharedNamespace = make(request, tmp_path)
    return replace(made, locks=locks, rounds=rounds)
