"""Keep the databases of a worker process open from task to task.

Connections are made after a fork: Spark forks its workers, and reuses them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import unquote

from holdfast.records.database import Database
from holdfast.records.opening import open_database
from holdfast.runtime import Environment
from holdfast.transactions.urls import split_url

_MOST = 4


@dataclass(frozen=True, slots=True)
class _Place:
    """A database, as one process sees it: a file that was replaced is another one."""

    pid: int
    url: str
    file: tuple[int, int] | None


_open: dict[_Place, Database] = {}


def database_of_process(url: str) -> Database:
    """Return the open database of a URL; open it if this process has not.

    It sends each commit by itself: a task has one thread, so nothing is gained by waiting for others.

    Raises: see `open_database`.
    """
    place = _Place(os.getpid(), url, _file_of(url))
    found = _open.pop(place, None)
    if found is None:
        found = open_database(_alone(url), environment=Environment())
    for old in [one for one in _open if one.pid == place.pid and one.url == url]:
        _open.pop(old).close()
    _open[place] = found  # at the end: those at the front were not used for longest
    while len(_open) > _MOST:
        _open.pop(next(iter(_open))).close()
    return found


def _alone(url: str) -> str:
    """Return a URL that opens a database without group commit."""
    if "group=" in url.partition("?")[2]:
        return url
    return f"{url}{'&' if '?' in url else '?'}group=off"


def _file_of(url: str) -> tuple[int, int] | None:
    """Return what identifies the file of an SQLite database."""
    if not url.startswith("sqlite:"):
        return None
    try:
        status = os.stat(unquote(split_url(url).path))
    except OSError:
        return None
    return status.st_dev, status.st_ino
