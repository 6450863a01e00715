"""Find the backend of a database by the scheme of its URL.

Other packages add a database by registering a function like `open_backend` of the packages here, which opens the
database of a URL, as an entry point, one per scheme::

    [project.entry-points."holdfast.databases"]
    cockroachdb = "holdfast_cockroachdb:open_backend"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from urllib.parse import quote

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions import memory
from holdfast.transactions.base import Backend
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.sql_files import load_schema
from holdfast.transactions.urls import split_url
from holdfast.wording import nearest

ENTRY_POINT_GROUP = "holdfast.databases"

_BUILT_IN: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""By scheme: the package of `holdfast.transactions` whose `backend` opens it, and whose extra brings its driver."""

_MEMORY = "memory"


def open_backend(url: str, environment: Environment | None = None, *, create: bool = False) -> Backend:
    """Open a database with group commit, and bring its schema to the present version.

    Args:
        url: ``sqlite:///directory/file.db``, ``postgresql://user:password@host:port/database?schema=holdfast``,
            ``mysql://…`` or, within one process, ``memory://name``. Options in the query: ``connections`` (servers),
            ``synchronous`` (SQLite), ``group`` (all but memory); PostgreSQL's driver takes its own there too.
            ``group=off`` sends each commit and each read on its own, instead of together with those of other threads:
            for measurements, and for processes with one thread.
        create: whether to create the tables if the database has none.

    Raises:
        InvalidRequestError: the URL is wrong.
        UnsupportedError: the driver is not installed, or the schema is newer than this release.
        NotFoundError: the database does not exist or is empty, and `create` is False.
        AccessDeniedError, UnavailableError: see the message.
    """
    scheme, separator, _ = url.partition("://")
    if not separator and (name := url.partition(":")[0]) in (*_BUILT_IN, _MEMORY) and name != url:
        raise _without_slashes(name, url)
    opener = _opener(scheme) if separator else None
    if opener is None:
        raise InvalidRequestError(
            "a database needs a URL such as sqlite:///directory/file.db: "
            + nearest(scheme, (*_BUILT_IN, _MEMORY, *_entry_points())),
            given=scheme if separator else "no scheme",
        )
    split_url(url)  # or it is refused, before anything shows a part of it
    url, in_groups = _take_group(url)
    environment = environment or Environment()
    found = opener(url, environment, create=create)
    return GroupCommit(found, clock=environment.clock) if in_groups and scheme != _MEMORY else found


def _opener(scheme: str) -> Callable[..., Backend] | None:
    """Return the function that opens databases of a scheme; None for an unknown scheme."""
    found: Callable[..., Backend]
    if scheme == _MEMORY:
        return memory.open_backend
    if scheme in _BUILT_IN:
        package = _BUILT_IN[scheme]
        try:
            found = import_module(f"holdfast.transactions.{package}.backend").open_backend
            return found
        except ImportError as error:
            raise UnsupportedError(f"{scheme}:// needs its driver: pip install 'holdfast[{package}]'") from error
    load = _entry_points().get(scheme)
    try:
        return None if load is None else load()
    except Exception as error:  # importing another package's module may raise anything
        raise UnsupportedError(
            "the package that provides this url scheme cannot be imported: reinstall it", scheme=scheme
        ) from error


def _entry_points() -> Mapping[str, Callable[[], Callable[..., Backend]]]:
    """Return what loads the openers of other packages, by scheme: the search reads the metadata of all packages."""
    from importlib.metadata import entry_points  # deferred: it takes 7 ms, and built-in backends never need it

    return {entry.name: entry.load for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _without_slashes(scheme: str, url: str) -> InvalidRequestError:
    if scheme != "sqlite":  # the rest is not shown: it may hold a password
        return InvalidRequestError(f"the URL of a database has two slashes: write {scheme}://")
    path, question, query = url.removeprefix("sqlite:").partition("?")
    file = quote(os.path.abspath(path), safe="/%")
    return InvalidRequestError(f"the URL of an SQLite file has three slashes: write sqlite://{file}{question}{query}")


def _take_group(url: str) -> tuple[str, bool]:
    """Take the option ``group`` out of a URL, and leave the rest as it is: drivers differ in how they decode it."""
    place, _, query = url.partition("?")
    options = query.split("&")
    given = [one.removeprefix("group=") for one in options if one.startswith("group=")]
    if not given:
        return url, True
    if given not in (["on"], ["off"]):
        raise InvalidRequestError("group is 'on' or 'off': change the URL", given="&".join(given))
    rest = "&".join(one for one in options if not one.startswith("group="))
    return f"{place}?{rest}" if rest else place, given == ["on"]


def schema_of(url: str) -> int:
    """Return the version of the schema that a database has once it is open; 0 if its backend needs no tables."""
    package = _BUILT_IN.get(url.partition("://")[0])
    return 0 if package is None else len(load_schema(f"holdfast.transactions.{package}"))
