"""Open an SQLite file, create and migrate its schema, and translate the errors of SQLite and of the system."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from holdfast.transactions.sql import load_schema, require_schema

_OLDEST = (3, 35, 0)
"""WITHOUT ROWID, upserts and ``IN`` with many parameters; Python 3.10 is built with at least this on every platform."""


_MOUNTS = Path("/proc/self/mountinfo")

_COLUMNS = {"key", "version", "value", "number"}
"""Of the table of records, in every version of the schema. Other programs have tables of this name too."""


def connect(path: str, *, synchronous: str = "full", timeout_s: float = 60.0) -> sqlite3.Connection:
    """Open a connection to an existing SQLite file.

    Args:
        synchronous: ``full`` or ``normal``: see `SqliteBackend`.
        timeout_s: how many seconds SQLite itself waits for a lock; rarely, since writers queue before.
    """
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA cache_size = -65536")  # KiB
        connection.execute("PRAGMA mmap_size = 268435456")
        return connection
    except BaseException:
        connection.close()
        raise


def check_or_create_file(file: Path, *, create: bool) -> None:
    """Check that a path can be an SQLite file; create it if it does not exist, and `create` is true."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnsupportedError(f"SQLite {sqlite3.sqlite_version} is too old: use 3.35 or newer")
    if file.is_dir():
        raise InvalidRequestError("the database is a file, and this is a directory: add a file name", path=str(file))
    if file.exists():
        _require_single_file_name(file)
        return
    if str(file.parent) == file.anchor:  # a mistake: elsewhere, what follows three slashes is a relative path
        raise InvalidRequestError(
            "the path of an SQLite file is absolute, and the file system's root is no place for it: write"
            " sqlite:///directory/file.db, in a shell sqlite://$PWD/file.db",
            path=str(file),
        )
    if not create:
        raise NotFoundError("the database file does not exist: create it first", path=str(file))
    if not file.absolute().parent.is_dir():
        raise NotFoundError("the directory of the database file does not exist: create it first", path=str(file))
    file.touch()


def _require_single_file_name(file: Path) -> None:
    """Check that every process that opens the file finds the same log: else each would see its own commits alone.

    Symbolic links are no other names: SQLite follows them.

    Raises:
        InvalidRequestError: they may not.

    Source: the SQLite manual, "How To Corrupt An SQLite Database File", 2.4.
    """
    found = file.resolve()
    names = found.stat().st_nlink
    if names > 1:
        raise InvalidRequestError(
            "the database file has several names (hard links), and SQLite would keep a log for each, so that commits "
            "are lost: keep one name, and make the others symbolic links or copies",
            path=str(file),
            names=names,
        )
    if _is_mount_point(found):
        raise InvalidRequestError(
            "the database file is mounted alone, without the log that SQLite keeps beside it, so that commits are lost:"
            " mount its directory",
            path=str(file),
        )


def _is_mount_point(file: Path) -> bool:
    """Check whether a file is one by itself, as far as the system tells; its device says nothing on an overlay."""
    name = str(file)
    for one in "\\ \t\n":
        name = name.replace(one, f"\\{ord(one):03o}")
    with suppress(OSError):
        return any(line.split()[4] == os.fsencode(name) for line in _MOUNTS.read_bytes().splitlines())
    return False


