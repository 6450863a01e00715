"""A lost reply to a commit in PostgreSQL is settled: the outcome is found, or the commit can never happen anymore."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.runtime import Environment, Moment, SystemClock
from holdfast.transactions.base import Backend, Commit, Committed, Conflict, Outcome, Record
from holdfast.transactions.postgres import backend as backend_module
from holdfast.transactions.postgres.backend import PostgresBackend
from holdfast.transactions.postgres.connection import PostgresAddress, connect, prepare_database
from holdfast.transactions.postgres.group import PostgresGroup
from holdfast.transactions.registry import open_backend
from holdfast.transactions.validation import VersionSource
from tests.database_servers import NewUrl
from tests.databases import needs_postgres
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy
from tests.patience import PATIENCE_S, wait_until
from tests.servers.postgres_server import PostgresServer

_MARK = b"the reply to this one is lost"


@pytest.fixture
def address(new_postgres_url: Callable[[], str]) -> PostgresAddress:
    found, _ = PostgresAddress.parse(new_postgres_url())
    prepare_database(found, create=True)
    return found


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[LossyTcpProxy]:
    with LossyTcpProxy(postgres_server.port) as running:
        yield running


@pytest.fixture
def lossy(proxy: LossyTcpProxy, address: PostgresAddress) -> Iterator[PostgresBackend]:
    """Open a database whose connections go through the proxy, one at a time."""
    info = re.sub(r":\d+/", f":{proxy.port}/", address.info) + "?sslmode=disable"
    backend = PostgresBackend(dataclasses.replace(address, info=info), Environment(), connections=1)
    assert isinstance(backend.commit(Commit(puts={b"first": b""})), Committed)
    yield backend
    backend.close()


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_a_commit_is_neither_lost_nor_doubled(lossy: PostgresBackend, proxy: LossyTcpProxy, fault: Fault) -> None:
    for number in range(1, 6):
        proxy.interfere_once(lambda request: _MARK in request, fault)
        outcomes = lossy.commit_group(
            [
                Commit(adds={b"n": 1}, inserts={b"row%d" % number: _MARK}),
                Commit(inserts={b"first": b""}),
                Commit(puts={b"p": b"%d" % number}),
            ]
        )
        assert isinstance(outcomes[0], Committed)
        assert outcomes[1] == Conflict((b"first",))
        assert isinstance(outcomes[2], Committed)
    found = lossy.get_many([b"n", b"p"])
    assert (found[b"n"].number, found[b"p"].value) == (5, b"5")
    assert proxy.faults == [fault] * 5


def test_a_commit_that_is_still_under_way_is_waited_for(
    lossy: PostgresBackend, proxy: LossyTcpProxy, address: PostgresAddress
) -> None:
    """The client loses its connection while the server waits for a lock: the outcome comes later, and is found."""
    with connect(address) as blocker, ThreadPoolExecutor(1) as threads:
        blocker.execute("BEGIN")
        blocker.execute("UPDATE records SET number = 7 WHERE key = %s", (b"first",))
        commit = threads.submit(lossy.commit, Commit(puts={b"first": _MARK}))
        wait_until(lambda: _waiting(address) == 1, "the commit waits for the lock")
        proxy.cut()
        blocker.execute("COMMIT")
        assert isinstance(commit.result(PATIENCE_S), Committed)
    record = lossy.get_many([b"first"])[b"first"]
    assert (record.value, record.number) == (_MARK, 0)


def _waiting(address: PostgresAddress) -> int:
    with connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def test_a_commit_that_was_given_up_cannot_happen_later(address: PostgresAddress) -> None:
    backend = PostgresBackend(address, Environment())
    try:
        session = backend._connect()
        base = session.versions.take(1)
        group = PostgresGroup.of([Commit(puts={b"a": b""})])
        assert backend._settle(base, group, Moment.of(SystemClock())) is None
        arguments = group.arguments(VersionSource.session_of(base), base)
        with pytest.raises(psycopg.Error, match="given up"):
            session.connection.execute(backend_module._SQL["commit_group"], arguments)
        session.close()
        assert backend.get_many([b"a"]) == {}
    finally:
        backend.close()


def test_a_machine_that_slept_for_days_in_a_commit_does_not_take_a_deleted_outcome_for_no_commit(
    lossy: PostgresBackend, proxy: LossyTcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep_at_the_commit(request: bytes) -> bool:
        if _MARK in request:
            monkeypatch.setattr(SystemClock, "now_s", lambda _: time.time() + 2 * 24 * 3600)
        return _MARK in request

    proxy.interfere_once(sleep_at_the_commit, Fault.LOSE_REPLY)
    assert isinstance(lossy.commit(Commit(adds={b"n": 1}, puts={b"a": _MARK})), Committed)  # its outcome is there
    monkeypatch.undo()
    proxy.interfere_once(sleep_at_the_commit, Fault.LOSE_REQUEST)
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        lossy.commit(Commit(adds={b"n": 1}, puts={b"a": _MARK}))
    assert proxy.faults == [Fault.LOSE_REPLY, Fault.LOSE_REQUEST]
    assert lossy.get_many([b"n"])[b"n"].number == 1


def test_what_a_server_refuses_later_is_no_answer_about_a_commit(
    lossy: PostgresBackend, proxy: LossyTcpProxy, address: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server comes back read-only, as after a fail-over: the commit is not reported as one that did not happen."""
    monkeypatch.setattr(backend_module, "_SETTLE_S", 0.5)

    def refuse_writes(request: bytes) -> bool:
        if _MARK not in request:
            return False
        with connect(address) as admin:
            admin.execute(f"ALTER DATABASE {admin.info.dbname} SET default_transaction_read_only = on")
        return True

    proxy.interfere_once(refuse_writes, Fault.LOSE_REPLY)
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        lossy.commit(Commit(puts={b"a": _MARK}))
    assert lossy.get_many([b"a"])[b"a"].value == _MARK


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
@pytest.mark.parametrize("comes_back", [False, True])
def test_the_lost_reply_of_a_locked_transaction(
    lossy: PostgresBackend,
    proxy: LossyTcpProxy,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    comes_back: bool,
) -> None:
    monkeypatch.setattr(backend_module, "_SETTLE_S", PATIENCE_S if comes_back else 0.3)

    applied: list[bytes] = []

    def choose(request: bytes) -> bool:
        """Choose the request after the one that applies: the commit."""
        if not applied:
            applied.extend([request] if _MARK in request else [])
            return False
        proxy.refuses = not comes_back
        return True

    def transact() -> Outcome:
        with lossy.begin_locking_transaction() as transaction:
            transaction.read([b"first"], exclusive=True)
            proxy.interfere_once(choose, fault)
            return transaction.apply(Commit(adds={b"n": 1}, puts={_MARK: b""}))

    with lossy.begin_locking_transaction() as transaction:  # prepares the statements
        transaction.apply(Commit(adds={b"m": 1}))
    if not comes_back:
        with pytest.raises(OutcomeUnknownError, match="read before repeating"):
            transact()
    elif fault is Fault.LOSE_REPLY:
        assert isinstance(transact(), Committed)
    else:
        with pytest.raises(UnavailableError, match="before the commit: repeat it"):
            transact()
    proxy.refuses = False
    assert (b"n" in lossy.get_many([b"n"])) is (fault is Fault.LOSE_REPLY)


