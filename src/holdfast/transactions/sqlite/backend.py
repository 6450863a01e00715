"""Commit transactions in an SQLite file in WAL mode.

Readers never wait. Writers take turns in the order of arrival (`ticket_queue`); each holds the write lock of the file
only while it validates and applies, without a round trip to anywhere, so that one file serves tens of thousands of
small transactions per second.

Source: the SQLite manual, "Write-Ahead Logging" and "Transactions": ``BEGIN IMMEDIATE`` takes the write lock first, so
a transaction never fails with SQLITE_BUSY_SNAPSHOT.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote

from holdfast.errors import HoldfastError, InvalidRequestError, OutcomeUnknownError
from holdfast.runtime import Clock, Environment, SystemClock
from holdfast.runtime.process import require_same_process
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.registry import parse_known_options, public_url, split_url
from holdfast.transactions.sql import load_queries, page_of_rows, records_of_rows
from holdfast.transactions.sqlite.connections import SqliteConnectionPool
from holdfast.transactions.sqlite.file import (
    check_or_create_file,
    connect,
    convert_sqlite_errors,
    file_error,
    flush_file,
    migrate_schema,
)
from holdfast.transactions.validation import (
    Step,
    StepKind,
    ValidationResult,
    VersionSource,
    apply_steps,
    steps_of_group,
    validate_group,
)

_SQL = load_queries(__package__)
_KEY = itemgetter(0)
_KEYS_PER_QUERY = 500


def open_backend(url: str, environment: Environment, *, create: bool) -> SqliteBackend:
    """Open the file of ``sqlite:///directory/file.db?synchronous=normal``: see `holdfast.transactions.registry`."""
    parts = split_url(url)
    if parts.netloc or not parts.path.startswith("/"):
        raise InvalidRequestError(
            "the URL of an SQLite file has three slashes: write sqlite:///directory/file.db", url=public_url(url)
        )
    path = "/" + unquote(parts.path).lstrip("/")  # people also write four slashes
    synchronous = parse_known_options(parts.query, ("synchronous",)).get("synchronous", "full")
    if synchronous not in ("full", "normal"):
        raise InvalidRequestError("synchronous is 'full' or 'normal': change the URL", given=synchronous)
    prepare_file(path, create=create, clock=environment.clock)
    return SqliteBackend(path, environment, synchronous=synchronous)


def prepare_file(path: str, *, create: bool, clock: Clock | None = None) -> None:
    """Check the schema of an SQLite file, and bring it to the present version.

    Args:
        create: whether to create the file if it does not exist, and the tables if it is empty.
        clock: for the wait while another thread forks.

    Raises:
        NotFoundError: there is no such file or it has no tables, and `create` is False.
        AccessDeniedError, InvalidRequestError: the path cannot be a database file; see the message.
        UnsupportedError: the file's schema is newer than this release.
    """
    try:
        check_or_create_file(Path(path), create=create)
    except HoldfastError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL character
        raise file_error(error, "the database file cannot be opened: check its path and its rights", path) from error
    connections = SqliteConnectionPool(path, lambda: connect(path), clock or SystemClock())  # no fork while it is open
    with convert_sqlite_errors(path):
        try:
            with connections.writer() as connection:
                migrate_schema(connection, path, create=create)
        finally:
            connections.close()


