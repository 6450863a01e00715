"""Connect to PostgreSQL, create and migrate the schema, and translate the server's errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import conninfo, errors, sql
from psycopg.abc import PQGen

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.runtime import SystemClock
from holdfast.runtime.process import require_same_process
from holdfast.transactions.postgres.group import register_arrays
from holdfast.transactions.registry import parse_connections, parse_query, split_url
from holdfast.transactions.sql import load_queries, load_schema, require_schema

T = TypeVar("T")

_SQL = load_queries(__package__)
_LONGEST_NAME_BYTES = 63
_CONNECT_TIMEOUT_S = 10
_LOCK_TIMEOUT_S = 30
_STATEMENT_TIMEOUT_S = 60
"""Several waits for locks, one after the other, end then."""

_SILENCE_S = 75.0
"""A server that has said nothing for so long is gone: it would have ended the statement before."""

_IDLE_S = 60
"""After so long without a statement, the server ends a transaction, so that a client that vanished keeps no locks."""

_BOUNDS = (
    f"-c lock_timeout={_LOCK_TIMEOUT_S}s -c statement_timeout={_STATEMENT_TIMEOUT_S}s"
    f" -c idle_in_transaction_session_timeout={_IDLE_S}s -c jit=off -c client_min_messages=warning"
)
"""What a URL may change with its own ``options``."""

_HAS_TRANSACTION_TIMEOUT = 17_00_00
"""From this version on, a server may end whole transactions. The bounds above are enough, and snapshots may last."""

_MEANING = r"-c default_transaction_isolation=read\ committed"
"""What nothing may change: under a higher level, a commit would count ranges in a snapshot from before its locks."""

_CLOCK = SystemClock()


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection to PostgreSQL whose waits for the server have a bound. After one has timed out, close it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pid = os.getpid()

    def wait(self, gen: PQGen[T], *args: Any, **options: Any) -> T:
        """Wait for the server, as psycopg's own method does, but with a bound.

        Raises:
            psycopg.OperationalError: the server has said nothing for too long; what it did is unknown.
            UnavailableError: another process has opened the connection; nothing is sent.
        """
        require_same_process(self._pid)
        return super().wait(_relay_waits_with_timeout(gen), *args, **options)


def _relay_waits_with_timeout(gen: PQGen[T]) -> PQGen[T]:
    """Pass on what a generator of the driver waits for, until nothing has come for too long."""
    deadline_s = _CLOCK.elapsed_s() + _SILENCE_S
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            now_s = _CLOCK.elapsed_s()
            if ready:
                deadline_s = now_s + _SILENCE_S
            elif now_s > deadline_s:
                raise psycopg.OperationalError("the server does not answer")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a PostgreSQL database and of the schema with Holdfast's tables.

    Attributes:
        info: libpq's connection string; contains the password, so it is never shown.
        schema: the schema of the tables.
        where: the database without secrets, for messages.
    """

    info: str
    schema: str
    where: str

    def __repr__(self) -> str:
        return f"PostgresAddress({self.where!r})"

    @staticmethod
    def parse(url: str) -> tuple[PostgresAddress, int]:
        """Return the address in a ``postgresql://`` URL, and the most connections that its options allow.

        Options that are not Holdfast's belong to libpq.

        Raises:
            InvalidRequestError: libpq does not understand the URL, or an option of Holdfast is not valid.
        """
        parts = split_url(url)
        given = dict(parse_query(parts.query))
        connections = parse_connections(given.pop("connections", "8"))
        schema = given.pop("schema", "holdfast")
        rest = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given.items())
        plain = f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
        try:
            found = conninfo.conninfo_to_dict(plain)
        except psycopg.ProgrammingError:
            # Without the cause: libpq's message repeats the URL, with the password.
            raise InvalidRequestError(
                "the URL of the database is not valid: write postgresql://user@host:port/database"
            ) from None
        _check_schema_name(schema)
        host = f"{found.get('host', '')}:{found['port']}" if "port" in found else str(found.get("host", ""))
        where = f"postgresql://{host}/{found.get('dbname', '')}?schema={schema}"
        return PostgresAddress(plain, schema, where), connections


