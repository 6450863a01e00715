"""Flush the log of a server that does not flush it with each commit."""

from __future__ import annotations

import pymysql

from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions.mysql.connection import Link
from holdfast.transactions.mysql.failures import code_of
from holdfast.transactions.mysql.sessions import pauses
from holdfast.transactions.sql_files import load_queries

_SQL = load_queries(__package__)

_ONCE, _TWICE = 1, 3
"""Every commit flushes; with a binary log, only what prepares it, or, with MariaDB's 3, also what ends it."""

_DENIED = 1227


def flush_log(link: Link, environment: Environment, timeout_s: float) -> None:
    """Return when everything that was committed before is in the log on the disk.

    With a binary log, a commit is as durable as that: what is prepared in the log, and not in the binary log, a server
    that starts after a crash takes back. MariaDB syncs the binary log late unless it is told otherwise (`sync_binlog`).

    MySQL flushes the log when it is told to. MariaDB then does nothing with the setting 0, and does not sync the file
    with 2; but once a second it flushes the log by itself, and tells how far it is. With it, it flushes what ends the
    commits, which then need no binary log.

    Args:
        timeout_s: how long to wait for a server that flushes by itself.

    Raises:
        pymysql.MySQLError: it failed; perhaps parts of the log are on the disk.
        UnavailableError: the server did not flush in time.
        UnsupportedError: the user may not flush it.

    Source: MySQL manual, "innodb_flush_log_at_trx_commit", "sync_binlog" and "FLUSH ENGINE LOGS"; MariaDB
    11.8, `innobase_flush_logs` in storage/innobase/handler/ha_innodb.cc, and the status variables ``Innodb_lsn_…``.
    """
    (reply,) = link.run([_SQL["when_flushed"]])
    flushes, has_binary_log, synced_after = map(int, reply.rows[0])
    if flushes == _TWICE or (flushes == _ONCE and (not has_binary_log or synced_after == 1)):
        return
    place = _places(link)
    if not place:
        _flush(link)
        return
    for _ in pauses(environment, timeout_s):
        if _places(link)["innodb_lsn_flushed"] >= place["innodb_lsn_current"]:
            return
    raise UnavailableError("the server does not flush its log: set innodb_flush_log_at_trx_commit and sync_binlog to 1")


def _places(link: Link) -> dict[str, int]:
    """Return where MariaDB's log ends, in memory and on the disk; nothing if it is another server."""
    (reply,) = link.run([_SQL["places_in_log"]])
    return {str(name).lower(): int(value) for name, value in reply.rows}


def _flush(link: Link) -> None:
    try:
        link.run([_SQL["flush_log"]])
    except pymysql.MySQLError as error:
        if code_of(error) != _DENIED:
            raise
        raise UnsupportedError(
            "the server loses commits when it crashes: set innodb_flush_log_at_trx_commit and sync_binlog to 1, or "
            "grant RELOAD"
        ) from error
