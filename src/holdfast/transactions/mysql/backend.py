"""Commit transactions in MySQL or MariaDB.

A group takes two round trips. The first begins a transaction, locks and reads (`group`); the second writes and
commits. Deadlocks and lost connections are repeated inside as long as it is certain that nothing happened; when the
reply to a commit is lost, the row of the connection in the table of sessions tells the outcome.

Source: the MySQL manual, "Locks Set by Different SQL Statements in InnoDB" and "InnoDB Error Handling".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from typing import TypeVar

import pymysql

from holdfast.errors import DeadlockError, InvalidRequestError
from holdfast.runtime import Environment, Moment
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.mysql.connection import (
    MysqlOptions,
    MysqlSession,
    StatementReply,
    connect,
    join_sql_in_chunks,
    parse_mysql_url,
    sql_literal,
)
from holdfast.transactions.mysql.group import (
    MysqlGroup,
    await_last_committed_version,
    delete_unused_session_rows,
    make_begin_statements,
    make_commit_statements,
)
from holdfast.transactions.mysql.server import (
    DEADLOCK,
    HELD,
    as_holdfast_error,
    convert_mysql_errors,
    error_code,
    is_busy_error,
    is_connection_lost_error,
    make_server_log_durable,
    prepare_database,
)
from holdfast.transactions.pool import Pool
from holdfast.transactions.sql import (
    find_outcome,
    iter_retries_until_timeout,
    load_queries,
    page_of_rows,
    records_of_rows,
)
from holdfast.transactions.validation import Step, StepKind, ValidationResult, VersionSource, steps_of_group

_SQL = load_queries(__package__)
T = TypeVar("T")


def open_backend(url: str, environment: Environment, *, create: bool) -> MysqlBackend:
    """Open the database of ``mysql://user@host:port/database``: see `holdfast.transactions.registry`."""
    options = parse_mysql_url(url)
    prepare_database(options, create=create)
    return MysqlBackend(options, environment)