def test_an_error_of_the_caller_leaves_a_block_unchanged(address: PostgresAddress) -> None:
    """What a caller does elsewhere, while it holds a snapshot or locks, is not this transaction's."""
    backend = PostgresBackend(address, Environment())
    try:
        for block in (backend.snapshot, backend.begin_locking_transaction):
            with pytest.raises(OutcomeUnknownError, match="elsewhere"), block():
                raise OutcomeUnknownError("elsewhere")
        assert isinstance(backend.commit(Commit(puts={b"a": b""})), Committed)
    finally:
        backend.close()


def test_a_closed_backend_does_not_wait_for_an_outcome(lossy: PostgresBackend, proxy: LossyTcpProxy) -> None:
    def close(request: bytes) -> bool:
        if _MARK in request:
            lossy.close()
        return _MARK in request

    proxy.interfere_once(close, Fault.LOSE_REPLY)
    with pytest.raises(OutcomeUnknownError):
        lossy.commit(Commit(puts={b"a": _MARK}))


def test_an_outcome_that_nobody_tells_is_unknown(
    lossy: PostgresBackend, proxy: LossyTcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "_SETTLE_S", 0.3)
    proxy.interfere_once(lambda request: _MARK in request, Fault.LOSE_REPLY)
    proxy.refuses = True
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        lossy.commit(Commit(puts={b"a": _MARK}))
    proxy.refuses = False
    assert lossy.get_many([b"a"])[b"a"].value == _MARK


