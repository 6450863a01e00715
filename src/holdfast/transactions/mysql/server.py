"""Check a server, create and migrate the tables of a database, flush the server's log, and translate its errors."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pymysql

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Environment
from holdfast.transactions.mysql.connection import MysqlOptions, MysqlSession, connect
from holdfast.transactions.sql import iter_retries_until_timeout, load_queries, load_schema, require_schema

_SQL = load_queries(__package__)
_OLDEST_MYSQL = (8, 0)
_OLDEST_MARIADB = (10, 6)


def prepare_database(options: MysqlOptions, *, create: bool) -> None:
    """Check a MySQL or MariaDB server, and bring the schema of a database to the present version.

    Args:
        create: whether to create the tables if the database has none.

    Raises:
        AccessDeniedError: the server refuses the user, or the user may not create tables.
        NotFoundError: there is no such database, or it has no tables and `create` is False.
        UnavailableError: the server cannot be reached, or another process migrates for too long.
        UnsupportedError: the server is too old or of a kind that cannot lock, or the schema is newer than this release.

    Crash: repeat; every statement of a migration can be repeated.
    """
    where = options.where
    with convert_mysql_errors(where):
        session = connect(options, number=0)
        try:
            variables = dict(session.send(_SQL["cluster"])[0].rows)
            check_server(str(session.send(_SQL["server"])[0].rows[0][0]), variables, where)
            scripts = load_schema(__package__)
            found = _read_schema_version(session)
            require_schema(found, len(scripts), create=create, where=where)
            if found < len(scripts):
                _migrate_schema(session, scripts, options)
        finally:
            session.close()


def check_server(version: str, variables: Mapping[str, str], where: str) -> None:
    """Refuse a server that is too old, or on which the locks of transactions would not hold.

    Args:
        version: what the server calls itself.
        variables: settings that tell whether several servers accept writes.
        where: the database, without secrets, for the message.

    Raises:
        UnsupportedError: the server is such a one.
    """
    number = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", version)
    oldest = _OLDEST_MARIADB if "MariaDB" in version else _OLDEST_MYSQL
    if "TiDB" in version or number is None or (int(number[1]), int(number[2])) < oldest:
        raise UnsupportedError(
            "this server is not supported: use MySQL 8.0 or MariaDB 10.6, or a newer one",
            database=where,
            server=version,
        )
    if variables.get("wsrep_on") == "ON" or variables.get("group_replication_single_primary_mode") == "OFF":
        raise UnsupportedError(
            "the servers of this cluster all accept writes, and do not see each other's shared locks: use a single"
            " server, or a cluster with one primary",
            database=where,
        )


def _migrate_schema(session: MysqlSession, scripts: tuple[str, ...], options: MysqlOptions) -> None:
    """Carry out the scripts that are missing, while no other process does."""
    query = f"SELECT GET_LOCK('{migration_lock_name(options)}', {int(options.timeout_s) + 1})"
    if session.send(query)[0].rows[0][0] != 1:
        raise UnavailableError(
            "another process migrates the database for too long: repeat later", database=options.where
        )
    found = _read_schema_version(session)  # now that no other process migrates; the lock ends with the connection
    for number, script in enumerate(scripts[found:], found + 1):
        for statement in script.split(";\n"):
            if re.sub(r"^--.*$", "", statement, flags=re.MULTILINE).strip():
                session.send(statement)
        session.send(_SQL["save_schema_version"].format(version=number))


def migration_lock_name(options: MysqlOptions) -> str:
    """Return the name of the server-wide lock that a migration of this database's schema holds."""
    return "holdfast-" + hashlib.sha256(options.database.encode()).hexdigest()[:32]


def _read_schema_version(session: MysqlSession) -> int:
    """Return the version of the schema; 0 for an empty database."""
    try:
        rows = session.send(_SQL["schema_version"])[0].rows
    except pymysql.ProgrammingError as error:
        if error_code(error) != _MISSING_TABLE:
            raise
        return 0
    return int(rows[0][0]) if rows else 0