class MysqlBackend(Backend):
    """A transaction database in MySQL or MariaDB; its tables must have the present schema (`prepare_database`).

    Guarantee: a commit is as durable as the server makes it; the default of both servers is a flush to disk.

    Args:
        options: the address of the database, and the bounds of connections and waits.
    """

    def __init__(self, options: MysqlOptions, environment: Environment) -> None:
        self._options = options
        self._environment = environment
        self._versions = VersionSource(environment.ids)
        self.connections = options.connections
        self._pool = Pool(self._connect, options.connections, environment.clock, options.timeout_s)

    def _connect(self) -> MysqlSession:
        ids = self._environment.ids
        return connect(self._options, int(ids.token() + ids.token(), 16) >> 33)

    def close(self) -> None:
        self._pool.close()

    # --- reads --------------------------------------------------------------------------------------------------------
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._call_on_session(lambda session: _read_records(session, keys)) if keys else {}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._call_on_session(lambda session: _scan_records(session, start, end, limit, guards))

    @contextmanager
    def snapshot(self) -> Iterator[MysqlSnapshot]:
        """Yield a reader in one transaction under REPEATABLE READ."""
        with self._begin_transaction(MysqlSnapshot.begin) as session, convert_mysql_errors(self._options.where):
            yield MysqlSnapshot(session)

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        steps = steps_of_group(commits)
        if not commits:
            return []
        return list(self._call_on_session(lambda session: self._try_commit(session, commits, steps)).outcomes)

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        steps = steps_of_group(commits)

        def try_once() -> list[Outcome] | None:
            try:
                with self._pool.lease() as session:
                    return list(self._try_commit(session, commits, steps, math.ceil(patience_s)).outcomes)
            except pymysql.MySQLError as error:
                if error_code(error) == HELD:
                    return None
                raise

        return self._retry_until_deadline(try_once)

    def _try_commit(
        self, session: MysqlSession, commits: Sequence[Commit], steps: Sequence[Step], lock_wait_s: int | None = None
    ) -> ValidationResult:
        if session.is_new:
            delete_unused_session_rows(session, self._environment)
            session.is_new = False
        group = MysqlGroup(commits, steps, self._versions.take(len(commits)))
        session.limit_lock_wait(lock_wait_s)
        result = group.lock_and_validate(session, make_begin_statements(session))
        self._end(session, group, result)
        return result

    def _end(self, session: MysqlSession, group: MysqlGroup, result: ValidationResult) -> None:
        """Write and commit, or roll back if there is nothing to write.

        Raises:
            pymysql.MySQLError: it failed, and nothing happened.
            OutcomeUnknownError: it is unknown whether the commit took effect.
        """
        if not any(step.kind > StepKind.GUARD for step in result.valid):
            session.send("ROLLBACK")
            return
        statements = chain(group.iter_write_statements(result), make_commit_statements(session, group.base))
        packets = session.join_into_packets(statements)
        begun = Moment.of(self._environment.clock)
        last = next(packets)
        for packet in packets:
            session.send(last)
            last = packet
        try:
            session.send(last)
        except Exception:
            session.close()  # ends the transaction if the server still has it
            if not self._was_committed(session, group.base, begun):
                raise

    def _was_committed(self, lost: MysqlSession, version: int, begun: Moment) -> bool:
        """Tell whether the transaction of a connection that was lost during its commit took effect.

        Guarantee: after this returned, nothing of that transaction will take effect any more.

        Args:
            begun: a moment before the commit was sent.

        Raises:
            OutcomeUnknownError: see `find_outcome`.
        """
        options = self._options

        def ask_server() -> bool | None:
            with convert_mysql_errors(options.where), closing(self._connect()) as session:
                return await_last_committed_version(session, lost) == version or None

        return find_outcome(ask_server, begun, self._pool, self._environment, options.timeout_s, options.where) or False

    def make_durable(self) -> None:
        """Flush the server's log, or wait until the server has, unless each commit flushes it."""
        self._call_on_session(
            lambda session: make_server_log_durable(session, self._environment, self._options.timeout_s)
        )

    # --- pessimistic transactions -------------------------------------------------------------------------------------
    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockedMysql]:
        """Begin a transaction that locks what it reads. It is rolled back unless `apply` was called."""
        with self._begin_transaction(self._begin_locking) as session:
            yield LockedMysql(self, session)

    def _begin_locking(self, session: MysqlSession) -> None:
        session.limit_lock_wait(None)
        session.run(make_begin_statements(session))

    # --- repetition ---------------------------------------------------------------------------------------------------
    @contextmanager
    def _begin_transaction(self, begin: Callable[[MysqlSession], object]) -> Iterator[MysqlSession]:
        """Lend a connection with an open transaction, which is rolled back at the end."""
        with ExitStack() as loan:

            def begin_once() -> MysqlSession:
                with ExitStack() as tried:
                    session = tried.enter_context(self._pool.lease())
                    begin(session)
                    loan.enter_context(tried.pop_all())
                return session

            session = self._retry_until_deadline(begin_once)
            yield session
            session.reset()

    def _call_on_session(self, work: Callable[[MysqlSession], T]) -> T:
        """Do work on a connection, as often as it takes: see `_repeat`."""

        def call_once() -> T:
            with self._pool.lease() as session:
                return work(session)

        return self._retry_until_deadline(call_once)

    def _retry_until_deadline(self, attempt: Callable[[], T]) -> T:
        """Repeat after a deadlock or a lost connection, until an attempt succeeds or time is up.

        Args:
            attempt: raises PyMySQL's errors only if nothing happened.
        """
        for _ in iter_retries_until_timeout(self._environment, self._options.timeout_s):
            try:
                return attempt()
            except pymysql.MySQLError as error:
                failure = error
                if not (is_busy_error(error) or is_connection_lost_error(error)):
                    break
        raise as_holdfast_error(failure, self._options.where) from failure