def test_old_sessions_are_removed(address: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(address) as connection:
        connection.execute("INSERT INTO sessions VALUES (1, 1, NULL, now() - interval '2 days'), (2, 1, NULL, now())")
    monkeypatch.setattr(backend_module, "_SWEEP_SHARE", 1.0)
    backend = PostgresBackend(address, Environment())
    backend.commit(Commit(puts={b"a": b""}))
    backend.close()
    with connect(address) as connection:
        found = [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY used_at").fetchall()]
        assert len(found) == 2, "the session of the commit, and the young one"
        assert 1 not in found


def test_a_fork_has_connections_of_its_own(address: PostgresAddress) -> None:
    backend = PostgresBackend(address, Environment())
    backend.commit(Commit(adds={b"n": 1}))
    child = os.fork()
    if not child:
        try:
            backend.commit(Commit(adds={b"n": 1}))
            backend.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    backend.commit(Commit(adds={b"n": 1}))
    assert backend.get_many([b"n"])[b"n"].number == 3
    backend.close()


# --- commit and read --------------------------------------------------------------------------------------------------
pytestmark = needs_postgres


@pytest.fixture
def backend(new_postgres_url: NewUrl) -> Iterator[Backend]:
    found = open_backend(new_postgres_url(), create=True, group_commits=False)
    try:
        yield found
    finally:
        found.close()


def test_the_commit_is_seen(backend: Backend) -> None:
    backend.commit(Commit(puts={b"a": b"1", b"b": b"1", b"c": b"1"}))
    change = Commit(puts={b"a": b"2"}, deletes=[b"b"], adds={b"n": 5})
    outcome, records = backend.commit_and_read(change, [b"a", b"b", b"c", b"n", b"none"])
    assert isinstance(outcome, Committed)
    assert records == backend.get_many([b"a", b"b", b"c", b"n", b"none"])
    assert records[b"a"] == Record(outcome.version, b"2")
    assert records[b"n"] == Record(outcome.version, b"", 5)
    assert records.keys() == {b"a", b"c", b"n"}


def test_after_a_conflict_nothing_has_changed(backend: Backend) -> None:
    backend.commit(Commit(puts={b"a": b"1"}))
    before = backend.get_many([b"a"])
    outcome, records = backend.commit_and_read(Commit(reads={b"a": 7, b"x": 7}, puts={b"y": b""}), [b"a", b"x", b"y"])
    assert isinstance(outcome, Conflict)
    assert records == before == backend.get_many([b"a", b"x", b"y"])


def test_nothing_is_there(backend: Backend) -> None:
    outcome, records = backend.commit_and_read(Commit(puts={b"a": b"1"}), [b"x"])
    assert isinstance(outcome, Committed)
    assert records == {}
    assert backend.commit_and_read(Commit(), [b"a"])[1] is None, "a commit of nothing does not go to the server"


def test_a_lost_reply_loses_the_reads_only(new_postgres_url: NewUrl) -> None:
    url = new_postgres_url()
    open_backend(url, create=True).close()
    port = int(url.rpartition(":")[2].partition("/")[0])
    with LossyTcpProxy(port) as proxy:
        backend = open_backend(url.replace(f":{port}/", f":{proxy.port}/"), group_commits=False)
        backend.commit_and_read(Commit(puts={b"a": b"1"}), [b"a"])  # prepares the statement
        proxy.interfere_once(lambda request: b"payload" in request, Fault.LOSE_REPLY)
        outcome, records = backend.commit_and_read(Commit(puts={b"a": b"payload"}), [b"a"])
        assert proxy.faults == [Fault.LOSE_REPLY]
        assert isinstance(outcome, Committed)
        assert records is None
        assert backend.get_many([b"a"])[b"a"] == Record(outcome.version, b"payload")
        backend.close()


# --- durability -------------------------------------------------------------------------------------------------------
def test_the_log_is_flushed(postgres_server: PostgresServer, new_postgres_url: Callable[[], str]) -> None:
    url = new_postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')  # type: ignore[call-overload] # the name is none of a literal query
    with psycopg.connect(url, autocommit=True) as connection:
        database = open_backend(url, create=True)
        try:
            for number in range(20):  # the server flushes by itself, but not as soon as that
                database.commit(Commit(puts={b"a": b"%d" % number}))
                (written,) = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ()
                database.make_durable()
                row = connection.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", (written,)).fetchone()
                assert row == (True,)
            database.make_durable()
        finally:
            database.close()
