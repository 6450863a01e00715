"""Commit transactions in MySQL or MariaDB.

A group takes two round trips. The first begins a transaction, locks and reads (`locking`); the second writes and
commits. Deadlocks and lost connections are repeated inside as long as it is certain that nothing happened; when the
reply to a commit is lost, the connection's session tells what happened (`sessions`).

Source: the MySQL manual, "Locks Set by Different SQL Statements in InnoDB" and "InnoDB Error Handling".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TypeVar

import pymysql

from holdfast.runtime import Environment, Moment
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.mysql.connection import Link, connect
from holdfast.transactions.mysql.durability import flush_log
from holdfast.transactions.mysql.failures import as_holdfast_error, is_busy, is_held, is_lost, mysql_errors
from holdfast.transactions.mysql.locked import LockedMysql
from holdfast.transactions.mysql.locking import Group, find_held
from holdfast.transactions.mysql.options import MysqlOptions
from holdfast.transactions.mysql.reading import MysqlSnapshot, read_records, scan_records
from holdfast.transactions.mysql.sessions import (
    begin_statements,
    commit_statements,
    pauses,
    sweep_sessions,
    was_committed,
)
from holdfast.transactions.pool import Pool
from holdfast.transactions.steps import Judgment, Kind, Step, VersionSource, steps_of

T = TypeVar("T")


class MysqlBackend(Backend):
    """A transaction database in a MySQL or MariaDB database, which must have the present schema (`prepare_database`).

    Guarantee: a commit is as durable as the server makes it; the default of both servers is a flush to disk.

    Args:
        options: the database, and the bounds of connections and waits.
    """

    def __init__(self, options: MysqlOptions, environment: Environment) -> None:
        self._options = options
        self._environment = environment
        self._versions = VersionSource(environment.ids)
        self._pool = Pool(self._connect, options.connections, environment.clock, options.timeout_s)

    def _connect(self) -> Link:
        ids = self._environment.ids
        return connect(self._options, int(ids.token() + ids.token(), 16) >> 33)

    def close(self) -> None:
        self._pool.close()

    # --- reads --------------------------------------------------------------------------------------------------------
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._call(lambda link: read_records(link, keys)) if keys else {}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._call(lambda link: scan_records(link, start, end, limit, guards))

    @contextmanager
    def snapshot(self) -> Iterator[MysqlSnapshot]:
        """Read in one transaction under REPEATABLE READ."""
        with self._begun(MysqlSnapshot.begin) as link, mysql_errors(self._options.where):
            yield MysqlSnapshot(link)

    # --- commits ------------------------------------------------------------------------------------------------------
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        steps = steps_of(commits)
        if not commits:
            return []
        return list(self._call(lambda link: self._try_commit(link, commits, steps)).outcomes)

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        steps = steps_of(commits)

        def attempt() -> list[Outcome] | None:
            try:
                with self._pool.lease() as link:
                    return list(self._try_commit(link, commits, steps, math.ceil(patience_s)).outcomes)
            except pymysql.MySQLError as error:
                if is_held(error):
                    return None
                raise

        return self._repeat(attempt)

    def held_keys(self, keys: Collection[bytes]) -> set[bytes]:
        return self._call(lambda link: find_held(link, keys))

    def _try_commit(
        self, link: Link, commits: Sequence[Commit], steps: Sequence[Step], lock_wait_s: int | None = None
    ) -> Judgment:
        if link.is_new:
            sweep_sessions(link, self._environment)
            link.is_new = False
        group = Group(commits, steps, self._versions.take(len(commits)))
        link.limit_waits(lock_wait_s)
        judgment = group.lock(link, begin_statements(link.session))
        self._end(link, group, judgment)
        return judgment

    def _end(self, link: Link, group: Group, judgment: Judgment) -> None:
        """Write and commit, or roll back if there is nothing to write.

        Raises:
            pymysql.MySQLError: it failed, and nothing happened.
            OutcomeUnknownError: it is unknown whether the commit took effect.
        """
        if not any(step.kind > Kind.GUARD for step in judgment.valid):
            link.send("ROLLBACK")
            return
        statements = chain(group.write_statements(judgment), commit_statements(link.session, group.base))
        packets = link.packets(statements)
        begun = Moment.of(self._environment.clock)
        last = next(packets)
        for packet in packets:
            link.send(last)
            last = packet
        try:
            link.send(last)
        except Exception:
            link.close()  # ends the transaction if the server still has it
            if not self._was_committed(link, group.base, begun):
                raise

    def _was_committed(self, lost: Link, version: int, begun: Moment) -> bool:
        return was_committed(
            lost,
            version,
            begun,
            self._connect,
            self._environment,
            self._options.timeout_s,
            self._options.where,
            lambda: self._pool.is_closed,
        )

    def make_durable(self) -> None:
        """Flush the log of the server, or wait until it has, unless it does so with each commit."""
        self._call(lambda link: flush_log(link, self._environment, self._options.timeout_s))

    # --- pessimistic transactions -------------------------------------------------------------------------------------
    @contextmanager
    def locked(self) -> Iterator[LockedMysql]:
        """Begin a transaction that locks what it reads. It is rolled back unless `apply` was called."""
        with self._begun(self._begin_locking) as link:
            yield LockedMysql(link, self._versions, self._end, self._options.where)

    def _begin_locking(self, link: Link) -> None:
        link.limit_waits(None)
        link.run(begin_statements(link.session))

    # --- repetition ---------------------------------------------------------------------------------------------------
    @contextmanager
    def _begun(self, begin: Callable[[Link], object]) -> Iterator[Link]:
        """Lend a connection with an open transaction, which is rolled back at the end."""
        with ExitStack() as loan:

            def attempt() -> Link:
                with ExitStack() as tried:
                    link = tried.enter_context(self._pool.lease())
                    begin(link)
                    loan.enter_context(tried.pop_all())
                return link

            link = self._repeat(attempt)
            yield link
            link.reset()

    def _call(self, work: Callable[[Link], T]) -> T:
        """Do work on a connection, as often as it takes: see `_repeat`."""

        def attempt() -> T:
            with self._pool.lease() as link:
                return work(link)

        return self._repeat(attempt)

    def _repeat(self, attempt: Callable[[], T]) -> T:
        """Repeat after a deadlock or a lost connection, until an attempt succeeds or time is up.

        Args:
            attempt: raises PyMySQL's errors only if nothing happened.
        """
        for _ in pauses(self._environment, self._options.timeout_s):
            try:
                return attempt()
            except pymysql.MySQLError as error:
                failure = error
                if not (is_busy(error) or is_lost(error)):
                    break
        raise as_holdfast_error(failure, self._options.where) from failure
