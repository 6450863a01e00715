"""Locks: which ones, in which order, and on nothing but the keys of the group."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.runtime import Environment, SeededRandom, SystemClock
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, RangeCount
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import MysqlOptions, MysqlSession, connect, parse_mysql_url
from holdfast.transactions.mysql.group import MysqlGroup, delete_unused_session_rows
from holdfast.transactions.mysql.server import prepare_database
from holdfast.transactions.validation import steps_of_group
from tests.databases import needs_mariadb
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy
from tests.patience import PATIENCE_S, wait_until
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open, wait_for_no_lock


def locks_of(*commits: Commit) -> list[str]:
    """Return the lock statements of a group: the kind of each with its keys."""
    group = MysqlGroup(commits, steps_of_group(commits), 1 << 40)
    found = []
    for statement in group.iter_lock_statements():
        kind = next(
            name
            for mark, name in (
                ("LOCK IN SHARE MODE", "shared"),
                ("FOR UPDATE", "exclusive"),
                ("ON DUPLICATE", "claim"),
                ("NOT BETWEEN", "claimed"),
            )
            if mark in statement
        )
        keys = [bytes.fromhex(part.split("'")[0]).decode() for part in statement.split("x'")[1:]]
        found.append(f"{kind} {' '.join(key for key in keys if key and key.isupper())}")
    return found


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        (Commit(reads={b"A": 5}), ["shared A"]),
        (Commit(reads={b"A": ABSENT}), ["claim A", "claimed A"]),
        (Commit(inserts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(puts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, puts={b"A": b"x"}), ["exclusive A"]),
        (Commit(reads={b"A": ABSENT}, puts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(deletes=[b"A"]), ["claim A", "claimed A"]),
        (Commit(reads={b"A": ABSENT}, deletes=[b"A"]), ["claim A", "claimed A"]),
        (Commit(adds={b"A": 1}), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, adds={b"A": 1}), ["exclusive A"]),
        (Commit(ranges=[RangeCount(b"A", b"b", b"c", 0)]), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, ranges=[RangeCount(b"A", b"b", b"c", 0)]), ["exclusive A"]),
    ],
)
def test_each_kind_of_step_has_its_lock(commit: Commit, expected: list[str]) -> None:
    assert locks_of(commit) == expected


def test_keys_are_locked_in_one_order_with_few_statements() -> None:
    first = Commit(reads={b"A": 5, b"D": 5}, puts={b"C": b"", b"B": b""})
    second = Commit(reads={b"A": 5, b"E": 5}, inserts={b"F": b""})
    assert locks_of(first, second) == ["shared A", "claim B C", "shared D E", "claim F", "claimed B C F"]


def test_the_strongest_lock_of_a_key_counts() -> None:
    assert locks_of(Commit(reads={b"A": 5}), Commit(reads={b"A": ABSENT})) == ["claim A", "claimed A"]


@pytest.fixture
def sessions(options: MysqlOptions) -> Iterator[tuple[MysqlSession, MysqlSession]]:
    pair = (connect(options, 1), connect(options, 2))
    yield pair
    for session in pair:
        session.close()


@pytest.mark.parametrize("records", [1, 3, 10, 100])
def test_no_statement_scans_a_small_table(
    backend: MysqlBackend, sessions: tuple[MysqlSession, MysqlSession], records: int
) -> None:
    """A scan would wait for locks of records that the group does not touch."""
    backend.commit(Commit(inserts={b"K%04d" % number: b"" for number in range(records)}))
    session = sessions[0]
    session.send("ANALYZE TABLE holdfast_records")
    versions = {key: record.version for key, record in backend.scan(b"K", b"L", records).records}
    for count in {1, 2, records // 2 + 1, records}:
        keys = list(versions)[:count]
        groups = [
            Commit(reads={key: versions[key] for key in keys}),
            Commit(reads={key: versions[key] for key in keys}, puts=dict.fromkeys(keys, b"x")),
            Commit(puts=dict.fromkeys(keys, b"x")),
            Commit(reads={key: versions[key] for key in keys}, deletes=keys),
        ]
        for commit in groups:
            group = MysqlGroup([commit], steps_of_group([commit]), 1 << 40)
            session.send("START TRANSACTION")
            statements = [one for one in group.iter_lock_statements() if "INSERT" not in one]
            result = group.lock_and_validate(session)
            statements += [one for one in group.iter_write_statements(result) if one.startswith("DELETE")]
            for statement in statements:
                # The fourth column is the type; in MySQL, the fifth.
                plans = session.send(f"EXPLAIN FORMAT=TRADITIONAL {statement}")[0].rows
                assert all({"range", "const"} & set(plan[3:5]) for plan in plans), (statement, plans)
            session.reset()


@pytest.mark.parametrize("other", [Commit(reads={b"b": ABSENT}), Commit(deletes=[b"B"]), Commit(puts={b"c": b""})])
def test_groups_with_other_keys_do_not_wait(
    backend: MysqlBackend, sessions: tuple[MysqlSession, MysqlSession], other: Commit
) -> None:
    backend.commit(Commit(inserts={b"A": b"", b"B": b"", b"C": b""}))
    seen = backend.get_many([b"A", b"C"])
    versions = {key: record.version for key, record in seen.items()}
    held = [
        Commit(reads=versions | {b"a": ABSENT}, deletes=[b"A"]),
        Commit(reads={b"AA": 77, b"bb": 77}, deletes=[b"d"]),
    ]
    for session, commits in zip(sessions, (held, [other]), strict=True):
        wait_for_no_lock(session)
        session.send("START TRANSACTION")
        group = MysqlGroup(commits, steps_of_group(commits), 1 << 40)
        assert isinstance(group.lock_and_validate(session).outcomes[0], Committed)


def test_readers_share_a_record_and_writers_do_not(
    backend: MysqlBackend, sessions: tuple[MysqlSession, MysqlSession]
) -> None:
    backend.commit(Commit(inserts={b"A": b""}))
    version = backend.get_many([b"A"])[b"A"].version
    for session in sessions:
        wait_for_no_lock(session)
        session.send("START TRANSACTION")
        commit = Commit(reads={b"A": version})
        MysqlGroup([commit], steps_of_group([commit]), 1 << 40).lock_and_validate(session)
    sessions[1].send("ROLLBACK")
    sessions[1].send("START TRANSACTION")
    commit = Commit(reads={b"A": version}, puts={b"A": b""})
    with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
        MysqlGroup([commit], steps_of_group([commit]), 1 << 40).lock_and_validate(sessions[1])


def test_what_is_claimed_is_hidden_and_leaves_no_trace(
    backend: MysqlBackend, sessions: tuple[MysqlSession, MysqlSession]
) -> None:
    guard = RangeCount(b"G", b"g", b"h", 0)
    commits = [
        Commit(reads={b"A": ABSENT}, ranges=[guard], inserts={b"g1": b"x"}),
        Commit(reads={b"B": 77}, inserts={b"I": b"", b"J": b""}, adds={b"N": 1}),
        Commit(puts={b"Q": b"put"}),
    ]
    session = sessions[0]
    session.send("START TRANSACTION")
    group = MysqlGroup(commits, steps_of_group(commits), 1 << 40)
    result = group.lock_and_validate(session)
    assert result.outcomes == [Committed(1 << 40), Conflict((b"B",)), Committed((1 << 40) + 2)]
    assert backend.scan(b"", b"z", 10, [b"G"]).records == []
    assert backend.get_many([b"A", b"G", b"I", b"N", b"g1"]) == {}
    writes = list(group.iter_write_statements(result))
    assert not any(b"g1".hex() in statement for statement in writes), "an insert is written once"
    session.run([*writes, "COMMIT"])
    assert [key for key, _ in backend.scan(b"", b"z", 10).records] == [b"Q", b"g1"]
    assert session.send("SELECT COUNT(*) FROM holdfast_records")[0].rows == ((2,),)


# --- sessions ---------------------------------------------------------------------------------------------------------
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
                Commit(puts={b"p": b"%d" % number}),
            ]
        )
        assert len(proxy.faults) == number
        assert isinstance(outcomes[0], Committed)
        assert outcomes[1] == Conflict((b"first",))
        assert isinstance(outcomes[2], Committed)
        found = lossy.get_many([b"n", b"p"])
        assert (found[b"n"].number, found[b"p"].value) == (number, b"%d" % number)
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
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
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
    with pytest.raises(OutcomeUnknownError, match="did not tell its outcome: read before repeating"):
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
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
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
    session = connect(options, 1)
    try:
        session.send(
            "CREATE TRIGGER full BEFORE INSERT ON holdfast_sessions FOR EACH ROW"
            " BEGIN IF NEW.version <> 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1114; END IF; END"
        )
        with pytest.raises(UnavailableError, match="the disk of the database is full"):
            lossy.commit(Commit(adds={b"n": 1}))
        session.send("DROP TRIGGER full")
    finally:
        session.close()
    assert lossy.get_many([b"n"]) == {}
    assert isinstance(lossy.commit(Commit(adds={b"n": 1})), Committed)


# --- killed servers ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
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
    session = connect(options, 1)
    try:
        day_s = 24 * 3600
        for number, age_s in ((5, day_s + 60), (6, day_s - 60)):
            session.send(f"INSERT INTO holdfast_sessions VALUES ({number}, 1, UNIX_TIMESTAMP() - {age_s})")
        environment = Environment(chance=SeededRandom(1))
        for _ in range(200):  # some of the calls sweep
            delete_unused_session_rows(session, environment)
        left = {row[0] for row in session.send("SELECT id FROM holdfast_sessions")[0].rows}
    finally:
        session.close()
    assert 5 not in left
    assert 6 in left
    assert len(left) == 2


def test_a_session_that_was_swept_comes_back(backend: MysqlBackend, options: MysqlOptions) -> None:
    backend.commit(Commit(puts={b"a": b""}))
    session = connect(options, 1)
    try:
        session.send("DELETE FROM holdfast_sessions")
        assert isinstance(backend.commit(Commit(puts={b"a": b"2"})), Committed)
        assert session.send("SELECT COUNT(*) FROM holdfast_sessions")[0].rows == ((1,),)
    finally:
        session.close()
