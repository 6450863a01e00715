"""Commit transactions in PostgreSQL, in one round trip for a whole group.

Reads take no locks. A commit is one call of the function `commit_group` (schema/), under READ COMMITTED: it locks the
records in key order, compares versions, applies what is valid, and ends, so locks are held within the server only.

Source: PostgreSQL manual, 13.2.1 (a later statement of a READ COMMITTED transaction sees what others have committed)
and 13.3.2 (row locks); 42.10 on PL/pgSQL.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors

from holdfast.errors import DeadlockError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Backoff, Environment, Moment
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.pool import Pool
from holdfast.transactions.postgres.connection import (
    Connection,
    PostgresAddress,
    connect,
    convert_read_errors,
    convert_statement_errors,
    prepare_database,
)
from holdfast.transactions.postgres.group import BinaryArray, PostgresGroup, byte_array
from holdfast.transactions.sql import find_outcome, load_queries, page_of_rows, records_of_rows
from holdfast.transactions.validation import VersionSource

T = TypeVar("T")

_SQL = {name: query.encode() for name, query in load_queries(__package__).items()}
_HASTY = _SQL["commit_group"] + b" FROM set_config('lock_timeout', %s, true)"
"""The same with a limit of its own, which is set before the function is called, and ends with the transaction."""

_COLLISIONS = (errors.DeadlockDetected, errors.SerializationFailure)
_COLLISION_ATTEMPTS = 10
_BACKOFF = Backoff(first_s=0.004, longest_s=1.0)
_SETTLE_S = 60.0

_SWEEP_SHARE = 0.1
"""How many new connections remove the sessions of dead ones."""


def open_backend(url: str, environment: Environment, *, create: bool) -> PostgresBackend:
    """Open the database of ``postgresql://user@host:port/database``: see `holdfast.transactions.registry`."""
    address, connections = PostgresAddress.parse(url)
    prepare_database(address, create=create)
    return PostgresBackend(address, environment, connections=connections)


class _LockHeldError(Exception):
    """Others hold a lock. Nothing happened."""


