"""`make_durable` flushes the log of the server, or says what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pymysql
import pytest

from holdfast.errors import UnsupportedError
from holdfast.transactions.base import Commit
from holdfast.transactions.mysql.connection import Link, Reply
from holdfast.transactions.mysql.durability import flush_log
from holdfast.transactions.mysql.store import MysqlTransactionStore


def test_a_server_flushes_its_log(store: MysqlTransactionStore) -> None:
    store.commit(Commit(puts={b"a": b"1"}))
    store.make_durable()
    assert store.get_many([b"a"])[b"a"].value == b"1"


class _Link:
    """A connection to a server with a setting, which lets this user do something, or not."""

    def __init__(self, setting: int, error: Exception | None = None) -> None:
        self.statements: list[str] = []
        self._setting = setting
        self._error = error

    def run(self, statements: Sequence[str]) -> list[Reply]:
        self.statements += statements
        if len(self.statements) > 1 and self._error is not None:
            raise self._error
        return [Reply(0, [(self._setting,)])]


@pytest.mark.parametrize(
    ("setting", "flushes"), [(0, True), (1, False), (2, True), pytest.param(3, False, id="of MariaDB")]
)
def test_a_log_is_flushed_unless_every_commit_does(setting: int, flushes: bool) -> None:
    link = _Link(setting)
    flush_log(cast("Link", link))
    assert link.statements[1:] == (["FLUSH LOCAL ENGINE LOGS"] if flushes else [])


def test_a_user_who_may_not_flush() -> None:
    with pytest.raises(UnsupportedError, match="set innodb_flush_log_at_trx_commit to 1, or grant RELOAD"):
        flush_log(cast("Link", _Link(2, pymysql.OperationalError(1227, "Access denied; you need RELOAD"))))


def test_another_failure() -> None:
    with pytest.raises(pymysql.OperationalError):
        flush_log(cast("Link", _Link(2, pymysql.OperationalError(2013, "Lost connection"))))
