"""Sort the errors of PyMySQL by what they mean for a transaction, and translate them to Holdfast's."""

from __future__ import annotations

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

_BUSY = {1020, 1205, 1213, 1317, 1969, 3024}
"""A lock was not free in time, a deadlock was resolved, or an administrator or a time limit ended the statement."""

_HELD = 1205
_DEADLOCK = 1213

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


def code_of(error: BaseException) -> int:
    """Return the number of an error; 0 if PyMySQL itself found the connection closed or out of step."""
    code = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else -1
    if isinstance(error, pymysql.InternalError | pymysql.InterfaceError) and not isinstance(code, int):
        return 0
    return code if isinstance(code, int) else -1


def is_busy(error: BaseException) -> bool:
    """Check whether other transactions were in the way: nothing happened, and a repetition may succeed."""
    return code_of(error) in _BUSY


def is_held(error: BaseException) -> bool:
    """Check whether others held a lock for too long."""
    return code_of(error) == _HELD


def is_deadlock(error: BaseException) -> bool:
    """Check whether the transaction was rolled back because it and another one waited for each other."""
    return code_of(error) == _DEADLOCK


def is_lost(error: BaseException) -> bool:
    """Check whether there is no usable connection. If a commit had been sent, its outcome is unknown."""
    return code_of(error) in _LOST and _tls_failure(error) is None


def is_missing_table(error: BaseException) -> bool:
    """Check whether a table does not exist."""
    return code_of(error) == _MISSING_TABLE


def as_holdfast_error(error: pymysql.MySQLError, where: str) -> HoldfastError:
    """Translate an error after which it is certain that nothing happened.

    Args:
        where: the database, without secrets.
    """
    code = code_of(error)
    tls = _tls_failure(error)
    if tls is not None:
        return InvalidRequestError(
            "the server failed the checks of TLS: check its certificate, ssl and ssl_ca", database=where, reason=tls
        )
    if code in _CROWDED:
        return UnavailableError(
            "the database server has no connection left: allow more there, or fewer here", database=where, code=code
        )
    if is_lost(error):
        return UnavailableError("the database server cannot be reached: repeat later", database=where, code=code)
    if is_busy(error):
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
def mysql_errors(where: str) -> Iterator[None]:
    """Raise PyMySQL's errors as Holdfast's; for calls that change nothing when they fail."""
    try:
        yield
    except pymysql.MySQLError as error:
        raise as_holdfast_error(error, where) from error
