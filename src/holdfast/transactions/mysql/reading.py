"""Read records, all of them from one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from holdfast.transactions.base import Record, ScanPage
from holdfast.transactions.mysql.connection import Link, Reply, chunked, literal
from holdfast.transactions.sql_files import load_queries

_SQL = load_queries(__package__)


def read_records(link: Link, keys: Collection[bytes]) -> dict[bytes, Record]:
    """Return the existing records by key."""
    replies = _run_in_snapshot(link, _get_statements(keys))
    return dict(record for reply in replies for record in as_records(reply.rows))


def scan_records(link: Link, start: bytes, end: bytes, limit: int, guards: Collection[bytes]) -> ScanPage:
    """Return the first records of a range, and the guards."""
    first, *rest = _run_in_snapshot(link, [scan_statement(start, end, limit), *_get_statements(guards)])
    return scan_page(first, limit, dict(record for reply in rest for record in as_records(reply.rows)))


class MysqlSnapshot:
    """Reads one snapshot: its transaction has begun, and nothing else uses its connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @staticmethod
    def begin(link: Link) -> None:
        """Begin the transaction, and take its snapshot now: by itself, the server takes it at the first read."""
        link.let_idle()
        link.run([_SQL["snapshot_level"], _SQL["begin_lasting_snapshot"]])

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """See `Backend.get_many`."""
        replies = self._link.run(_get_statements(keys)) if keys else []
        return dict(record for reply in replies for record in as_records(reply.rows))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """See `Backend.scan`."""
        (reply,) = self._link.run([scan_statement(start, end, limit)])
        return scan_page(reply, limit, self.get_many(guards))


def scan_statement(start: bytes, end: bytes, limit: int) -> str:
    """Return the statement whose reply `scan_page` turns into a page: it asks for one record more than the limit."""
    return _SQL["scan"].format(start=literal(start), end=literal(end), limit=limit + 1)


def scan_page(reply: Reply, limit: int, guards: dict[bytes, Record]) -> ScanPage:
    """Return the page that a `scan_statement` has found."""
    return ScanPage(as_records(reply.rows[:limit]), len(reply.rows) > limit, guards)


def as_records(rows: Sequence[tuple[Any, ...]]) -> list[tuple[bytes, Record]]:
    """Return the records of rows with key, version, value and number."""
    return [(key, Record(version, value, number)) for key, version, value, number in rows]


def _get_statements(keys: Collection[bytes]) -> list[str]:
    return [_SQL["get"].format(keys=texts) for texts in chunked(map(literal, dict.fromkeys(keys)))]


def _run_in_snapshot(link: Link, statements: Sequence[str]) -> list[Reply]:
    """Run queries that see one snapshot; one query sees one by itself."""
    if len(statements) == 1:
        return link.run(statements)
    return link.run([_SQL["snapshot_level"], _SQL["begin_snapshot"], *statements, "COMMIT"])[2:-1]
