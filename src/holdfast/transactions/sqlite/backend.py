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
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote

from holdfast.errors import HoldfastError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Clock, Environment, SystemClock
from holdfast.runtime.process import require_process
from holdfast.transactions.base import Backend, Commit, Committed, Outcome, Record, ScanPage
from holdfast.transactions.sql_files import load_queries
from holdfast.transactions.sqlite.connections import Connections
from holdfast.transactions.sqlite.file import connect, file_error, flush_file, migrate, require_file, sqlite_errors
from holdfast.transactions.steps import Judgment, Kind, Step, VersionSource, apply_steps, judge, seen_count, steps_of
from holdfast.transactions.urls import options_of, public_url, split_url, unknown_option

_SQL = load_queries(__package__)
_KEY = itemgetter(0)
_KEYS_PER_QUERY = 500
_MOST_IDLE_S = 3600.0
"""As PostgreSQL's and MySQL's snapshots."""


def open_backend(url: str, environment: Environment, *, create: bool) -> SqliteBackend:
    """Open the file of ``sqlite:///directory/file.db?synchronous=normal``: see `holdfast.transactions.registry`."""
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
    for name in options:
        raise unknown_option(name, ("synchronous",))
    prepare_file(path, create=create, clock=environment.clock)
    return SqliteBackend(path, environment, synchronous=synchronous)


def prepare_file(path: str, *, create: bool, clock: Clock | None = None) -> None:
    """Check the schema of a file, and bring it to the present version.

    Args:
        create: whether to create the file if it does not exist, and the tables if it is empty.
        clock: for the wait while another thread forks.

    Raises:
        NotFoundError: there is no such file or it has no tables, and `create` is False.
        AccessDeniedError, InvalidRequestError: the path cannot be a database file; see the message.
        UnsupportedError: the file's schema is newer than this release.
    """
    try:
        require_file(Path(path), create=create)
    except HoldfastError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL character
        raise file_error(error, "the database file cannot be opened: check its path and its rights", path) from error
    connections = Connections(path, lambda: connect(path), clock or SystemClock())  # no fork while it is open
    with sqlite_errors(path):
        try:
            with connections.writer() as connection:
                migrate(connection, path, create=create)
        finally:
            connections.close()


