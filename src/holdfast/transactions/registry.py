"""Find the backend of a database by the scheme of its URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import quote, unquote, urlsplit

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.sql_files import load_schema
from holdfast.transactions.urls import options_of, public_url, split_url
from holdfast.wording import nearest


def _open_sqlite(url: str, environment: Environment, create: bool, in_groups: bool) -> Backend:
    from holdfast.transactions.sqlite.backend import SqliteBackend
    from holdfast.transactions.sqlite.connection import prepare_file

    parts = split_url(url)
    if parts.netloc or not parts.path.startswith("/"):
        raise InvalidRequestError(
            "the URL of an SQLite file has three slashes: write sqlite:///directory/file.db", url=public_url(url)
        )
    path = "/" + unquote(parts.path).lstrip("/")  # people also write four slashes
    options = dict(options_of(parts.query))
    synchronous = options.pop("synchronous", "full")
    if synchronous not in ("full", "normal"):
        raise InvalidRequestError("synchronous is 'full' or 'normal': change the URL", given=synchronous)
    _refuse_rest(options, ("synchronous",))
    prepare_file(path, create=create, clock=environment.clock)
    # One group at a time: the file has one writer anyway, and a larger group needs fewer flushes.
    backend = SqliteBackend(path, environment, synchronous=synchronous)
    return GroupCommit(backend, committers=1, readers=4, clock=environment.clock) if in_groups else backend


def _open_postgres(url: str, environment: Environment, create: bool, in_groups: bool) -> Backend:
    try:
        from holdfast.transactions.postgres.backend import PostgresBackend
        from holdfast.transactions.postgres.connection import PostgresAddress, prepare_database
    except ImportError as error:
        raise UnsupportedError("PostgreSQL needs its driver: pip install 'holdfast[postgres]'") from error
    address, options = PostgresAddress.parse(url)
    connections = _connections(options)
    prepare_database(address, create=create)
    backend = PostgresBackend(address, environment, connections=connections)
    return GroupCommit(backend, connections=connections, clock=environment.clock) if in_groups else backend


def _open_mysql(url: str, environment: Environment, create: bool, in_groups: bool) -> Backend:
    try:
        from holdfast.transactions.mysql.backend import MysqlBackend
        from holdfast.transactions.mysql.options import parse_mysql_url
        from holdfast.transactions.mysql.schema import prepare_database
    except ImportError as error:
        raise UnsupportedError("MySQL and MariaDB need a driver: pip install 'holdfast[mysql]'") from error
    options = parse_mysql_url(url)
    prepare_database(options, create=create)
    backend = MysqlBackend(options, environment)
    return GroupCommit(backend, connections=options.connections, clock=environment.clock) if in_groups else backend


def _connections(options: dict[str, str]) -> int:
    given = options.pop("connections", "8")
    if not given.isascii() or not given.isdigit() or not 0 < int(given) <= 1000:
        raise InvalidRequestError("connections is a number from 1 to 1000: change the URL", given=given)
    return int(given)


def _refuse_rest(options: dict[str, str], known: tuple[str, ...]) -> None:
    for name in options:
        raise InvalidRequestError(f"the URL of the database has an unknown option: {nearest(name, known)}", option=name)


_MEMORY: dict[str, MemoryBackend] = {}


def _open_memory(url: str, environment: Environment, create: bool, in_groups: bool) -> Backend:
    """Return the database of this name in this process, for tests."""
    return _MEMORY.setdefault(urlsplit(url).netloc, MemoryBackend(environment.ids))


SCHEMES: dict[str, Callable[[str, Environment, bool, bool], Backend]] = {
    "sqlite": _open_sqlite,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    "mysql": _open_mysql,
    "mariadb": _open_mysql,
    "memory": _open_memory,
}


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
    if not separator and (name := url.partition(":")[0]) in SCHEMES and name != url:
        raise _without_slashes(name, url)
    if not separator or scheme not in SCHEMES:
        raise InvalidRequestError(
            f"a database needs a URL such as sqlite:///directory/file.db: {nearest(scheme, SCHEMES)}",
            given=scheme if separator else "no scheme",
        )
    split_url(url)  # or it is refused, before anything shows a part of it
    url, in_groups = _take_group(url)
    return SCHEMES[scheme](url, environment or Environment(), create, in_groups)


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


_PACKAGES = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""The packages of `holdfast.transactions` with the schemas of databases, by scheme."""


def schema_of(url: str) -> int:
    """Return the version of the schema that a database has once it is open; 0 if its backend needs no tables."""
    package = _PACKAGES.get(url.partition("://")[0])
    return 0 if package is None else len(load_schema(f"holdfast.transactions.{package}"))