# --- flushes ---------------------------------------------------------------------------------------------------------
_ONCE, _TWICE = 1, 3
"""Every commit flushes; with a binary log, only what prepares it, or, with MariaDB's 3, also what ends it."""

_NO_RIGHT = 1227


def make_server_log_durable(session: MysqlSession, environment: Environment, timeout_s: float) -> None:
    """Flush the log of a MySQL or MariaDB server to disk, or wait until the server has.

    With a binary log, a commit is as durable as that: what is prepared in the log, and not in the binary log, a server
    that starts after a crash takes back. By default (`sync_binlog`), MariaDB syncs the binary log late.

    MySQL flushes the log on request. MariaDB then does nothing with the setting 0, and does not sync the file
    with 2; but once a second it flushes the log by itself, and tells how far it is. With it, it flushes what ends the
    commits, which then need no binary log.

    Args:
        timeout_s: how many seconds to wait for a server that flushes by itself.

    Raises:
        pymysql.MySQLError: it failed; perhaps parts of the log are on the disk.
        UnavailableError: the server did not flush in time.
        UnsupportedError: the user may not flush it.

    Source: MySQL manual, "innodb_flush_log_at_trx_commit", "sync_binlog" and "FLUSH ENGINE LOGS"; MariaDB
    11.8, `innobase_flush_logs` in storage/innobase/handler/ha_innodb.cc, and the status variables ``Innodb_lsn_…``.
    """
    (reply,) = session.run([_SQL["when_flushed"]])
    flushes, has_binary_log, synced_after = map(int, reply.rows[0])
    if flushes == _TWICE or (flushes == _ONCE and (not has_binary_log or synced_after == 1)):
        return
    place = _read_log_positions(session)
    if not place:
        _flush_server_log(session)
        return
    for _ in iter_retries_until_timeout(environment, timeout_s):
        if _read_log_positions(session)["innodb_lsn_flushed"] >= place["innodb_lsn_current"]:
            return
    raise UnavailableError("the server does not flush its log: set innodb_flush_log_at_trx_commit and sync_binlog to 1")


def _read_log_positions(session: MysqlSession) -> dict[str, int]:
    """Return where MariaDB's log ends, in memory and on the disk; nothing if it is another server."""
    (reply,) = session.run([_SQL["places_in_log"]])
    return {str(name).lower(): int(value) for name, value in reply.rows}


def _flush_server_log(session: MysqlSession) -> None:
    try:
        session.run([_SQL["flush_log"]])
    except pymysql.MySQLError as error:
        if error_code(error) != _NO_RIGHT:
            raise
        raise UnsupportedError(
            "the server loses commits when it crashes: set innodb_flush_log_at_trx_commit and sync_binlog to 1, or "
            "grant RELOAD"
        ) from error


# --- errors -----------------------------------------------------------------------------------------------------------
_BUSY = {1020, 1205, 1213, 1317, 1969, 3024}
"""A lock was not free in time, a deadlock was resolved, or an administrator or a time limit ended the statement."""

HELD = 1205
DEADLOCK = 1213

_LOST = {0, 1040, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1927, 2002, 2003, 2006, 2013, 2055, 3169, 4031}
"""The server is not there, is going down, has no connection left, or has closed this one."""

_CROWDED = {1040, 1203, 1226}

_MISSING_TABLE = 1146

_NO_SPACE = {1021, 1114}
_MAYBE_NO_SPACE = {3, 1026, 1030}  # failed writes: the message contains the error of the operating system

_DENIED = "the user may not do this in the database: grant SELECT, INSERT, UPDATE and DELETE, and CREATE for the tables"
_LOGIN = "the database does not accept this user and password: check both"
_READ_ONLY = "the server is read-only: connect to the primary server, or repeat when this one is the primary"
_TOO_LARGE = "the server's limit for packets is too small: set max_allowed_packet to at least 16M"