class SqliteBackend(Backend):
    """A transaction database in one SQLite file, which must have the present schema (`prepare_file`).

    Guarantee: a commit is on disk when it returns, unless the caller asked for ``synchronous=normal``.

    Args:
        path: the file.
        synchronous: ``full`` flushes the log after each commit or group of commits. With ``normal``, a crash of the
            machine may undo the newest commits (never one without all later ones), a crash of a process none.
        timeout_s: how many seconds a commit waits for its turn.
    """

    def __init__(
        self, path: str, environment: Environment, *, synchronous: str = "full", timeout_s: float = 60.0
    ) -> None:
        self._path = path
        self._clock = environment.clock
        self._synchronous = synchronous
        self._timeout_s = timeout_s
        self._versions = VersionSource(environment.ids)
        self._connections = SqliteConnectionPool(path, self._connect, environment.clock)

    # --- reads --------------------------------------------------------------------------------------------------------
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._lend_reader() as reader:
            return _get_many(reader, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._lend_reader() as reader, _hold_snapshot(reader, wanted=bool(guards)):
            return _scan_range(reader, start, end, limit, list(guards))

    @contextmanager
    def snapshot(self) -> Iterator[_SqliteSnapshot]:
        """Yield a reader in one transaction. SQLite keeps its snapshot in the log, which grows meanwhile."""
        with self._lend_reader() as reader, _hold_snapshot(reader, wanted=True):
            reader.execute("SELECT 1 FROM records LIMIT 1").fetchone()  # the snapshot begins with the first read
            yield _SqliteSnapshot(reader)

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        steps = steps_of_group(commits)
        with self._hold_write_lock() as writer:
            result = self._apply_group(writer, commits, steps)
            return list(result.outcomes)

    def _apply_group(
        self, writer: sqlite3.Connection, commits: Sequence[Commit], steps: Sequence[Step]
    ) -> ValidationResult:
        base = self._versions.take(len(commits))
        seen = _read_records_for_steps(writer, steps)
        counts = {
            (call, index): writer.execute(_SQL["count"], (one.start, one.end, one.count + 1)).fetchone()[0]
            for call, commit in enumerate(commits)
            for index, one in enumerate(commit.ranges)
        }
        result = validate_group(commits, steps, seen, counts, base)
        changes = apply_steps(seen, result.valid, base)
        writer.executemany(
            _SQL["put"],
            ((key, one.version, one.value, one.number) for key, one in changes.items() if one is not None),
        )
        if None in changes.values():
            writer.executemany(_SQL["delete"], ((key,) for key, one in changes.items() if one is None))
        # A transaction that changed nothing is committed as well: it costs no flush, and ends the lock.
        with convert_sqlite_errors(self._path, commits=True):
            writer.execute("COMMIT")
        self._check_file_after_commit()
        return result

    def _check_file_after_commit(self) -> None:
        """Check that a commit went to the file that is still there."""
        try:
            self._connections.require_same_file()
        except HoldfastError as error:
            raise OutcomeUnknownError(
                "the database file was removed or replaced during the commit: restore it, or open it again; "
                "then read before repeating",
                path=self._path,
            ) from error

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[_LockedSqlite]:
        """Begin a transaction that holds the write lock of the whole file until it ends: SQLite has no smaller lock."""
        with self._hold_write_lock() as writer:
            yield _LockedSqlite(self, writer)

    def make_durable(self) -> None:
        """Flush the write-ahead log of the file to disk, because other processes may have committed without a flush.

        The log lies beside the file itself, not beside a link to it. To open and close it here ends no lock, because
        SQLite locks other files. A checkpoint that has emptied the log has flushed the file.

        Source: the SQLite manual, "PRAGMA synchronous" (NORMAL) and "How To Corrupt" (2.2: closing a file ends locks).
        """
        flush_file(f"{os.path.realpath(self._path)}-wal")

    # --- connections --------------------------------------------------------------------------------------------------
    def close(self) -> None:
        self._connections.close()

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, synchronous=self._synchronous, timeout_s=self._timeout_s)

    @contextmanager
    def _lend_reader(self) -> Iterator[sqlite3.Connection]:
        with convert_sqlite_errors(self._path), self._connections.reader() as reader:
            yield reader

    @contextmanager
    def _hold_write_lock(self) -> Iterator[sqlite3.Connection]:
        """Take this caller's turn and SQLite's write lock. The block commits, else it is rolled back."""
        turn = self._connections.queue().turn(self._clock, self._timeout_s)
        with turn, convert_sqlite_errors(self._path), self._connections.writer() as writer:
            pid = os.getpid()
            writer.execute("BEGIN IMMEDIATE")
            try:
                self._connections.require_same_file()  # the file may have been replaced while this call waited
                yield writer
            finally:
                if pid == os.getpid() and writer.in_transaction:
                    with suppress(sqlite3.Error):  # some errors end the transaction by themselves
                        writer.execute("ROLLBACK")


class _SqliteSnapshot:
    """Reads one snapshot, on a connection in a transaction that nothing else uses."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._pid = os.getpid()

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        require_same_process(self._pid)
        return _get_many(self._connection, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        require_same_process(self._pid)
        return _scan_range(self._connection, start, end, limit, list(guards))


class _LockedSqlite(_SqliteSnapshot):
    """A pessimistic transaction under the write lock of the file."""

    def __init__(self, backend: SqliteBackend, writer: sqlite3.Connection) -> None:
        super().__init__(writer)
        self._backend = backend

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        return self.get_many(keys)

    def apply(self, commit: Commit) -> Outcome:
        require_same_process(self._pid)
        return self._backend._apply_group(self._connection, [commit], steps_of_group([commit])).outcomes[0]


def _read_records_for_steps(writer: sqlite3.Connection, steps: Sequence[Step]) -> dict[bytes, Record]:
    """Return the records of steps, under the write lock; with their values only if something is added to them."""
    counters = {step.key for step in steps if step.kind is StepKind.ADD}
    seen = _get_many(writer, [key for key, _ in groupby(steps, _KEY) if key not in counters], "get_version")
    if counters:
        seen.update(_get_many(writer, list(counters)))
    return seen


# --- reads -----------------------------------------------------------------------------------------------------------
def _get_many(connection: sqlite3.Connection, keys: list[bytes], query: str = "get") -> dict[bytes, Record]:
    """Return the records that exist, as they were at one moment."""
    if len(keys) <= _KEYS_PER_QUERY:
        return _get_in_one_statement(connection, keys, query)
    with _hold_snapshot(connection, wanted=not connection.in_transaction):
        found: dict[bytes, Record] = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            found.update(_get_in_one_statement(connection, keys[start : start + _KEYS_PER_QUERY], query))
        return found


def _get_in_one_statement(connection: sqlite3.Connection, keys: list[bytes], query: str) -> dict[bytes, Record]:
    """Read records in one statement, which sees one snapshot; the driver caches the statements."""
    # At once: a cursor that an error keeps would keep the file open.
    return records_of_rows(connection.execute(_expand_query_for_keys(query, len(keys)), keys).fetchall())


@cache
def _expand_query_for_keys(query: str, count: int) -> str:
    """Return a query for one key as one for several."""
    return _SQL[query] if count == 1 else _SQL[query].replace("= ?", f"IN ({','.join('?' * count)})")


def _scan_range(connection: sqlite3.Connection, start: bytes, end: bytes, limit: int, guards: list[bytes]) -> ScanPage:
    """Return a page of a range; with guards, in a transaction only."""
    rows = connection.execute(_SQL["scan"], (start, end, limit + 1)).fetchall()
    return page_of_rows(rows, limit, _get_many(connection, guards) if guards else {})


@contextmanager
def _hold_snapshot(connection: sqlite3.Connection, *, wanted: bool) -> Iterator[None]:
    """Let several queries see one snapshot."""
    pid = os.getpid()
    if wanted:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if wanted and pid == os.getpid() and connection.in_transaction:
            connection.execute("COMMIT")
