"""Lock records while a transaction works: the pessimistic way of paper 004 (2.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import pymysql

from holdfast.errors import DeadlockError, InvalidRequestError
from holdfast.transactions.base import Commit, Outcome, Record, ScanPage
from holdfast.transactions.mysql.connection import Link, Reply, chunked, literal
from holdfast.transactions.mysql.failures import as_holdfast_error, is_deadlock
from holdfast.transactions.mysql.locking import Group
from holdfast.transactions.mysql.reading import as_records, scan_page, scan_statement
from holdfast.transactions.sql_files import load_queries
from holdfast.transactions.steps import Judgment, VersionSource, steps_of

_SQL = load_queries(__package__)


class LockedMysql:
    """A pessimistic transaction on one connection.

    All methods may raise `DeadlockError`: a deadlock was resolved by ending this transaction; start over. After an
    error the transaction is over: its locks are gone.

    Args:
        link: a connection with an open transaction.
        end: writes and commits.
        where: the database, without secrets.
    """

    def __init__(
        self, link: Link, versions: VersionSource, end: Callable[[Link, Group, Judgment], None], where: str
    ) -> None:
        self._link = link
        self._versions = versions
        self._end = end
        self._where = where
        self._is_over = False

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        query = _SQL["get_exclusive" if exclusive else "get_shared"]
        statements = [query.format(keys=texts) for texts in chunked(map(literal, sorted(set(keys))))]
        return dict(record for reply in self._run(statements) for record in as_records(reply.rows))

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return scan_page(self._run([scan_statement(start, end, limit)])[0], limit, {})

    def apply(self, commit: Commit) -> Outcome:
        steps = steps_of([commit])
        with self._step():
            self._is_over = True
            group = Group([commit], steps, self._versions.take(1))
            judgment = group.lock(self._link)
            self._end(self._link, group, judgment)
            return judgment.outcomes[0]

    def _run(self, statements: Sequence[str]) -> list[Reply]:
        with self._step():
            return self._link.run(statements)

    @contextmanager
    def _step(self) -> Iterator[None]:
        if self._is_over:
            raise InvalidRequestError("the transaction is over: begin another one")
        try:
            yield
        except pymysql.MySQLError as error:
            self._is_over = True
            if is_deadlock(error):
                raise DeadlockError("two transactions waited for each other: start over") from error
            raise as_holdfast_error(error, self._where) from error