_ERRORS: Mapping[int, tuple[type[HoldfastError], str]] = {
    1044: (AccessDeniedError, _DENIED),
    1045: (AccessDeniedError, _LOGIN),
    1698: (AccessDeniedError, _LOGIN),
    1130: (AccessDeniedError, "the database accepts no connections from this machine: grant the user its host"),
    1142: (AccessDeniedError, _DENIED),
    1143: (AccessDeniedError, _DENIED),
    1227: (AccessDeniedError, _DENIED),
    1370: (AccessDeniedError, _DENIED),
    1049: (NotFoundError, "the database does not exist: create it first, with CREATE DATABASE"),
    _MISSING_TABLE: (NotFoundError, "the database has no tables of Holdfast: create them first"),
    1153: (InvalidRequestError, _TOO_LARGE),
    1286: (UnsupportedError, "the server has no InnoDB: enable it"),
    1290: (UnavailableError, _READ_ONLY),
    1792: (UnavailableError, _READ_ONLY),
    1836: (UnavailableError, _READ_ONLY),
    1665: (UnsupportedError, "the server logs statements: set binlog_format to ROW or MIXED"),
    2026: (InvalidRequestError, "the server has no TLS, and ssl=require or ssl=verify asks for it: change one of them"),
}


def error_code(error: BaseException) -> int:
    """Return the server's number of an error; 0 if PyMySQL itself found the connection closed or out of step."""
    code = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else -1
    if isinstance(error, pymysql.InternalError | pymysql.InterfaceError) and not isinstance(code, int):
        return 0
    return code if isinstance(code, int) else -1


def is_busy_error(error: BaseException) -> bool:
    """Return whether an error means that other transactions were in the way: nothing happened, a retry may succeed."""
    return error_code(error) in _BUSY


def is_connection_lost_error(error: BaseException) -> bool:
    """Return whether an error means that the connection is lost. The outcome of a commit on it is then unknown."""
    return error_code(error) in _LOST and _tls_failure(error) is None


def as_holdfast_error(error: pymysql.MySQLError, where: str) -> HoldfastError:
    """Return Holdfast's error for an error of PyMySQL after which it is certain that nothing happened.

    Args:
        where: the database, without secrets, for the message.
    """
    code = error_code(error)
    tls = _tls_failure(error)
    if tls is not None:
        return InvalidRequestError(
            "the server failed the checks of TLS: check its certificate, ssl and ssl_ca", database=where, reason=tls
        )
    if code in _CROWDED:
        return UnavailableError(
            "the database server has no connection left: allow more there, or fewer here", database=where, code=code
        )
    if is_connection_lost_error(error):
        return UnavailableError("the database server cannot be reached: repeat later", database=where, code=code)
    if is_busy_error(error):
        return UnavailableError(
            "other transactions hold the records for too long: repeat later", database=where, code=code
        )
    if code in _NO_SPACE or (code in _MAYBE_NO_SPACE and "28" in str(error.args[1:])):
        return StorageFullError("the disk of the database is full: free some space, then repeat", database=where)
    kind, message = _ERRORS.get(code, (CorruptDataError, "the database refused a statement: report this"))
    if message is _LOGIN and (login := re.search("for user '([^']+)'", str(error.args[1:]))) is not None:
        return kind(message, database=where, user=login[1])  # without one in the URL, it is that of the process
    return kind(message, database=where, **({} if code in _ERRORS else {"code": code}))


def _tls_failure(error: BaseException) -> str | None:
    original = getattr(error, "original_exception", error)
    return original.verify_message if isinstance(original, ssl.SSLCertVerificationError) else None


@contextmanager
def convert_mysql_errors(where: str) -> Iterator[None]:
    """Raise PyMySQL's errors in a ``with`` block as Holdfast's; for calls that change nothing when they fail.

    Args:
        where: the database, without secrets, for the message.
    """
    try:
        yield
    except pymysql.MySQLError as error:
        raise as_holdfast_error(error, where) from error
