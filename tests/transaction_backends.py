"""List the backends of transactions on which tests run, each with two handles on the same data.

To add a backend, write a function that opens its handles, and a line in `BACKENDS`. A server's function gets its URL
from a fixture of `tests.database_servers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from holdfast.runtime import Environment
from holdfast.transactions.base import Backend
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.registry import open_backend
from holdfast.transactions.sqlite.backend import SqliteBackend, prepare_file

__all__ = ["BACKENDS", "Handles", "opened"]


@dataclass(frozen=True, slots=True)
class Handles:
    """Handles on one database.

    Attributes:
        backend, other: each with its own connections; the same object if the records are in this process's memory.
        url: with which another process opens the database; empty if no other process can.
    """

    backend: Backend
    other: Backend
    url: str = ""


def _memory(request: pytest.FixtureRequest) -> Handles:
    backend = MemoryBackend()
    return Handles(backend, backend)


def _memory_in_groups(request: pytest.FixtureRequest) -> Handles:
    inner = MemoryBackend()
    return Handles(GroupCommit(inner), GroupCommit(inner))


def _sqlite(request: pytest.FixtureRequest) -> Handles:
    path = str(request.getfixturevalue("tmp_path_factory").mktemp("sqlite") / "records.db")
    prepare_file(path, create=True)
    backend, other = (SqliteBackend(path, Environment()) for _ in range(2))
    return Handles(backend, other, f"sqlite://{path}")


def _by_url(
    find: Callable[[pytest.FixtureRequest], str], request: pytest.FixtureRequest, *, group_commits: bool = True
) -> Handles:
    """Open two handles, with group commit as users do, or without."""
    url = find(request)
    backends = (open_backend(url, create=create, group_commits=group_commits) for create in (True, False))
    return Handles(*backends, url)


def _sqlite_url(request: pytest.FixtureRequest) -> str:
    return f"sqlite://{request.getfixturevalue('tmp_path_factory').mktemp('sqlite')}/records.db"


def _server_url(fixture: str, request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(fixture)()
    return url


def _server(fixture: str, *, group_commits: bool = True) -> Callable[[pytest.FixtureRequest], Handles]:
    return partial(_by_url, partial(_server_url, fixture), group_commits=group_commits)


BACKENDS: Mapping[str, tuple[Callable[[pytest.FixtureRequest], Handles], Sequence[pytest.MarkDecorator]]] = {
    "memory": (_memory, ()),
    "memory-groups": (_memory_in_groups, (pytest.mark.slow,)),
    "sqlite": (_sqlite, ()),
    "sqlite-groups": (partial(_by_url, _sqlite_url), ()),
    "postgresql": (_server("new_postgres_url"), ()),
    "postgresql-single": (_server("new_postgres_url", group_commits=False), (pytest.mark.slow,)),
    "mysql": (_server("new_mysql_url"), ()),
    "mysql-single": (_server("new_mysql_url", group_commits=False), (pytest.mark.slow,)),
}
"""By name: the function that opens the handles, and the marks of its tests, such as one that skips them.

Those named ``-single`` send each commit on its own, so that more of them collide in the server.
"""


@contextmanager
def opened(name: str, request: pytest.FixtureRequest) -> Iterator[Handles]:
    """Open the handles of a backend, and close them twice, which must be allowed."""
    handles = BACKENDS[name][0](request)
    try:
        yield handles
    finally:
        for _ in range(2):
            handles.backend.close()
            handles.other.close()
