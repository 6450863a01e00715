"""Lock the records of a group in one packet of statements, and write what the group's valid transactions write.

The validation phase of paper 004 (3.4) and its update phase (3.5), in MySQL's terms. Keys are locked in their global
order, so two groups do not wait for each other in a circle. A record that is only read is locked shared, so that those
who read it do not wait for each other. An absent record cannot be locked under READ COMMITTED: it is *claimed*, which
means that it is inserted, with its final value or as a placeholder of version 0. It is invisible before the commit, and
what is not wanted is deleted before that.

Each connection owns a row of the table of sessions. A transaction locks the row of its connection before anything else,
and its commit writes the version of the group into it. When a connection dies after the commit was sent, another one
locks that row. It gets the lock only when the old transaction has ended, one way or the other, because the old one held
the lock before its commit was sent. So what the row then says is final: nothing of the old transaction can come later.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

import pymysql

from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Commit, Record
from holdfast.transactions.mysql.connection import MysqlSession, join_sql_in_chunks, sql_literal
from holdfast.transactions.mysql.server import is_busy_error
from holdfast.transactions.sql import load_queries
from holdfast.transactions.validation import ANY, Step, StepKind, ValidationResult, apply_steps, validate_group

_SQL = load_queries(__package__)


class _LockStrength(enum.IntEnum):
    """How a key is locked, the strongest last."""

    SHARED = 1
    EXCLUSIVE = 2
    CLAIM = 3


@dataclass
class MysqlGroup:
    """A group of transactions that is validated and applied in one database transaction of MySQL or MariaDB.

    Attributes:
        steps: those of `commits`, ordered by key.
        base: the version that the first transaction would give to its records; the others give the next ones.
    """

    commits: Sequence[Commit]
    steps: Sequence[Step]
    base: int
    _locks: dict[bytes, _LockStrength] = field(default_factory=dict, init=False)
    _inserts: dict[bytes, Step] = field(default_factory=dict, init=False)  # claimed keys with their final values
    _seen: dict[bytes, Record] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for step in self.steps:
            self._locks[step.key] = max(_lock_of(step), self._locks.get(step.key, _LockStrength.SHARED))
            if step.kind is StepKind.INSERT or (step.kind is StepKind.PUT and step.expected == ABSENT):
                self._inserts[step.key] = step

    def lock_and_validate(self, session: MysqlSession, first: Sequence[str] = ()) -> ValidationResult:
        """Lock the records of all steps, read their versions and numbers, and return which transactions are valid.

        Args:
            first: statements to run before, in the same packet.
        """
        wanted = [(call, index) for call, commit in enumerate(self.commits) for index, _ in enumerate(commit.ranges)]
        no_integers = list(self._iter_integer_check_statements())
        replies = session.run(
            chain(first, self.iter_lock_statements(), no_integers, self._iter_range_count_statements())
        )
        counted = len(replies) - len(wanted)
        locked = counted - len(no_integers)
        for reply in replies[len(first) : locked]:
            for key, version, number in reply.rows:
                self._seen[key] = Record(version, b"", number)
        for reply in replies[locked:counted]:
            for key, head in reply.rows:
                if (record := self._seen.get(key)) is not None:  # else others have created it since: no step expects it
                    self._seen[key] = replace(record, value=head)
        found = [int(reply.rows[0][0]) for reply in replies[counted:]]
        return validate_group(self.commits, self.steps, self._seen, dict(zip(wanted, found, strict=True)), self.base)

    def iter_lock_statements(self) -> Iterator[str]:
        """Yield the statements that lock all keys of the group in order, and read the records."""
        claimed: list[bytes] = []
        for lock, keys in groupby(self._locks, key=self._locks.__getitem__):  # the steps are ordered by key
            if lock is _LockStrength.CLAIM:
                run = list(keys)
                claimed += run
                for rows in join_sql_in_chunks(map(self._format_insert_row, run)):
                    yield _SQL["claim"].format(rows=rows)
            else:
                query = _SQL["lock_shared" if lock is _LockStrength.SHARED else "lock_exclusive"]
                for texts in join_sql_in_chunks(map(sql_literal, keys)):
                    yield query.format(keys=texts)
        for texts in join_sql_in_chunks(map(sql_literal, claimed)):
            yield _SQL["claimed"].format(keys=texts, **self._get_group_version_range())

    def _format_insert_row(self, key: bytes) -> str:
        step = self._inserts.get(key)
        if step is None:
            return f"({sql_literal(key)},0,'',0)"
        return f"({sql_literal(key)},{self.base + step.call},{sql_literal(step.value)},0)"

    def _iter_integer_check_statements(self) -> Iterator[str]:
        added = dict.fromkeys(step.key for step in self.steps if step.kind is StepKind.ADD and step.delta)
        for texts in join_sql_in_chunks(map(sql_literal, added)):
            yield _SQL["no_integers"].format(keys=texts)

    def _iter_range_count_statements(self) -> Iterator[str]:
        for commit in self.commits:
            for one in commit.ranges:
                yield _SQL["count"].format(
                    start=sql_literal(one.start),
                    end=sql_literal(one.end),
                    limit=one.count + 1,
                    **self._get_group_version_range(),
                )

    def _get_group_version_range(self) -> Mapping[str, int]:
        return {"first": self.base, "last": self.base + len(self.commits) - 1}

    def iter_write_statements(self, result: ValidationResult) -> Iterator[str]:
        """Yield the statements that write what valid transactions write, and delete unneeded placeholders."""
        changes = apply_steps(self._seen, result.valid, self.base)
        counters = {step.key for step in result.valid if step.kind is StepKind.ADD}
        written = [(key, record) for key, record in changes.items() if record is not None]
        puts = (
            f"({sql_literal(key)},{record.version},{sql_literal(record.value)},0)"
            for key, record in written
            if key not in counters and key not in self._inserts
        )
        numbers = (
            f"({sql_literal(key)},{record.version},'',{record.number})" for key, record in written if key in counters
        )
        yield from (_SQL["put"].format(rows=rows) for rows in join_sql_in_chunks(puts))
        yield from (_SQL["set_numbers"].format(rows=rows) for rows in join_sql_in_chunks(numbers))
        for key, lock in self._locks.items():
            is_deleted = key in changes and key in self._seen
            is_unused = lock is _LockStrength.CLAIM and key not in self._seen
            if (is_deleted or is_unused) and changes.get(key) is None:
                yield _SQL["delete"].format(key=sql_literal(key))


def _lock_of(step: Step) -> _LockStrength:
    """Return the lock for a step. A record that the step expects, but that is gone, needs none: the step has failed."""
    if step.expected in (ABSENT, ANY):
        return (
            _LockStrength.CLAIM
        )  # even to delete it: no other transaction may create the record before this one takes effect
    return _LockStrength.SHARED if step.kind is StepKind.READ else _LockStrength.EXCLUSIVE


# --- sessions: whether a commit took effect whose reply was lost -----------------------------------------------------
_SETTLE_LOCK_WAIT_S = 1
_DAY_S = 24 * 3600

_SWEEP_SHARE = 0.05
"""How many of the new connections look for old sessions."""

_SWEEP_LIMIT = 100


def delete_unused_session_rows(session: MysqlSession, environment: Environment) -> None:
    """Delete up to 100 rows of sessions that were not used for a day, with a small probability at each call."""
    if not environment.chance.happens(_SWEEP_SHARE):
        return
    query = _SQL["old_sessions"].format(age_s=_DAY_S, limit=_SWEEP_LIMIT)
    with suppress(pymysql.MySQLError):  # others will do it; and if the connection broke, the next statement tells
        for (old,) in session.send(query)[0].rows:
            session.send(_SQL["delete_session"].format(session=old, age_s=_DAY_S))


def make_begin_statements(session: MysqlSession) -> tuple[str, str]:
    """Return the statements that begin a transaction and lock the row of its connection in the table of sessions."""
    return "START TRANSACTION", _SQL["claim_session"].format(session=session.id)


def make_commit_statements(session: MysqlSession, version: int) -> tuple[str, str]:
    """Return the statements that write the version of a commit into the row of its connection, and commit."""
    return _SQL["save_session"].format(session=session.id, version=version), "COMMIT"


def await_last_committed_version(session: MysqlSession, lost: MysqlSession) -> int:
    """Wait until the transaction of a lost connection has ended; return the version of the last commit on it.

    0 means that nothing was committed on it.

    Args:
        session: another connection, which asks.
        lost: the connection that broke.
    """
    session.send(f"SET SESSION innodb_lock_wait_timeout = {_SETTLE_LOCK_WAIT_S}")
    statements = ["START TRANSACTION", _SQL["lock_session"].format(session=lost.id), "COMMIT"]
    try:
        rows = session.run(statements)[1].rows
    except pymysql.MySQLError as error:
        if not is_busy_error(error):
            raise
        session.send("ROLLBACK")
        _kill_server_connection(session, lost.thread)
        rows = session.run(statements)[1].rows
    return int(rows[0][0]) if rows else 0


def _kill_server_connection(session: MysqlSession, thread: int) -> None:
    """End a connection whose client is gone without the server having noticed, so that its transaction ends.

    A thread that is at work is left alone: it will end by itself. After a restart, the number may be that of another
    connection of this user; if that one is idle, it finds its connection lost, and repeats.
    """
    with suppress(pymysql.MySQLError):  # it ended in the meantime
        if session.send(_SQL["idle_thread"].format(thread=thread))[0].rows:
            session.send(f"KILL {thread}")