def _check_schema_name(name: str) -> None:
    if not 0 < len(name.encode()) <= _LONGEST_NAME_BYTES or "\0" in name:
        raise InvalidRequestError(
            f"a schema's name has 1 to {_LONGEST_NAME_BYTES} bytes: choose another one", schema=name
        )
    if name.startswith("pg_") or name == "$user":
        raise InvalidRequestError("this schema's name has a meaning of its own: choose another one", schema=name)


def connect(address: PostgresAddress) -> Connection:
    """Open a connection to a PostgreSQL database, with Holdfast's settings.

    Raises:
        AccessDeniedError, NotFoundError, UnavailableError: see the message; nothing happened.
    """
    given = conninfo.conninfo_to_dict(address.info)
    settings: dict[str, Any] = {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "application_name": "holdfast",
        "keepalives_idle": 30,
        "tcp_user_timeout": 60_000,
        **given,
        "options": f"{_BOUNDS} {given.get('options') or ''} {_MEANING}",
    }
    with convert_connection_errors(address):
        connection = Connection.connect(
            autocommit=True,
            prepare_threshold=0,  # the few statements of a database are worth preparing at once
            **settings,
        )
        try:
            register_arrays(connection)
            connection.execute(_make_setup_statement(connection).format(sql.Identifier(address.schema)), prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection


def _make_setup_statement(connection: Connection) -> sql.SQL:
    has_limit = connection.info.server_version >= _HAS_TRANSACTION_TIMEOUT
    return sql.SQL("SET search_path TO {}; SET transaction_timeout TO 0" if has_limit else "SET search_path TO {}")


def prepare_database(address: PostgresAddress, *, create: bool) -> None:
    """Check the schema of a PostgreSQL database, and bring it to the present version.

    Args:
        create: whether to create the schema and its tables if they do not exist.

    Raises:
        NotFoundError: there are no tables, and `create` is False.
        UnsupportedError: the database's schema is newer than this release.
        AccessDeniedError: the user may not create tables.
    """
    scripts = load_schema("holdfast.transactions.postgres")
    connection = connect(address)
    try:
        with convert_statement_errors(address):
            if _fetch_value(connection, "may_use_schema", address.schema) is False:  # what is in it could not be seen
                raise AccessDeniedError(
                    "the user may not use the schema: grant USAGE on it, and the rights on its tables",
                    database=address.where,
                )
            if _read_schema_version(connection) == len(scripts):
                return
            with connection.transaction():
                # Another process may be migrating. The number is arbitrary, and the same for everybody.
                connection.execute("SELECT pg_advisory_xact_lock(4819305)")
                found = _read_schema_version(connection)
                require_schema(found, len(scripts), create=create, where=address.where)
                if not found:
                    if not _fetch_value(connection, "has_schema", address.schema):
                        # Not "if not exists": a user without the right to create schemas may still own this one.
                        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
                    connection.execute("CREATE TABLE schema_version (version int NOT NULL PRIMARY KEY)")
                for number, script in enumerate(scripts[found:], found + 1):
                    connection.execute(script.encode(), prepare=False)
                    connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
    finally:
        connection.close()


def _fetch_value(connection: Connection, query: str, *arguments: object) -> Any:
    """Return the only value of a query's first row; None if there is no row."""
    row = connection.execute(_SQL[query].encode(), arguments).fetchone()
    return None if row is None else row[0]


def _read_schema_version(connection: Connection) -> int:
    return (_fetch_value(connection, "schema_version") or 0) if _fetch_value(connection, "schema_exists") else 0


_UNREACHABLE = "the database cannot be reached: check that the server runs and that host and port are right"
_NO_PASSWORD = "the database asks for a password, and there is none: put it into the url, or into ~/.pgpass"
_LOGIN = "the database rejects the user or the password: check both"
_NO_DATABASE = "the database does not exist: create it first, such as with createdb"
_CROWDED = "the database server has no connection left: allow more there, or fewer here"
_TLS = "the server failed the checks of TLS: check sslmode and certificates"
_CLOSED = "the database accepts no connections now: allow them, or repeat later"

_REFUSALS: Mapping[str, tuple[type[HoldfastError], str]] = {
    "no password supplied": (AccessDeniedError, _NO_PASSWORD),
    "authentication failed|no pg_hba.conf entry|role .* does not exist": (AccessDeniedError, _LOGIN),
    "database .* does not exist": (NotFoundError, _NO_DATABASE),
    "permission denied": (AccessDeniedError, "the user has no rights on the database: ask its owner"),
    "too many|connection slots": (UnavailableError, _CROWDED),
    "not support ssl|certificate": (InvalidRequestError, _TLS),
    "not currently accepting connections|starting up|shutting down": (UnavailableError, _CLOSED),
}
"""What a server says to a connection attempt, in lower case, and what that means."""


@contextmanager
def convert_connection_errors(address: PostgresAddress) -> Iterator[None]:
    """Raise errors of a connection attempt in a ``with`` block as Holdfast's. Nothing has happened in the database."""
    try:
        yield
    except psycopg.Error as error:
        text = str(error).lower()
        kind, message = next(
            (meant for words, meant in _REFUSALS.items() if re.search(words, text)), _classify_connection_error(error)
        )
        raise kind(message, database=address.where, **_find_rejected_user(error)) from error


def _classify_connection_error(error: psycopg.Error) -> tuple[type[HoldfastError], str]:
    if isinstance(error, psycopg.ProgrammingError):
        return InvalidRequestError, "an option in the URL of the database is not valid: change it"
    return UnavailableError, _UNREACHABLE


def _find_rejected_user(error: psycopg.Error) -> dict[str, str]:
    """Return the user that the server rejects: without one in the URL, libpq takes that of the process."""
    found = re.search(r'(?:user|role) "([^"]+)"', str(error))
    return {} if found is None else {"user": found[1]}


_STANDBY = "the server is read-only: connect to the primary server, or repeat when this one is the primary"
_FULL = "the disk or the memory of the database is full: free some space, then repeat"
_ENDED = "the database has ended a transaction that did nothing for too long: repeat it"
_BLOCKED = "another transaction in the database holds a lock for too long: repeat later"
_NO_TABLES = "the database has no tables of Holdfast: create them first"

_ANSWERS: Mapping[type[psycopg.Error], tuple[type[HoldfastError], str]] = {
    errors.UndefinedTable: (NotFoundError, _NO_TABLES),
    errors.UndefinedFunction: (NotFoundError, _NO_TABLES),
    errors.InvalidSchemaName: (NotFoundError, _NO_TABLES),
    errors.InsufficientPrivilege: (AccessDeniedError, "the user has too few rights in the database: ask its owner"),
    errors.ReadOnlySqlTransaction: (UnavailableError, _STANDBY),  # which may be promoted at any moment
    errors.DiskFull: (StorageFullError, _FULL),
    errors.OutOfMemory: (StorageFullError, _FULL),
    errors.IdleInTransactionSessionTimeout: (UnavailableError, _ENDED),
    errors.ProgramLimitExceeded: (InvalidRequestError, "the transaction is too large for the database: split it"),
    errors.LockNotAvailable: (UnavailableError, _BLOCKED),
    errors.QueryCanceled: (UnavailableError, _BLOCKED),
}


@contextmanager
def convert_statement_errors(address: PostgresAddress) -> Iterator[None]:
    """Convert the errors of statements in a ``with`` block into Holdfast's.

    An error that the server returned has ended the transaction without effect. Only if the connection broke is the
    outcome unknown.

    Raises:
        OutcomeUnknownError: the connection broke; for a read, this means that nothing happened.
    """
    try:
        yield
    except psycopg.Error as error:
        if type(error) in _ANSWERS:
            kind, message = _ANSWERS[type(error)]
            raise kind(message, database=address.where) from error
        code = error.sqlstate or ""
        if isinstance(error, psycopg.OperationalError) and (not code or code.startswith(("57P", "08"))):
            raise OutcomeUnknownError(
                "the connection to the database broke: read before repeating", database=address.where
            ) from error
        if isinstance(error, psycopg.OperationalError):
            raise UnavailableError("the database refused a statement: repeat later", database=address.where) from error
        raise CorruptDataError("the database refused a statement: report this", database=address.where) from error


@contextmanager
def convert_read_errors(address: PostgresAddress) -> Iterator[None]:
    """Convert errors of statements that change no records; a broken connection becomes an `UnavailableError`."""
    try:
        with convert_statement_errors(address):
            yield
    except OutcomeUnknownError as error:
        raise UnavailableError("the database went away: repeat later", database=address.where) from error