def migrate_schema(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    """Check the schema of an SQLite file, and bring it to the present version.

    Args:
        create: whether to create the tables if there are none.
    """
    scripts = load_schema("holdfast.transactions.sqlite")
    is_present = _check_schema_version(connection, len(scripts), path, create=create) == len(scripts)
    _use_write_ahead_log(connection, is_needed=not is_present)
    if is_present:
        return
    connection.execute("BEGIN IMMEDIATE")  # another process may be migrating
    try:
        found = _check_schema_version(connection, len(scripts), path, create=create)
        for number, script in enumerate(scripts[found:], found + 1):
            for statement in script.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _use_write_ahead_log(connection: sqlite3.Connection, *, is_needed: bool) -> None:
    """Let readers and the writer not wait for each other. The mode is kept in the file; a copy may have lost it.

    Args:
        is_needed: whether to fail if the file cannot be written. Reads of it need no log.
    """
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    try:
        connection.execute("PRAGMA journal_mode = WAL")  # outside transactions only
    except sqlite3.OperationalError as error:
        if is_needed or "readonly" not in str(error):
            raise


def _check_schema_version(connection: sqlite3.Connection, present: int, path: str, *, create: bool) -> int:
    """Return the version of the schema; refuse, without a change, what is not ours. Other programs count theirs too."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {column[1] for column in connection.execute("PRAGMA table_info(records)")}
    found = int(connection.execute("PRAGMA user_version").fetchone()[0]) if tables else 0
    if tables and (not columns >= _COLUMNS or not found):
        raise InvalidRequestError("the file is a database of another program: choose another file", path=path)
    require_schema(found, present, create=create, where=path)
    return found


# --- errors ----------------------------------------------------------------------------------------------------------
# SQLite's result codes: Python 3.10 does not name them.
_PERM, _BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 3, 5, 6, 8, 10, 11, 13, 14, 26
_PROTOCOL = 15  # after 10 s: another process has kept the mark that all readers need for themselves
_IOERR_SHMSIZE = _IOERR | 19 << 8  # the file beside the database that its readers and writers share cannot grow

_LOCKED_BY_OTHERS = (
    UnavailableError,
    "another process has locked the database: end it, or let it go on (fg) if it is stopped (Ctrl-Z), then repeat",
)
_ERRORS: dict[int, tuple[type[HoldfastError], str]] = {
    _BUSY: _LOCKED_BY_OTHERS,
    _LOCKED: _LOCKED_BY_OTHERS,
    _PROTOCOL: _LOCKED_BY_OTHERS,
    _FULL: (StorageFullError, "the disk of the database is full: free some space, then repeat"),
    _READONLY: (AccessDeniedError, "the database file or its directory cannot be written: check its rights"),
    _CANTOPEN: (AccessDeniedError, "the database file cannot be opened: check its path and its rights"),
    _PERM: (AccessDeniedError, "the database file cannot be opened: check its path and its rights"),
    _NOTADB: (InvalidRequestError, "the file is not an SQLite database: choose another file"),
    _CORRUPT: (CorruptDataError, "the database file is damaged: keep it, and restore a copy"),
    _IOERR: (UnavailableError, "the disk of the database failed: check it, then repeat"),
    _IOERR_SHMSIZE: (StorageFullError, "the disk of the database is full: free some space, then repeat"),
}


@contextmanager
def convert_sqlite_errors(path: str, *, commits: bool = False) -> Iterator[None]:
    """Convert SQLite's errors in a ``with`` block into Holdfast's.

    Each error ends the transaction without effect, except an I/O error of the commit statement: whether the commit is
    on disk is then unknown.

    Args:
        commits: whether the block is the statement that commits.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            code = _error_code_of_message(str(error))
        if commits and code & 0xFF == _IOERR:
            raise OutcomeUnknownError(
                "the disk of the database failed: check it, then read before repeating", path=path
            ) from error
        otherwise = (CorruptDataError, "the database refused a statement: report this")
        kind, message = _ERRORS.get(code) or _ERRORS.get(code & 0xFF, otherwise)
        raise kind(message, path=path) from error


def _error_code_of_message(message: str) -> int:
    """Return the code of an error by its message: Python 3.10 does not tell the code."""
    words = {
        "locked": _BUSY,
        "locking protocol": _PROTOCOL,
        "full": _FULL,
        "readonly": _READONLY,
        "unable to open": _CANTOPEN,
        "not a database": _NOTADB,
        "malformed": _CORRUPT,
        "disk I/O": _IOERR,
    }
    return next((code for word, code in words.items() if word in message), -1)


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_CROWDED = (errno.EMFILE, errno.ENFILE)


def flush_file(path: str) -> None:
    """Flush a file to disk, if it exists, whichever process wrote it.

    Raises:
        UnavailableError, StorageFullError: that failed; what is on the disk is unknown.
    """
    with suppress(FileNotFoundError):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise StorageFullError("the disk of the database is full: free some space", path=path) from error
            raise UnavailableError("the log of the database cannot be flushed: repeat later", path=path) from error


def file_error(error: OSError | ValueError, otherwise: str, path: str) -> HoldfastError:
    """Return Holdfast's error for an error of the system when a file was made or opened. Nothing happened.

    Args:
        otherwise: the message if neither space nor descriptors are missing.
    """
    code = error.errno if isinstance(error, OSError) else None
    if code in _NO_SPACE:
        return StorageFullError("the disk of the database is full: free some space, then repeat", path=path)
    if code in _CROWDED:
        return UnavailableError("too many files are open: allow more, or repeat later", path=path)
    return AccessDeniedError(otherwise, path=path)
