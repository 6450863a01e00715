"""Pessimistic transactions: what they read stays as it is, and deadlocks are the caller's to repeat."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from holdfast.errors import ConflictError, HoldfastError, InvalidRequestError, UnavailableError
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.options import MysqlOptions
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy
from tests.patience import PATIENCE_S
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open


def test_read_scan_and_apply(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"1", b"b": b"2", b"c": b"3"}, adds={b"n": 4}))
    with backend.locked() as transaction:
        found = transaction.read([b"n", b"a", b"absent"], exclusive=True)
        assert {key: (record.value, record.number) for key, record in found.items()} == {
            b"a": (b"1", 0),
            b"n": (b"", 4),
        }
        page = transaction.scan(b"a", b"z", 2)
        assert ([key for key, _ in page.records], page.more, page.guards) == ([b"a", b"b"], True, {})
        outcome = transaction.apply(Commit(reads={b"a": found[b"a"].version}, puts={b"a": b"new"}, deletes=[b"b"]))
    assert isinstance(outcome, Committed)
    assert backend.get_many([b"a", b"b"])[b"a"].value == b"new"
    assert backend.get_many([b"b"]) == {}


def test_a_scan_sees_what_others_have_committed_since(backend: MysqlBackend) -> None:
    with backend.locked() as transaction:
        for number in range(3):
            backend.commit(Commit(inserts={b"a%d" % number: b""}))
            assert len(transaction.scan(b"a", b"b", 10).records) == number + 1


def test_a_commit_may_still_be_in_conflict(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b""}))
    with backend.locked() as transaction:
        outcome = transaction.apply(Commit(inserts={b"a": b"", b"b": b""}))
    assert outcome == Conflict((b"a",))
    assert backend.get_many([b"b"]) == {}


def test_what_is_not_applied_is_released_without_effect(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"1"}))
    with suppress(KeyError), backend.locked() as transaction:
        transaction.read([b"a"], exclusive=True)
        raise KeyError
    assert isinstance(backend.commit(Commit(puts={b"a": b"2"})), Committed)


def test_writers_take_turns(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0"}))

    def increment(_: int) -> None:
        with backend.locked() as transaction:
            count = int(transaction.read([b"a"], exclusive=True)[b"a"].value)
            assert isinstance(transaction.apply(Commit(puts={b"a": b"%d" % (count + 1)})), Committed)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(increment, range(60)))
    assert backend.get_many([b"a"])[b"a"].value == b"60"


def test_readers_share(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0"}))
    with backend.locked() as one, backend.locked() as other:
        assert one.read([b"a"], exclusive=False) == other.read([b"a"], exclusive=False)


def test_a_deadlock_is_a_conflict_and_ends_the_transaction(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0", b"b": b"0"}))
    both = threading.Barrier(2)
    refused: list[HoldfastError] = []

    def work(first: bytes, second: bytes) -> None:
        attempt = 0
        while True:
            attempt += 1
            try:
                with backend.locked() as transaction:
                    transaction.read([first], exclusive=True)
                    if attempt == 1:
                        both.wait(PATIENCE_S)
                    try:
                        found = transaction.read([second], exclusive=True)
                    except ConflictError:
                        with pytest.raises(InvalidRequestError, match="the transaction is over: begin another one"):
                            transaction.read([first], exclusive=True)
                        raise
                    number = int(found[second].value) + 1
                    transaction.apply(Commit(puts={second: b"%d" % number}))
                    return
            except ConflictError as error:
                refused.append(error)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(work, b"a", b"b"), threads.submit(work, b"b", b"a")]:
            done.result()
    assert [error.message for error in refused] == ["two transactions waited for each other: start over"]
    assert {record.value for record in backend.get_many([b"a", b"b"]).values()} == {b"1"}


def test_shared_locks_that_both_want_to_raise_are_a_conflict_of_one(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0"}))
    both = threading.Barrier(2)

    def work(value: bytes) -> str:
        with backend.locked() as transaction:
            version = transaction.read([b"a"], exclusive=False)[b"a"].version
            both.wait(PATIENCE_S)
            try:
                return type(transaction.apply(Commit(reads={b"a": version}, puts={b"a": value}))).__name__
            except ConflictError as error:
                return type(error).__name__

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(work, [b"1", b"2"])) == ["Committed", "DeadlockError"]


def test_a_lock_is_waited_for_with_a_bound(options: MysqlOptions, opened: Open) -> None:
    backend = opened(dataclasses.replace(options, timeout_s=1.0))
    backend.commit(Commit(inserts={b"a": b"0"}))
    with backend.locked() as holder:
        holder.read([b"a"], exclusive=True)
        with pytest.raises(UnavailableError, match="other transactions hold the records for too long"):
            with backend.locked() as other:
                other.read([b"a"], exclusive=True)


def test_only_one_apply(backend: MysqlBackend) -> None:
    with backend.locked() as transaction:
        with pytest.raises(InvalidRequestError, match="writes one key twice"):
            transaction.apply(Commit(puts={b"a": b""}, inserts={b"a": b""}))
        assert isinstance(transaction.apply(Commit(inserts={b"a": b""})), Committed)
        with pytest.raises(InvalidRequestError, match="the transaction is over"):
            transaction.apply(Commit(inserts={b"b": b""}))
    assert backend.get_many([b"b"]) == {}


@pytest.mark.parametrize(("fault", "count"), [(Fault.LOSE_REPLY, 1), (Fault.LOSE_REQUEST, 0)])
def test_a_lost_commit_is_settled(
    server: MariadbServer, options: MysqlOptions, opened: Open, fault: Fault, count: int
) -> None:
    with LossyTcpProxy(server.port) as proxy:
        backend = opened(dataclasses.replace(options, port=proxy.port))
        proxy.interfere_once(lambda request: request.endswith(b";COMMIT"), fault)
        with backend.locked() as transaction:
            assert transaction.read([b"n"], exclusive=True) == {}
            if fault is Fault.LOSE_REPLY:
                assert isinstance(transaction.apply(Commit(reads={b"n": ABSENT}, adds={b"n": 1})), Committed)
            else:  # the locks are gone: only the caller can start over
                with pytest.raises(UnavailableError, match="cannot be reached"):
                    transaction.apply(Commit(reads={b"n": ABSENT}, adds={b"n": 1}))
        assert proxy.faults == [fault]
        assert len(backend.get_many([b"n"])) == count
        proxy.interfere_once(lambda request: b"SELECT" in request, fault)
        with pytest.raises(UnavailableError, match="cannot be reached"), backend.locked() as transaction:
            transaction.read([b"n"], exclusive=True)