# --- pessimistic transactions ----------------------------------------------------------------------------------------
class LockedMysql:
    """A pessimistic transaction on one connection to MySQL or MariaDB.

    All methods may raise `DeadlockError`: a deadlock was resolved by ending this transaction; start over. After an
    error the transaction is over: its locks are gone.

    Args:
        session: a connection with an open transaction.
    """

    def __init__(self, backend: MysqlBackend, session: MysqlSession) -> None:
        self._backend = backend
        self._session = session
        self._is_over = False

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        query = _SQL["get_exclusive" if exclusive else "get_shared"]
        statements = [query.format(keys=texts) for texts in join_sql_in_chunks(map(sql_literal, sorted(set(keys))))]
        return _records_of_replies(self._run_statements(statements))

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return page_of_rows(self._run_statements([_make_scan_statement(start, end, limit)])[0].rows, limit, {})

    def apply(self, commit: Commit) -> Outcome:
        steps = steps_of_group([commit])
        with self._convert_statement_errors():
            self._is_over = True
            group = MysqlGroup([commit], steps, self._backend._versions.take(1))
            result = group.lock_and_validate(self._session)
            self._backend._end(self._session, group, result)
            return result.outcomes[0]

    def _run_statements(self, statements: Sequence[str]) -> list[StatementReply]:
        with self._convert_statement_errors():
            return self._session.run(statements)

    @contextmanager
    def _convert_statement_errors(self) -> Iterator[None]:
        if self._is_over:
            raise InvalidRequestError("the transaction is over: begin another one")
        try:
            yield
        except pymysql.MySQLError as error:
            self._is_over = True
            if error_code(error) == DEADLOCK:
                raise DeadlockError("two transactions waited for each other: start over") from error
            raise as_holdfast_error(error, self._backend._options.where) from error


# --- reads -----------------------------------------------------------------------------------------------------------
def _read_records(session: MysqlSession, keys: Collection[bytes]) -> dict[bytes, Record]:
    """Return the existing records by key."""
    return _records_of_replies(_run_in_snapshot(session, _make_get_statements(keys)))


def _scan_records(session: MysqlSession, start: bytes, end: bytes, limit: int, guards: Collection[bytes]) -> ScanPage:
    """Return the first records of a range, and the guards."""
    first, *rest = _run_in_snapshot(session, [_make_scan_statement(start, end, limit), *_make_get_statements(guards)])
    return page_of_rows(first.rows, limit, _records_of_replies(rest))


class MysqlSnapshot:
    """Reads records from one snapshot, in a transaction that is open on a connection of its own."""

    def __init__(self, session: MysqlSession) -> None:
        self._session = session

    @staticmethod
    def begin(session: MysqlSession) -> None:
        """Begin the transaction, and take its snapshot now; by default, the server would take it at the first read."""
        session.allow_long_idle()
        session.run([_SQL["snapshot_level"], _SQL["begin_lasting_snapshot"]])

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """See `Backend.get_many`."""
        return _records_of_replies(self._session.run(_make_get_statements(keys)))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """See `Backend.scan`."""
        (reply,) = self._session.run([_make_scan_statement(start, end, limit)])
        return page_of_rows(reply.rows, limit, self.get_many(guards))


def _make_scan_statement(start: bytes, end: bytes, limit: int) -> str:
    return _SQL["scan"].format(start=sql_literal(start), end=sql_literal(end), limit=limit + 1)


def _records_of_replies(replies: Iterable[StatementReply]) -> dict[bytes, Record]:
    return records_of_rows(row for reply in replies for row in reply.rows)


def _make_get_statements(keys: Collection[bytes]) -> list[str]:
    return [_SQL["get"].format(keys=texts) for texts in join_sql_in_chunks(map(sql_literal, dict.fromkeys(keys)))]


def _run_in_snapshot(session: MysqlSession, statements: Sequence[str]) -> list[StatementReply]:
    """Run queries that see one snapshot; one query sees one by itself."""
    if len(statements) == 1:
        return session.run(statements)
    return session.run([_SQL["snapshot_level"], _SQL["begin_snapshot"], *statements, "COMMIT"])[2:-1]