class PostgresSession:
    """A pooled connection to PostgreSQL, with the generator of its commits' versions.

    Attributes:
        is_new: whether nothing was committed on the connection yet.
        pid: the id of the process that opened the connection.
    """

    def __init__(self, connection: Connection, versions: VersionSource) -> None:
        self.connection = connection
        self.versions = versions
        self.is_new = True
        self.pid = os.getpid()

    @property
    def is_open(self) -> bool:
        return not self.connection.closed

    def reset(self) -> None:
        """Roll back, or close the connection if a statement is running; do nothing if the parent process opened it."""
        if self.pid != os.getpid():
            return
        status = self.connection.info.transaction_status
        if status in (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                self.connection.execute("ROLLBACK")
                return
        if status != psycopg.pq.TransactionStatus.IDLE:
            self.close()

    def close(self) -> None:
        if self.pid == os.getpid():
            self.connection.close()


class _GroupReply(NamedTuple):
    """What the server has answered to a group; without records if they were not wanted, or the reply was lost."""

    outcomes: list[Outcome]
    records: dict[bytes, Record] | None = None


class PostgresBackend(Backend):
    """A transaction database in a schema of a PostgreSQL database, which must be prepared (`prepare_database`).

    Guarantee: a commit is durable when it returns, provided that ``synchronous_commit`` is on in the server.

    Args:
        connections: how many connections this process opens at most.
    """

    reads_ahead = True

    def __init__(self, address: PostgresAddress, environment: Environment, *, connections: int = 8) -> None:
        self._address = address
        self._environment = environment
        self.connections = connections
        self._pool = Pool(self._connect, connections, environment.clock)

    def _connect(self) -> PostgresSession:
        return PostgresSession(connect(self._address), VersionSource(self._environment.ids))

    # --- reads --------------------------------------------------------------------------------------------------------
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._run_query(lambda connection: _get_many(connection, keys)) if keys else {}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._run_query(lambda connection: _scan_range(connection, start, end, limit, guards))

    @contextmanager
    def snapshot(self) -> Iterator[_PostgresSnapshot]:
        """Yield a reader in one transaction under REPEATABLE READ."""
        with self._begin_transaction(_begin_snapshot) as session:
            yield _PostgresSnapshot(session.connection, self._address)
            if session.pid == os.getpid():
                with convert_read_errors(self._address):
                    session.connection.execute("COMMIT")

    def _run_query(self, query: Callable[[Connection], T]) -> T:
        """Run a query; a broken connection is replaced once, because a read changes nothing."""

        def run_once() -> T:
            with self._pool.lease() as session, convert_statement_errors(self._address):
                return query(session.connection)

        return self._retry_read_once(run_once)

    def _retry_read_once(self, attempt: Callable[[], T]) -> T:
        """Do what changes nothing; if the connection breaks, once more on another one."""
        try:
            return attempt()
        except OutcomeUnknownError:
            self._pool.clear()  # the server has restarted: none of the idle connections is alive
        with convert_read_errors(self._address):
            return attempt()

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._commit_group(commits).outcomes

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        reply = self._commit_group([commit], wanted=byte_array(keys))
        return reply.outcomes[0], reply.records

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        try:
            return self._commit_group(commits, patience_s).outcomes
        except _LockHeldError:
            return None

    def _commit_group(
        self, commits: Sequence[Commit], patience_s: float | None = None, wanted: BinaryArray | None = None
    ) -> _GroupReply:
        group = PostgresGroup.of(commits)
        if not group.steps:
            base = VersionSource(self._environment.ids).take(len(commits))
            return _GroupReply(group.outcomes([0] * len(commits), base))
        for attempt in range(_COLLISION_ATTEMPTS):
            if attempt:
                _BACKOFF.wait(attempt, self._environment.clock, self._environment.chance)
            reply = self._try_commit(group, patience_s, wanted)
            if reply is not None:
                return reply
        raise UnavailableError("too many transactions collide in the database: repeat later", tries=_COLLISION_ATTEMPTS)

    def _try_commit(
        self, group: PostgresGroup, patience_s: float | None, wanted: BinaryArray | None
    ) -> _GroupReply | None:
        """Commit a group; return None if nothing happened, because of a collision or a broken connection.

        Args:
            patience_s: how long to wait for one lock; None is the connection's limit.
            wanted: keys of records to read afterwards, for a commit without such a limit.

        Raises:
            _LockHeldError: with a patience, a lock was not free in time.
        """
        base: int | None = None
        begun = Moment.of(self._environment.clock)
        try:
            with self._pool.lease() as session:
                self._delete_dead_sessions_by_chance(session)
                base = session.versions.take(len(group.commits))
                arguments = group.arguments(VersionSource.session_of(base), base)
                query = _SQL["commit_group"]
                if patience_s is not None:
                    query = _HASTY
                    arguments.append(f"{math.ceil(patience_s * 1000)}ms")
                elif wanted is not None:
                    query = _SQL["commit_and_read"]
                    arguments.append(wanted)
                with convert_statement_errors(self._address):
                    try:
                        rows = session.connection.execute(query, arguments, binary=True).fetchall()
                    except _COLLISIONS:
                        return None
                    except errors.LockNotAvailable as error:
                        if patience_s is None:
                            raise
                        raise _LockHeldError from error
                # A row without a key stands for no records at all.
                found = None if wanted is None else records_of_rows(row[1:] for row in rows if row[1] is not None)
                return _GroupReply(group.outcomes(rows[0][0], base), found)
        except OutcomeUnknownError:
            if base is None:
                raise
            outcomes = self._settle(base, group, begun)
            return None if outcomes is None else _GroupReply(outcomes)

    def _delete_dead_sessions_by_chance(self, session: PostgresSession) -> None:
        """Remove the sessions of dead connections now and then: not before a read, which must not need to write."""
        if session.is_new and self._environment.chance.happens(_SWEEP_SHARE):
            with suppress(psycopg.Error):  # others will do it; and if the connection broke, the next call tells
                session.connection.execute(_SQL["forget_sessions"])
        session.is_new = False

    def _settle(self, base: int, group: PostgresGroup, begun: Moment) -> list[Outcome] | None:
        """Find the outcome of a commit whose reply was lost; None if nothing happened, and never will.

        Args:
            begun: a moment before the commit was sent.

        Raises:
            OutcomeUnknownError: see `find_outcome`.
        """
        self._pool.clear()
        last = {"session": VersionSource.session_of(base), "version": base + len(group.commits) - 1}

        def read_outcome_or_none() -> list[int] | None:
            # A new connection: a locked transaction keeps its place in the pool, and others may have all the rest.
            with convert_statement_errors(self._address), connect(self._address) as connection:
                row = connection.execute(_SQL["settle"], last).fetchone()
            assert row is not None, "an upsert returns a row"
            status: list[int] | None = row[0]
            return status

        status = find_outcome(
            read_outcome_or_none, begun, self._pool, self._environment, _SETTLE_S, self._address.where
        )
        return None if status is None else group.outcomes(status, base)

    def make_durable(self) -> None:
        """Commit a small write, and wait until the server has flushed its log up to this commit."""
        version = VersionSource(self._environment.ids).take(1)
        with convert_read_errors(self._address):
            self._run_query(
                lambda connection: connection.execute(
                    _SQL["make_durable"], (VersionSource.session_of(version), version)
                )
            )

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[_LockedPostgres]:
        """Begin a transaction that locks what it reads. It is rolled back unless `apply` was called.

        Raises:
            DeadlockError: it was in a deadlock with another one, and was rolled back. Start over.
        """
        with self._begin_transaction(lambda connection: connection.execute("BEGIN")) as session:
            yield _LockedPostgres(self, session, self._address)
            session.reset()

    @contextmanager
    def _begin_transaction(self, begin: Callable[[Connection], object]) -> Iterator[PostgresSession]:
        """Lend a connection with an open transaction; a broken one is replaced once, because nothing has happened."""
        with ExitStack() as loan:

            def begin_once() -> PostgresSession:
                with ExitStack() as tried:
                    session = tried.enter_context(self._pool.lease())
                    with convert_statement_errors(self._address):
                        begin(session.connection)
                    loan.enter_context(tried.pop_all())
                return session

            yield self._retry_read_once(begin_once)

    def close(self) -> None:
        self._pool.close()


class _LockedPostgres:
    """A pessimistic transaction: several round trips, with locks held in between (paper 004, 2.3)."""

    def __init__(self, backend: PostgresBackend, session: PostgresSession, address: PostgresAddress) -> None:
        self._backend = backend
        self._session = session
        self._address = address

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        query = _SQL["lock_exclusive" if exclusive else "lock_shared"]
        return records_of_rows(self._fetch_rows(query, (byte_array(keys),)))

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return page_of_rows(self._fetch_rows(_SQL["scan"], (start, end, limit + 1)), limit, {})

    def _fetch_rows(self, query: bytes, arguments: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with convert_read_errors(self._address):  # the commit was not sent
            try:
                return self._session.connection.execute(query, arguments, binary=True).fetchall()
            except _COLLISIONS as error:
                raise DeadlockError("a deadlock with another transaction: start over") from error

    def apply(self, commit: Commit) -> Outcome:
        group = PostgresGroup.of([commit])
        base = self._session.versions.take(1)
        if not group.steps:
            with convert_read_errors(self._address):
                self._session.connection.execute("COMMIT")
            return group.outcomes([0], base)[0]
        arguments = group.arguments(VersionSource.session_of(base), base)
        begun = Moment.of(self._backend._environment.clock)
        row = self._fetch_rows(_SQL["commit_group"], tuple(arguments))[0]
        try:
            with convert_statement_errors(self._address):
                self._session.connection.execute("COMMIT")
        except OutcomeUnknownError as error:
            self._session.close()  # ends the transaction if the server still has it
            outcomes = self._backend._settle(base, group, begun)
            if outcomes is None:
                raise UnavailableError("the database went away before the commit: repeat it") from error
            return outcomes[0]
        return group.outcomes(row[0], base)[0]


class _PostgresSnapshot:
    """Reads one snapshot."""

    def __init__(self, connection: Connection, address: PostgresAddress) -> None:
        self._connection = connection
        self._address = address

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with convert_read_errors(self._address):
            return _get_many(self._connection, keys) if keys else {}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with convert_read_errors(self._address):
            return _scan_range(self._connection, start, end, limit, guards)


def _begin_snapshot(connection: Connection) -> None:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(_SQL["let_snapshot_idle"])
    connection.execute("SELECT 1 FROM records LIMIT 1")  # the snapshot begins here


def _get_many(connection: Connection, keys: Collection[bytes]) -> dict[bytes, Record]:
    query, argument = (_SQL["get"], next(iter(keys))) if len(keys) == 1 else (_SQL["get_many"], byte_array(keys))
    return records_of_rows(connection.execute(query, (argument,), binary=True))


def _scan_range(connection: Connection, start: bytes, end: bytes, limit: int, guards: Collection[bytes]) -> ScanPage:
    query, arguments = _SQL["scan"], [start, end, limit + 1]
    if not guards:
        return page_of_rows(connection.execute(query, arguments, binary=True).fetchall(), limit, {})
    query, arguments = _SQL["scan_with_guards"], [*arguments, byte_array(guards)]
    rows = connection.execute(query, arguments, binary=True).fetchall()
    found = records_of_rows(row[1:] for row in rows if row[0])
    return page_of_rows(sorted(row[1:] for row in rows if not row[0]), limit, found)
