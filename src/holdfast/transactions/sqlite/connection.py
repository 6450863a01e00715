"""Connect to an SQLite file, create and migrate its schema, and translate SQLite's errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.transactions.schema_version import require_schema
from holdfast.transactions.sql_files import load_schema

__all__ = ["connect", "prepare_file", "sqlite_errors"]

_OLDEST = (3, 35, 0)
"""WITHOUT ROWID, upserts and ``IN`` with many parameters; Python 3.10 is built with at least this on every platform."""


def connect(path: str, *, synchronous: str = "full", timeout_s: float = 60.0) -> sqlite3.Connection:
    """Open an existing file. Writers are ordered before they come to SQLite, so its own waits are rare."""
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA cache_size = -65536")  # KiB
    connection.execute("PRAGMA mmap_size = 268435456")
    return connection


def prepare_file(path: str, *, create: bool) -> None:
    """Check the schema of a file, and bring it to the present version.

    Args:
        create: whether to create the file if it does not exist, and the tables if it is empty.

    Raises:
        NotFoundError: there is no such file or it has no tables, and `create` is False.
        AccessDeniedError, InvalidRequestError: the path cannot be a database file; see the message.
        UnsupportedError: the file's schema is newer than this release.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnsupportedError(f"SQLite {sqlite3.sqlite_version} is too old: use 3.35 or newer")
    try:
        _require_file(Path(path), create=create)
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL character, or a NotFoundError
        if isinstance(error, HoldfastError):
            raise
        raise AccessDeniedError(
            "the database file cannot be opened: check its path and its rights", path=path
        ) from error
    with sqlite_errors(path):
        connection = connect(path)
        try:
            _migrate(connection, path, create=create)
        finally:
            connection.close()


def _require_file(file: Path, *, create: bool) -> None:
    if file.is_dir():
        raise InvalidRequestError("the database is a file, and this is a directory: add a file name", path=str(file))
    if file.exists():
        return
    if not create:
        raise NotFoundError("the database file does not exist: create it first", path=str(file))
    if not file.absolute().parent.is_dir():
        raise NotFoundError("the directory of the database file does not exist: create it first", path=str(file))
    file.touch()


def _migrate(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    scripts = load_schema("holdfast.transactions.sqlite")
    if _checked_version(connection, len(scripts), path, create=create) == len(scripts):
        return
    connection.execute("PRAGMA journal_mode = WAL")  # persistent; outside transactions only
    connection.execute("BEGIN IMMEDIATE")  # another process may be migrating
    try:
        found = _checked_version(connection, len(scripts), path, create=create)
        for number, script in enumerate(scripts[found:], found + 1):
            for statement in script.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _checked_version(connection: sqlite3.Connection, present: int, path: str, *, create: bool) -> int:
    """Return the version of the schema; refuse, without a change, what is not ours. Other programs count theirs too."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if tables and "records" not in tables:
        raise InvalidRequestError("the file is a database of another program: choose another file", path=path)
    found = int(connection.execute("PRAGMA user_version").fetchone()[0]) if tables else 0
    require_schema(found, present, create=create, where=path)
    return found


# SQLite's result codes: Python 3.10 does not name them.
_PERM, _BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 3, 5, 6, 8, 10, 11, 13, 14, 26

_ERRORS: dict[int, tuple[type[HoldfastError], str]] = {
    _BUSY: (UnavailableError, "another program has locked the database: close it, then repeat"),
    _LOCKED: (UnavailableError, "another program has locked the database: close it, then repeat"),
    _FULL: (StorageFullError, "the disk of the database is full: free some space, then repeat"),
    _READONLY: (AccessDeniedError, "the database file or its directory cannot be written: check its rights"),
    _CANTOPEN: (AccessDeniedError, "the database file cannot be opened: check its path and its rights"),
    _PERM: (AccessDeniedError, "the database file cannot be opened: check its path and its rights"),
    _NOTADB: (InvalidRequestError, "the file is not an SQLite database: choose another file"),
    _CORRUPT: (CorruptDataError, "the database file is damaged: keep it, and restore a copy"),
    _IOERR: (OutcomeUnknownError, "the disk of the database failed: check it, then read before repeating"),
}


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Raise SQLite's errors as Holdfast's.

    Each error ends the transaction without effect; only after an I/O error is it unknown whether the commit is on disk.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            code = _code_of(str(error))
        kind, message = _ERRORS.get(code & 0xFF, (CorruptDataError, "the database refused a statement: report this"))
        raise kind(message, path=path) from error


def _code_of(message: str) -> int:
    """Return the code of an error by its message: Python 3.10 does not tell the code."""
    words = {
        "locked": _BUSY,
        "full": _FULL,
        "readonly": _READONLY,
        "unable to open": _CANTOPEN,
        "not a database": _NOTADB,
        "malformed": _CORRUPT,
        "disk I/O": _IOERR,
    }
    return next((code for word, code in words.items() if word in message), -1)
