"""Connect to PostgreSQL, create and migrate the schema, and translate the server's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo, errors, sql

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
from holdfast.transactions.postgres.arrays import register_arrays
from holdfast.transactions.schema_version import require_schema
from holdfast.transactions.sql_files import load_queries, load_schema

__all__ = ["Connection", "PostgresAddress", "connect", "connection_errors", "prepare_database", "statement_errors"]

Connection = psycopg.Connection[tuple[Any, ...]]

_SQL = load_queries(__package__)
_CONNECT_TIMEOUT_S = 10
_LOCK_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is.

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
    def parse(url: str) -> tuple[PostgresAddress, dict[str, str]]:
        """Split a URL into the address and Holdfast's own options; all others belong to libpq.

        Raises:
            InvalidRequestError: libpq does not understand the URL.
        """
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        own: dict[str, str] = {name: given.pop(name) for name in ("connections", "schema") if name in given}
        plain = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(given), ""))
        try:
            found = conninfo.conninfo_to_dict(plain)
        except psycopg.ProgrammingError:
            # Without the cause: libpq's message repeats the URL, with the password.
            raise InvalidRequestError(
                "the URL of the database is not valid: write postgresql://user@host:port/database"
            ) from None
        schema = own.pop("schema", "holdfast")
        host = f"{found.get('host', '')}:{found['port']}" if "port" in found else str(found.get("host", ""))
        where = f"postgresql://{host}/{found.get('dbname', '')}?schema={schema}"
        return PostgresAddress(plain, schema, where), own


def connect(address: PostgresAddress) -> Connection:
    """Open a connection.

    Raises:
        AccessDeniedError, NotFoundError, UnavailableError: see the message; nothing happened.
    """
    with connection_errors(address):
        connection = psycopg.connect(
            address.info,
            autocommit=True,
            prepare_threshold=0,  # the few statements of a store are worth preparing at once
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name="holdfast",
            options=f"-c lock_timeout={_LOCK_TIMEOUT_S}s -c jit=off -c client_min_messages=warning",
            keepalives_idle=30,
            tcp_user_timeout=60_000,
        )
        try:
            register_arrays(connection)
            connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(address.schema)))
        except BaseException:
            connection.close()
            raise
        return connection


def prepare_database(address: PostgresAddress, *, create: bool) -> None:
    """Check the schema of a database, and bring it to the present version.

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
        with statement_errors(address):
            if _version(connection) == len(scripts):
                return
            with connection.transaction():
                # Another process may be migrating. The number is arbitrary, and the same for everybody.
                connection.execute("SELECT pg_advisory_xact_lock(4819305)")
                found = _version(connection)
                require_schema(found, len(scripts), create=create, where=address.where)
                if not found:
                    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema)))
                    connection.execute("CREATE TABLE schema_version (version int NOT NULL PRIMARY KEY)")
                for number, script in enumerate(scripts[found:], found + 1):
                    connection.execute(script.encode(), prepare=False)
                    connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
    finally:
        connection.close()


def _version(connection: Connection) -> int:
    exists = connection.execute(_SQL["schema_exists"].encode()).fetchone()
    if exists is None or not exists[0]:
        return 0
    row = connection.execute(_SQL["schema_version"].encode()).fetchone()
    return int(row[0] or 0) if row else 0


@contextmanager
def connection_errors(address: PostgresAddress) -> Iterator[None]:
    """Raise errors of a connection attempt as Holdfast's. Nothing has happened in the database."""
    try:
        yield
    except psycopg.Error as error:
        text = str(error).lower()
        kind: type[HoldfastError] = UnavailableError
        message = "the database cannot be reached: check that the server runs and that host and port are right"
        if "authentication failed" in text or "no pg_hba.conf entry" in text or "no password supplied" in text:
            kind, message = AccessDeniedError, "the database rejects the user or the password: check both"
        elif "does not exist" in text and "database" in text:
            kind, message = NotFoundError, "the database does not exist: create it first"
        elif "role" in text and "does not exist" in text:
            kind, message = AccessDeniedError, "the database rejects the user or the password: check both"
        elif "permission denied" in text:
            kind, message = AccessDeniedError, "the user has no rights on the database: ask its owner"
        elif isinstance(error, psycopg.ProgrammingError):
            kind, message = InvalidRequestError, "an option in the URL of the database is not valid: change it"
        raise kind(message, database=address.where) from error


_ANSWERS: tuple[tuple[tuple[type[psycopg.Error], ...], type[HoldfastError], str], ...] = (
    (
        (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName),
        NotFoundError,
        "the database has no tables of Holdfast: create them first",
    ),
    (
        (errors.InsufficientPrivilege,),
        AccessDeniedError,
        "the user has too few rights in the database: ask its owner",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        AccessDeniedError,
        "the database accepts no writes: connect to its primary server",
    ),
    (
        (errors.DiskFull, errors.OutOfMemory),
        StorageFullError,
        "the disk or the memory of the database is full: free some space, then repeat",
    ),
    (
        (errors.LockNotAvailable, errors.QueryCanceled),
        UnavailableError,
        "another transaction in the database holds a lock for too long: repeat later",
    ),
)


@contextmanager
def statement_errors(address: PostgresAddress) -> Iterator[None]:
    """Raise the server's answers to a statement as Holdfast's errors.

    Each answer ended the transaction without effect. Only if the connection broke is the outcome unknown.

    Raises:
        OutcomeUnknownError: the connection broke; for a read, this means that nothing happened.
    """
    try:
        yield
    except psycopg.Error as error:
        for classes, kind, message in _ANSWERS:
            if isinstance(error, classes):
                raise kind(message, database=address.where) from error
        code = error.sqlstate or ""
        if isinstance(error, psycopg.OperationalError) and (not code or code.startswith(("57P", "08"))):
            raise OutcomeUnknownError(
                "the connection to the database broke: read before repeating", database=address.where
            ) from error
        if isinstance(error, psycopg.OperationalError):
            raise UnavailableError("the database refused a statement: repeat later", database=address.where) from error
        raise CorruptDataError("the database refused a statement: report this", database=address.where) from error
