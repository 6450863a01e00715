"""Find out whether a commit took effect whose reply was lost.

Each connection owns a row of the table of sessions. A transaction locks the row of its connection before anything else,
and its commit writes the version of the group into it. When a connection dies after the commit was sent, another one
locks that row. It gets the lock only when the old transaction has ended, one way or the other, because the old one held
the lock before its commit was sent. So what the row then says is final: nothing of the old transaction can come later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pymysql

from holdfast.errors import HoldfastError, OutcomeUnknownError
from holdfast.runtime import Environment, Moment
from holdfast.transactions.mysql.connection import Link
from holdfast.transactions.mysql.failures import is_busy
from holdfast.transactions.sql_files import load_queries

_SQL = load_queries(__package__)

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.5
_SETTLE_LOCK_WAIT_S = 1
_DAY_S = 24 * 3600
_TRUSTED_S = _DAY_S / 2
"""How old a commit may be for a missing session to mean that it did not happen: sessions are kept for a day."""

_SWEEP_SHARE = 0.05
"""How many of the new connections look for old sessions."""

_SWEEP_LIMIT = 100


def sweep_sessions(link: Link, environment: Environment) -> None:
    """Delete sessions that nobody has used for a day: some of them, at some of the calls."""
    if not environment.chance.happens(_SWEEP_SHARE):
        return
    query = _SQL["old_sessions"].format(age_s=_DAY_S, limit=_SWEEP_LIMIT)
    with suppress(pymysql.MySQLError):  # others will do it; and if the connection broke, the next statement tells
        for (session,) in link.send(query)[0].rows:
            link.send(_SQL["delete_session"].format(session=session, age_s=_DAY_S))


def begin_statements(session: int) -> tuple[str, str]:
    """Return the statements that begin a transaction and lock its session."""
    return "START TRANSACTION", _SQL["claim_session"].format(session=session)


def commit_statements(session: int, version: int) -> tuple[str, str]:
    """Return the statements that record the version in the session and commit."""
    return _SQL["save_session"].format(session=session, version=version), "COMMIT"


def pauses(environment: Environment, timeout_s: float) -> Iterator[None]:
    """Yield for each try until time is up; wait between them, longer each time, and not for the same time as others."""
    deadline_s = environment.clock.elapsed_s() + timeout_s
    pause_s = _FIRST_PAUSE_S
    yield
    while environment.clock.elapsed_s() < deadline_s:
        environment.clock.sleep(pause_s * (0.5 + environment.chance.fraction()))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        yield


def was_committed(
    lost: Link,
    version: int,
    begun: Moment,
    open_link: Callable[[], Link],
    environment: Environment,
    timeout_s: float,
    where: str,
    is_closed: Callable[[], bool] = lambda: False,
) -> bool:
    """Tell whether the transaction of a connection that was lost during its commit took effect.

    Guarantee: after this returned, nothing of that transaction will take effect any more. Whatever the server says in
    the meantime, such as "wrong password" or "read-only", is no answer about the commit.

    Args:
        begun: a moment before the commit was sent.
        is_closed: whether the database was closed: then nobody goes on.

    Raises:
        OutcomeUnknownError: the server did not come back in time, or the session may have been deleted as an old one,
            as this process or its machine was suspended.
    """
    failure: BaseException | None = None
    for _ in pauses(environment, timeout_s):
        if is_closed():
            break
        try:
            link = open_link()
        except (pymysql.MySQLError, HoldfastError) as error:
            failure = error
            continue
        try:
            is_committed = _last_version(link, lost) == version
        except (pymysql.MySQLError, HoldfastError) as error:
            failure = error
        else:
            if is_committed or begun.age_s(environment.clock) < _TRUSTED_S:
                return is_committed
            break
        finally:
            link.close()
    raise OutcomeUnknownError(
        "the database server went away during a commit and did not tell its outcome: read the records before repeating",
        database=where,
    ) from failure


def _last_version(link: Link, lost: Link) -> int:
    """Return the version of a session's last commit, 0 if there was none, once its transaction has ended."""
    link.send(f"SET SESSION innodb_lock_wait_timeout = {_SETTLE_LOCK_WAIT_S}")
    statements = ["START TRANSACTION", _SQL["lock_session"].format(session=lost.session), "COMMIT"]
    try:
        rows = link.run(statements)[1].rows
    except pymysql.MySQLError as error:
        if not is_busy(error):
            raise
        link.send("ROLLBACK")
        _end_thread(link, lost.thread)
        rows = link.run(statements)[1].rows
    return int(rows[0][0]) if rows else 0


def _end_thread(link: Link, thread: int) -> None:
    """End a connection whose client is gone without the server having noticed, so that its transaction ends.

    A thread that is at work is left alone: it will end by itself. After a restart, the number may be that of another
    connection of this user; if that one is idle, it finds its connection lost, and repeats.
    """
    with suppress(pymysql.MySQLError):  # it ended in the meantime
        if link.send(_SQL["idle_thread"].format(thread=thread))[0].rows:
            link.send(f"KILL {thread}")
