"""Flush the log of a server that does not flush it with each commit."""

from __future__ import annotations

import pymysql

from holdfast.errors import UnsupportedError
from holdfast.transactions.mysql.connection import Link
from holdfast.transactions.mysql.failures import code_of
from holdfast.transactions.sql_files import load_queries

__all__ = ["flush_log"]

_SQL = load_queries(__package__)
_ALWAYS = (1, 3)
"""Every commit flushes; 3 is MariaDB's, and flushes twice if there is a binary log."""

_DENIED = 1227


def flush_log(link: Link) -> None:
    """Flush the log, unless every commit does.

    Raises:
        pymysql.MySQLError: it failed; perhaps parts of the log are on the disk.
        UnsupportedError: the user may not flush it.

    Source: MySQL manual, "innodb_flush_log_at_trx_commit" and "FLUSH ENGINE LOGS".
    """
    (reply,) = link.run([_SQL["when_flushed"]])
    if int(reply.rows[0][0]) in _ALWAYS:
        return
    try:
        link.run([_SQL["flush_log"]])
    except pymysql.MySQLError as error:
        if code_of(error) != _DENIED:
            raise
        raise UnsupportedError(
            "the server loses commits when it crashes: set innodb_flush_log_at_trx_commit to 1, or grant RELOAD"
        ) from error
