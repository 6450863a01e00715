"""Read records through a connection."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from holdfast.transactions.base import Record, ScanPage
from holdfast.transactions.sql_files import load_queries

_SQL = load_queries(__package__)
_KEYS_PER_QUERY = 500


def get_many(connection: sqlite3.Connection, keys: list[bytes], query: str = "get") -> dict[bytes, Record]:
    """Return the records that exist, as they were at one moment."""
    if len(keys) <= _KEYS_PER_QUERY:
        return _get_some(connection, keys, query)
    with snapshot(connection, wanted=not connection.in_transaction):
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


def scan(connection: sqlite3.Connection, start: bytes, end: bytes, limit: int, guards: list[bytes]) -> ScanPage:
    """Return a page of a range; with guards, in a transaction only."""
    rows = connection.execute(_SQL["scan"], (start, end, limit + 1)).fetchall()
    records = [(key, Record(version, value, number)) for key, version, value, number in rows[:limit]]
    return ScanPage(records, len(rows) > limit, get_many(connection, guards) if guards else {})


@contextmanager
def snapshot(connection: sqlite3.Connection, *, wanted: bool) -> Iterator[None]:
    """Let several queries see one snapshot."""
    pid = os.getpid()
    if wanted:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if wanted and pid == os.getpid() and connection.in_transaction:
            connection.execute("COMMIT")
