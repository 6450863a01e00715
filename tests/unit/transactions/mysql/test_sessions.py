"""Lost replies and killed servers: a commit happened once or not at all, and the caller learns which."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.runtime import Environment, SeededRandom, SystemClock
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, Progress
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import connect
from holdfast.transactions.mysql.options import MysqlOptions, parse_mysql_url
from holdfast.transactions.mysql.schema import prepare_database
from holdfast.transactions.mysql.sessions import pauses, sweep_sessions
from tests.databases import needs_mariadb
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy
from tests.patience import PATIENCE_S, wait_until
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open


def is_commit(request: bytes) -> bool:
    return request.endswith(b";COMMIT")


def is_lock(request: bytes) -> bool:
    return b"START TRANSACTION;" in request and not is_commit(request)


@pytest.fixture
def proxy(server: MariadbServer) -> Iterator[LossyTcpProxy]:
    with LossyTcpProxy(server.port) as running:
        yield running


@pytest.fixture
def lossy(proxy: LossyTcpProxy, options: MysqlOptions, opened: Open) -> MysqlBackend:
    """Open a database whose connections go through the proxy."""
    backend = opened(dataclasses.replace(options, port=proxy.port))
    assert isinstance(backend.commit(Commit(puts={b"first": b""})), Committed)
    return backend


# --- lost replies -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_a_commit_is_neither_lost_nor_doubled(lossy: MysqlBackend, proxy: LossyTcpProxy, fault: Fault) -> None:
    for number in range(1, 6):
        proxy.interfere_once(is_commit, fault)
        outcomes = lossy.commit_group(
            [
                Commit(adds={b"n": 1}, inserts={b"row%d" % number: b""}),
                Commit(inserts={b"first": b""}),
                Commit(puts={b"p": b"%d" % number}, progress=Progress(b"series", number)),
            ]
        )
        assert len(proxy.faults) == number
        assert isinstance(outcomes[0], Committed)
        assert outcomes[1] == Conflict((b"first",))
        assert isinstance(outcomes[2], Committed)
        found = lossy.get_many([b"n", b"p", b"series"])
        assert (found[b"n"].number, found[b"p"].value, found[b"series"].number) == (number, b"%d" % number, number)
        assert (found[b"n"].version, found[b"p"].version) == (outcomes[0].version, outcomes[2].version)


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_what_was_lost_before_the_commit_is_repeated(lossy: MysqlBackend, proxy: LossyTcpProxy, fault: Fault) -> None:
    proxy.interfere_once(is_lock, fault)
    assert isinstance(lossy.commit(Commit(adds={b"n": 1})), Committed)
    proxy.interfere_once(lambda request: b"SELECT" in request, fault)
    assert lossy.get_many([b"n"])[b"n"].number == 1
    assert len(proxy.faults) == 2


def test_a_large_commit_that_breaks_between_its_packets_is_repeated(lossy: MysqlBackend, proxy: LossyTcpProxy) -> None:
    proxy.interfere_once(lambda request: b"REPLACE INTO holdfast_records" in request, Fault.LOSE_REQUEST)
    wanted = {b"%02d" % number: bytes(1_000_000) for number in range(12)}
    assert isinstance(lossy.commit(Commit(puts=wanted)), Committed)
    assert proxy.faults == [Fault.LOSE_REQUEST]
    assert lossy.get_many(wanted).keys() == wanted.keys()


def test_a_conflict_whose_reply_is_lost_is_judged_again(lossy: MysqlBackend, proxy: LossyTcpProxy) -> None:
    proxy.interfere_once(lambda request: request.endswith(b"ROLLBACK"), Fault.LOSE_REPLY)
    assert lossy.commit(Commit(inserts={b"first": b""})) == Conflict((b"first",))
    assert len(proxy.faults) == 1


def test_a_transaction_that_the_server_keeps_open_is_ended(
    proxy: LossyTcpProxy, options: MysqlOptions, opened: Open
) -> None:
    """The commit never arrives, and the server does not learn that the client is gone: its locks stay."""
    backend = opened(dataclasses.replace(options, port=proxy.port, timeout_s=1.0))
    backend.commit(Commit(puts={b"a": b"i0"}))
    proxy.interfere_once(is_commit, Fault.SILENCE)
    with pytest.raises(UnavailableError, match="cannot be reached"):  # it is certain that nothing happened
        backend.commit(Commit(puts={b"a": b"i1"}))
    assert proxy.faults == [Fault.SILENCE]
    hasty = opened(dataclasses.replace(options, timeout_s=0.05))
    assert isinstance(hasty.commit(Commit(adds={b"a": 1})), Committed)
    found = hasty.get_many([b"a"])[b"a"]
    assert (found.value, found.number) == (b"i0", 1)


def test_a_machine_that_slept_for_days_in_a_commit_does_not_take_a_deleted_session_for_no_commit(
    lossy: MysqlBackend, proxy: LossyTcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep_at_the_commit(request: bytes) -> bool:
        if is_commit(request):
            monkeypatch.setattr(SystemClock, "now_s", lambda _: time.time() + 2 * 24 * 3600)
        return is_commit(request)

    proxy.interfere_once(sleep_at_the_commit, Fault.LOSE_REPLY)
    assert isinstance(lossy.commit(Commit(adds={b"n": 1})), Committed)  # its session is there
    monkeypatch.undo()
    proxy.interfere_once(sleep_at_the_commit, Fault.LOSE_REQUEST)
    with pytest.raises(OutcomeUnknownError, match="read the records before repeating"):
        lossy.commit(Commit(adds={b"n": 1}))
    assert proxy.faults == [Fault.LOSE_REPLY, Fault.LOSE_REQUEST]
    assert lossy.get_many([b"n"])[b"n"].number == 1


def test_an_outcome_that_nobody_tells_is_unknown(proxy: LossyTcpProxy, options: MysqlOptions, opened: Open) -> None:
    backend = opened(dataclasses.replace(options, port=proxy.port, timeout_s=0.2))
    backend.commit(Commit(puts={b"a": b"i0"}))

    def and_then_refuse(request: bytes) -> bool:
        proxy.refuses = proxy.refuses or is_commit(request)
        return is_commit(request)

    proxy.interfere_once(and_then_refuse, Fault.LOSE_REPLY)
    with pytest.raises(OutcomeUnknownError, match="did not tell its outcome: read the records before repeating"):
        backend.commit(Commit(adds={b"a": 1}))
    with pytest.raises(UnavailableError):
        backend.commit(Commit(adds={b"a": 1}))
    proxy.refuses = False
    assert backend.get_many([b"a"])[b"a"].number == 1


@pytest.mark.parametrize("changes", [{"password": "wrong"}, {"ssl": "verify", "ssl_ca": "/no/such/file"}])
def test_what_a_server_refuses_later_is_no_answer_about_a_commit(
    proxy: LossyTcpProxy, options: MysqlOptions, opened: Open, changes: dict[str, Any]
) -> None:
    """The server comes back, but lets nobody in: the commit is not reported as one that did not happen."""
    backend = opened(dataclasses.replace(options, port=proxy.port, timeout_s=0.5))
    backend.commit(Commit(puts={b"a": b"i0"}))
    backend._options = dataclasses.replace(backend._options, **changes)
    proxy.interfere_once(is_commit, Fault.LOSE_REPLY)
    with pytest.raises(OutcomeUnknownError, match="read the records before repeating"):
        backend.commit(Commit(adds={b"a": 1}))
    assert opened(options).get_many([b"a"])[b"a"].number == 1


def test_a_closed_backend_does_not_wait_for_an_outcome(lossy: MysqlBackend, proxy: LossyTcpProxy) -> None:
    def close(request: bytes) -> bool:
        if is_commit(request):
            lossy.close()
        return is_commit(request)

    proxy.interfere_once(close, Fault.LOSE_REPLY)
    with pytest.raises(OutcomeUnknownError):
        lossy.commit(Commit(adds={b"a": 1}))


def test_a_statement_that_fails_in_the_last_packet_is_settled_too(lossy: MysqlBackend, options: MysqlOptions) -> None:
    link = connect(options, 1)
    try:
        link.send(
            "CREATE TRIGGER full BEFORE INSERT ON holdfast_sessions FOR EACH ROW"
            " BEGIN IF NEW.version <> 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1114; END IF; END"
        )
        with pytest.raises(UnavailableError, match="the disk of the database is full"):
            lossy.commit(Commit(adds={b"n": 1}))
        link.send("DROP TRIGGER full")
    finally:
        link.close()
    assert lossy.get_many([b"n"]) == {}
    assert isinstance(lossy.commit(Commit(adds={b"n": 1})), Committed)


# --- killed servers ---------------------------------------------------------------------------------------------------
@needs_mariadb
def test_commits_survive_a_server_that_is_killed_again_and_again(opened: Open) -> None:
    """Each thread counts its own series; at the end, the server has exactly what the threads were told."""
    with MariadbServer(password="it's a p@ss/:%?#") as server:
        options = parse_mysql_url(server.create_database("t") + f"?timeout={PATIENCE_S}")
        prepare_database(options, create=True)
        backend = opened(options)
        stop = threading.Event()
        counts = [0] * 6

        def work(index: int) -> None:
            version = ABSENT
            while not stop.is_set():
                outcome = backend.commit(
                    Commit(
                        reads={b"own%d" % index: version},
                        puts={b"own%d" % index: b"%d" % (counts[index] + 1)},
                        adds={b"sum": 1},
                        inserts={b"row%d-%06d" % (index, counts[index]): b""},
                    )
                )
                assert isinstance(outcome, Committed), "a commit of a single writer took effect twice"
                version = outcome.version
                counts[index] += 1

        def wait_for_commits() -> None:
            goal = sum(counts) + 60
            wait_until(lambda: sum(counts) >= goal or any(one.done() for one in workers), "no commits")

        with ThreadPoolExecutor(len(counts)) as pool:
            workers = [pool.submit(work, index) for index in range(len(counts))]
            try:
                for _ in range(4):
                    wait_for_commits()
                    server.kill()
                    server.start()
                wait_for_commits()
            finally:
                stop.set()
            for worker in workers:
                worker.result()
        found = backend.get_many([b"sum", *(b"own%d" % index for index in range(len(counts)))])
        assert [int(found[b"own%d" % index].value) for index in range(len(counts))] == counts
        assert found[b"sum"].number == sum(counts)
        assert len(backend.scan(b"row", b"rox", sum(counts) + 1).records) == sum(counts)


# --- the rows of sessions ---------------------------------------------------------------------------------------------
def test_old_sessions_are_deleted(backend: MysqlBackend, options: MysqlOptions) -> None:
    backend.commit(Commit(puts={b"a": b""}))
    link = connect(options, 1)
    try:
        day_s = 24 * 3600
        for session, age_s in ((5, day_s + 60), (6, day_s - 60)):
            link.send(f"INSERT INTO holdfast_sessions VALUES ({session}, 1, UNIX_TIMESTAMP() - {age_s})")
        environment = Environment(chance=SeededRandom(1))
        for _ in range(200):  # some of the calls sweep
            sweep_sessions(link, environment)
        left = {row[0] for row in link.send("SELECT id FROM holdfast_sessions")[0].rows}
    finally:
        link.close()
    assert 5 not in left
    assert 6 in left
    assert len(left) == 2


def test_a_session_that_was_swept_comes_back(backend: MysqlBackend, options: MysqlOptions) -> None:
    backend.commit(Commit(puts={b"a": b""}))
    link = connect(options, 1)
    try:
        link.send("DELETE FROM holdfast_sessions")
        assert isinstance(backend.commit(Commit(puts={b"a": b"2"})), Committed)
        assert link.send("SELECT COUNT(*) FROM holdfast_sessions")[0].rows == ((1,),)
    finally:
        link.close()


def test_pauses_grow_and_end() -> None:
    class Clock:
        def __init__(self) -> None:
            self.slept: list[float] = []

        def now_s(self) -> float:
            return 0.0

        def elapsed_s(self) -> float:
            return sum(self.slept)

        def sleep(self, duration_s: float) -> None:
            self.slept.append(duration_s)

    clock = Clock()
    tries = list(pauses(Environment(clock=clock, chance=SeededRandom(1)), 5.0))
    assert len(tries) == len(clock.slept) + 1
    assert 5.0 <= sum(clock.slept) < 5.75
    assert clock.slept[0] < 0.003
    assert max(clock.slept) < 0.75
    assert len(set(clock.slept)) == len(clock.slept)
    assert len(list(pauses(Environment(clock=clock), 0.0))) == 1