class SqliteBackend(Backend):
    """A database in one SQLite file, which must have the present schema (`prepare_file`).

    Guarantee: a commit is on disk when it returns, unless the caller asked for ``synchronous=normal``.

    Args:
        path: the file.
        synchronous: ``full`` flushes the log at each commit or group; ``normal`` may lose the newest commits, all of
            them in order, when the machine crashes, never when a process does.
        timeout_s: how long a commit waits for its turn.
    """

    def __init__(
        self, path: str, environment: Environment, *, synchronous: str = "full", timeout_s: float = 60.0
    ) -> None:
        self._path = path
        self._clock = environment.clock
        self._synchronous = synchronous
        self._timeout_s = timeout_s
        self._versions = VersionSource(environment.ids)
        self._connections = Connections(path, self._connect, environment.clock)
        self._snapshots: weakref.WeakSet[SqliteSnapshot] = weakref.WeakSet()

    # --- reads --------------------------------------------------------------------------------------------------------
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._reader() as reader:
            return _get_many(reader, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._reader() as reader, _in_snapshot(reader, wanted=bool(guards)):
            return _scan(reader, start, end, limit, list(guards))

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Read in one transaction: WAL keeps its snapshot for it."""
        with self._reader() as reader, _in_snapshot(reader, wanted=True):
            reader.execute("SELECT 1 FROM records LIMIT 1").fetchone()  # the snapshot begins with the first read
            found = SqliteSnapshot(reader, self._clock)
            self._snapshots.add(found)
            try:
                yield found
            finally:
                found.close()

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        steps = steps_of(commits)
        with self._write_lock() as writer:
            judgment = self._apply(writer, commits, steps)
            return list(judgment.outcomes)

    def _apply(self, writer: sqlite3.Connection, commits: Sequence[Commit], steps: Sequence[Step]) -> Judgment:
        base = self._versions.take(len(commits))
        seen = _get_locked(writer, steps)
        counts = {
            (call, index): writer.execute(_SQL["count"], (one.start, one.end, seen_count(one))).fetchone()[0]
            for call, commit in enumerate(commits)
            for index, one in enumerate(commit.ranges)
        }
        judgment = judge(commits, steps, seen, counts, base)
        changes = apply_steps(seen, judgment.valid, base)
        writer.executemany(
            _SQL["put"],
            ((key, one.version, one.value, one.number) for key, one in changes.items() if one is not None),
        )
        if None in changes.values():
            writer.executemany(_SQL["delete"], ((key,) for key, one in changes.items() if one is None))
        # A transaction that changed nothing is committed as well: it costs no flush, and ends the lock.
        with sqlite_errors(self._path, commits=True):
            writer.execute("COMMIT")
        self._check_committed()
        return judgment

    def _check_committed(self) -> None:
        """Check that a commit went to the file that is still there."""
        try:
            self._connections.check_file()
        except HoldfastError as error:
            raise OutcomeUnknownError(
                "the database file was removed or replaced during the commit: restore it, or open the namespace again; "
                "then read before repeating",
                path=self._path,
            ) from error

    @contextmanager
    def locked(self) -> Iterator[_LockedSqlite]:
        """Hold the write lock of the file: SQLite has no smaller one."""
        with self._write_lock() as writer:
            yield _LockedSqlite(self, writer)

    def make_durable(self) -> None:
        """Flush the log, in which others perhaps commit without: a checkpoint that has emptied it has flushed the file.

        It lies beside the file itself, not beside a link to it, and may be opened beside SQLite, whose locks are on
        other files.

        Source: the SQLite manual, "PRAGMA synchronous" (NORMAL) and "How To Corrupt" (2.2: closing a file ends locks).
        """
        flush_file(f"{os.path.realpath(self._path)}-wal")

    # --- connections --------------------------------------------------------------------------------------------------
    def close(self) -> None:
        self._connections.close()

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, synchronous=self._synchronous, timeout_s=self._timeout_s)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        self._end_forgotten()
        with sqlite_errors(self._path), self._connections.reader() as reader:
            yield reader

    def _end_forgotten(self) -> None:
        """End the snapshots of this process that are not read anymore: the log keeps all that was written since."""
        if self._snapshots:
            for one in list(self._snapshots):
                one.end_if_idle()

    @contextmanager
    def _write_lock(self) -> Iterator[sqlite3.Connection]:
        """Take this caller's turn and SQLite's write lock. The block commits, else it is rolled back."""
        self._end_forgotten()
        turn = self._connections.queue().turn(self._clock, self._timeout_s)
        with turn, sqlite_errors(self._path), self._connections.writer() as writer:
            pid = os.getpid()
            writer.execute("BEGIN IMMEDIATE")
            try:
                self._connections.check_file()  # the file may have been replaced while this call waited
                yield writer
            finally:
                if pid == os.getpid() and writer.in_transaction:
                    with suppress(sqlite3.Error):  # some errors end the transaction by themselves
                        writer.execute("ROLLBACK")


class _LockedSqlite:
    """A pessimistic transaction under the write lock of the file."""

    def __init__(self, backend: SqliteBackend, writer: sqlite3.Connection) -> None:
        self._backend = backend
        self._writer = writer
        self._pid = os.getpid()

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        require_process(self._pid)
        return _get_many(self._writer, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        require_process(self._pid)
        return _scan(self._writer, start, end, limit, [])

    def apply(self, commit: Commit) -> Outcome:
        require_process(self._pid)
        outcome = self._backend._apply(self._writer, [commit], steps_of([commit])).outcomes[0]
        assert isinstance(outcome, Committed) or not self._writer.in_transaction
        return outcome


def _get_locked(writer: sqlite3.Connection, steps: Sequence[Step]) -> dict[bytes, Record]:
    """Return the records of steps, under the write lock; with their values only if something is added to them."""
    counters = {step.key for step in steps if step.kind in (Kind.ADD, Kind.PROGRESS)}
    seen = _get_many(writer, [key for key, _ in groupby(steps, _KEY) if key not in counters], "get_version")
    if counters:
        seen.update(_get_many(writer, list(counters)))
    return seen


# --- reads -----------------------------------------------------------------------------------------------------------
class SqliteSnapshot:
    """Reads one snapshot.

    Args:
        reader: a connection in a transaction, for this object alone until the snapshot is over.
        clock: measures how long the snapshot was not read.
    """

    def __init__(self, reader: sqlite3.Connection, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._pid = os.getpid()
        self._in_use = threading.RLock()  # a collection of garbage may end it anywhere
        self._used_s = clock.elapsed_s()
        self._is_over = False

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._reading():
            return _get_many(self._reader, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._reading():
            return _scan(self._reader, start, end, limit, list(guards))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        require_process(self._pid)
        with self._in_use:
            self._end_if_idle()
            if self._is_over:
                raise UnavailableError(
                    "the snapshot was not read for an hour, so it has ended: begin to read anew",
                    idle_s=_MOST_IDLE_S,
                )
            yield
            self._used_s = self._clock.elapsed_s()

    def end_if_idle(self) -> None:
        """End the snapshot if it is forgotten: called by the next user of the file. Never waits."""
        if self._pid == os.getpid() and self._in_use.acquire(blocking=False):
            try:
                self._end_if_idle()
            finally:
                self._in_use.release()

    def close(self) -> None:
        """Never touch the connection again: it goes back to others."""
        if self._pid == os.getpid():  # in a forked child, another thread of the parent may have the lock
            with self._in_use:
                self._is_over = True

    def _end_if_idle(self) -> None:
        if not self._is_over and self._clock.elapsed_s() - self._used_s > _MOST_IDLE_S:
            self._is_over = True
            if self._reader.in_transaction:
                self._reader.execute("ROLLBACK")


def _get_many(connection: sqlite3.Connection, keys: list[bytes], query: str = "get") -> dict[bytes, Record]:
    """Return the records that exist, as they were at one moment."""
    if len(keys) <= _KEYS_PER_QUERY:
        return _get_some(connection, keys, query)
    with _in_snapshot(connection, wanted=not connection.in_transaction):
        found: dict[bytes, Record] = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            found.update(_get_some(connection, keys[start : start + _KEYS_PER_QUERY], query))
        return found


def _get_some(connection: sqlite3.Connection, keys: list[bytes], query: str) -> dict[bytes, Record]:
    """Read records in one statement, which sees one snapshot; the driver caches the statements."""
    # At once: a cursor that an error keeps would keep the file open.
    rows = connection.execute(_for_keys(query, len(keys)), keys).fetchall()
    return {key: Record(version, value, number) for key, version, value, number in rows}


@cache
def _for_keys(query: str, count: int) -> str:
    """Return a query for one key as one for several."""
    return _SQL[query] if count == 1 else _SQL[query].replace("= ?", f"IN ({','.join('?' * count)})")


def _scan(connection: sqlite3.Connection, start: bytes, end: bytes, limit: int, guards: list[bytes]) -> ScanPage:
    """Return a page of a range; with guards, in a transaction only."""
    rows = connection.execute(_SQL["scan"], (start, end, limit + 1)).fetchall()
    records = [(key, Record(version, value, number)) for key, version, value, number in rows[:limit]]
    return ScanPage(records, len(rows) > limit, _get_many(connection, guards) if guards else {})


@contextmanager
def _in_snapshot(connection: sqlite3.Connection, *, wanted: bool) -> Iterator[None]:
    """Let several queries see one snapshot."""
    pid = os.getpid()
    if wanted:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if wanted and pid == os.getpid() and connection.in_transaction:
            connection.execute("COMMIT")
