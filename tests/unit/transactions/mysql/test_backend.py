"""The database on a real server: the same outcomes as the memory database, also with many threads."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pymysql
import pytest

from holdfast.errors import ConflictError, HoldfastError, InvalidRequestError, UnavailableError
from holdfast.transactions.base import (
    ABSENT,
    MAX_VALUE_BYTES,
    Bound,
    Commit,
    Committed,
    Conflict,
    Outcome,
    RangeCount,
    Record,
)
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import MysqlOptions, connect
from holdfast.transactions.validation import count_independent
from tests.databases import needs_mariadb
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy
from tests.patience import PATIENCE_S, wait_until
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open, wait_for_no_lock

KEYS = [b"k%d" % number for number in range(8)]


# --- the same as in memory --------------------------------------------------------------------------------------------
def random_commit(chance: random.Random, seen: dict[bytes, Record], number: int) -> Commit:
    """Make a commit of any kind, most of whose expectations hold."""
    keys = chance.sample(KEYS, chance.randint(1, 4))
    others = [key for key in KEYS if key not in keys]
    reads: dict[bytes, int] = {}
    puts: dict[bytes, bytes] = {}
    inserts: dict[bytes, bytes] = {}
    adds: dict[bytes, int] = {}
    deletes: list[bytes] = []
    for key in keys:
        kind = chance.choice(["read", "put", "insert", "delete", "add"])
        if kind == "insert":
            inserts[key] = b"i%d" % number
            continue
        if kind == "read" or chance.random() < 0.5:
            reads[key] = seen[key].version if key in seen else ABSENT
            if chance.random() < 0.1:
                reads[key] ^= 1
        if kind == "put":
            puts[key] = b"p%d" % number
        elif kind == "delete":
            deletes.append(key)
        elif kind == "add":
            adds[key] = chance.randint(-2, 5)
    ranges = []
    if others and chance.random() < 0.3:
        start, end = sorted(chance.sample([*KEYS, b"k9"], 2))
        count = sum(start <= key < end for key in seen) + (chance.random() < 0.2)
        ranges.append(RangeCount(others.pop(), start, end, count))
    bounds = [Bound(key, chance.randint(0, 30)) for key in adds if chance.random() < 0.4]
    return Commit(
        reads=reads,
        puts=puts,
        inserts=inserts,
        adds=adds,
        deletes=deletes,
        ranges=ranges,
        bounds=bounds,
    )


def without_versions(outcomes: list[Outcome]) -> list[object]:
    return [Committed if isinstance(one, Committed) else one for one in outcomes]


def contents(seen: dict[bytes, Record]) -> dict[bytes, tuple[bytes, int]]:
    return {key: (record.value, record.number) for key, record in seen.items()}


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_and_records_are_those_of_the_memory_backend(backend: MysqlBackend, seed: int) -> None:
    memory = MemoryBackend()
    chance = random.Random(seed)
    kinds: Counter[type] = Counter()
    for number in range(100):
        here, there = backend.get_many(KEYS), memory.get_many(KEYS)
        assert contents(here) == contents(there)
        size, made = chance.randint(1, 4), chance.random()
        group = [random_commit(one, here, number) for one in [random.Random(made)] for _ in range(size)]
        same = [random_commit(one, there, number) for one in [random.Random(made)] for _ in range(size)]
        count = count_independent(group)
        outcomes = backend.commit_group(group[:count])
        assert without_versions(outcomes) == without_versions(memory.commit_group(same[:count]))
        kinds.update(map(type, outcomes))
    assert kinds.keys() == {Committed, Conflict}


def test_a_placeholder_is_never_committed(backend: MysqlBackend, options: MysqlOptions) -> None:
    chance = random.Random(7)
    for number in range(100):
        backend.commit(random_commit(chance, backend.get_many(KEYS), number))
    session = connect(options, 1)
    try:
        assert session.send("SELECT COUNT(*) FROM holdfast_records WHERE version = 0")[0].rows == ((0,),)
    finally:
        session.close()


def test_nothing_is_a_commit_too(backend: MysqlBackend) -> None:
    assert backend.commit_group([]) == []
    assert isinstance(backend.commit(Commit()), Committed)
    assert backend.get_many([]) == {}


def test_wrong_commits_are_refused_before_anything_is_written(backend: MysqlBackend) -> None:
    with pytest.raises(InvalidRequestError, match="writes one key twice"):
        backend.commit(Commit(puts={b"a": b"", b"b": b""}, inserts={b"a": b""}))
    with pytest.raises(InvalidRequestError, match="a number is limited to"):
        backend.commit(Commit(puts={b"b": b""}, adds={b"a": 1 << 63}))
    assert backend.get_many([b"a", b"b"]) == {}


@pytest.mark.slow
def test_large_values_and_many_records(backend: MysqlBackend) -> None:
    value = random.Random(1).randbytes(MAX_VALUE_BYTES)
    assert isinstance(backend.commit(Commit(inserts={b"large": value})), Committed)
    assert backend.get_many([b"large"])[b"large"].value == value
    many = {b"m%06d" % number: bytes(120) for number in range(20_000)}
    committed = backend.commit(Commit(inserts=many))
    assert isinstance(committed, Committed)
    found = backend.get_many(many)
    assert {record.version for record in found.values()} == {committed.version}
    assert len(found) == len(many)
    again = backend.commit_group([Commit(inserts=dict.fromkeys(many, b"")), Commit(puts={b"other": b""})])
    assert isinstance(again[0], Conflict)
    assert isinstance(again[1], Committed)
    page = backend.scan(b"m", b"n", 3, [b"large", b"absent"])
    assert [key for key, _ in page.records] == sorted(many)[:3]
    assert (page.more, page.guards.keys()) == (True, {b"large"})
    backend.commit(Commit(deletes=list(many)))
    assert backend.scan(b"m", b"n", 3).records == []


# --- many threads -----------------------------------------------------------------------------------------------------
def retried(backend: MysqlBackend, make: Callable[[], Commit]) -> None:
    """Commit what `make` makes until it is no longer in conflict."""
    while not isinstance(backend.commit(make()), Committed):
        pass


def test_no_update_is_lost_and_adds_need_no_repetition(backend: MysqlBackend) -> None:
    def increment(_: int) -> None:
        def make() -> Commit:
            seen = backend.get_many([b"c"])
            count = int(seen[b"c"].value) if seen else 0
            reads = {b"c": seen[b"c"].version if seen else ABSENT}
            return Commit(reads=reads, puts={b"c": b"%d" % (count + 1)})

        retried(backend, make)
        assert isinstance(backend.commit(Commit(adds={b"n": 1})), Committed)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(160)))
    found = backend.get_many([b"c", b"n"])
    assert (found[b"c"].value, found[b"n"].number) == (b"160", 160)


def test_two_that_read_what_the_other_writes_do_not_both_commit(backend: MysqlBackend) -> None:
    """Write skew, for records that exist and for records that do not."""
    for number in range(40):
        keys = [b"%d-a" % number, b"%d-b" % number]
        if number % 2:
            backend.commit(Commit(puts=dict.fromkeys(keys, b"on")))
        seen = backend.get_many(keys)
        reads = {key: seen[key].version if key in seen else ABSENT for key in keys}
        commits = [Commit(reads=reads, puts={key: b"off"}) for key in keys]
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(backend.commit, commits))
        assert sorted(type(one).__name__ for one in outcomes) == ["Committed", "Conflict"]


def test_nobody_inserts_into_a_range_that_was_counted(backend: MysqlBackend) -> None:
    """Removing an empty directory, against creating a file in it."""
    for number in range(40):
        parent = b"d%d" % number
        if number % 2:
            backend.commit(Commit(inserts={parent: b""}))
        seen = backend.get_many([parent])
        reads = {parent: seen[parent].version if seen else ABSENT}
        remove = Commit(
            reads=reads, ranges=[RangeCount(parent, parent + b"/", parent + b"0", 0)], puts={parent + b"-": b""}
        )
        create = Commit(reads=reads, inserts={parent + b"/x": b""}, ranges=[])
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(backend.commit, [remove, create]))
        left = backend.get_many([parent + b"/x", parent + b"-"])
        assert len(left) == sum(isinstance(one, Committed) for one in outcomes)
        if isinstance(outcomes[0], Conflict):
            assert left.keys() == {parent + b"/x"}


@pytest.mark.parametrize("overlap", ["absent", "present"])
def test_transfers_in_all_directions_keep_the_sum(options: MysqlOptions, opened: Open, overlap: str) -> None:
    """Groups of many keys from many databases: deadlocks are resolved inside, and nothing is lost or doubled."""
    backends = [opened(options) for _ in range(4)]
    keys = [b"account%d" % number for number in range(10)]
    if overlap == "present":
        backends[0].commit(Commit(puts=dict.fromkeys(keys, b"")))

    def transfer(number: int) -> int:
        chance = random.Random(number)
        backend = backends[number % len(backends)]
        commits = []
        for _ in range(4):
            one, other = chance.sample(keys, 2)
            extra = chance.sample([b"extra%d" % index for index in range(6)], 3)
            commits.append(
                Commit(
                    adds={one: 1, other: -1},
                    inserts={extra[0]: b""} if chance.random() < 0.3 else {},
                    deletes=[extra[1]] if chance.random() < 0.5 else [],
                    reads={extra[2]: ABSENT} if chance.random() < 0.5 else {},
                )
            )
        outcomes = backend.commit_group(commits[: count_independent(commits)])
        return sum(isinstance(one, Committed) for one in outcomes)

    with ThreadPoolExecutor(12) as pool:
        committed = sum(pool.map(transfer, range(240)))
    assert committed > 0
    found = backends[0].get_many(keys)
    assert sum(record.number for record in found.values()) == 0


def wait_for_a_waiter(options: MysqlOptions) -> None:
    """Wait until one transaction of the server waits for a lock.

    The server's table of transactions would not do: it stays the same as long as somebody reads it ten times a second.
    """
    query = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"
    session = connect(options, 2)
    try:
        wait_until(lambda: int(session.send(query)[0].rows[0][1]) == 1, "the commit does not wait")
    finally:
        session.close()


def test_deadlocks_are_repeated_inside(backend: MysqlBackend, options: MysqlOptions) -> None:
    """A stranger locks in the opposite order; the database's transaction is the one that is ended, and repeats."""
    keys = [b"a", b"b"]
    backend.commit(Commit(puts=dict.fromkeys(keys, b"")))
    session = connect(options, 1)
    counted = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    before = session.send(counted)[0].rows[0][0]
    try:
        for number in range(5):
            session.send("START TRANSACTION")
            # The server ends the transaction that has changed fewer rows.
            session.send(
                "INSERT INTO holdfast_records VALUES " + ",".join(f"('s{number}-{one}',1,'',0)" for one in range(9))
            )
            session.send("UPDATE holdfast_records SET value = 'x' WHERE `key` = 'b'")
            with ThreadPoolExecutor(1) as pool:
                committing = pool.submit(backend.commit, Commit(puts=dict.fromkeys(keys, b"%d" % number)))
                wait_for_a_waiter(options)
                session.send("UPDATE holdfast_records SET value = 'x' WHERE `key` = 'a'")
                session.send("COMMIT")
                assert isinstance(committing.result(), Committed)
            assert backend.get_many([b"b"])[b"b"].value == b"%d" % number
        assert session.send(counted)[0].rows[0][0] == before + 5
    finally:
        session.close()


def test_an_absent_record_is_locked_to_be_deleted(backend: MysqlBackend, options: MysqlOptions) -> None:
    """Nobody creates it between the delete and the end of the transaction, and then sees nothing of the rest."""
    backend.commit(Commit(puts={b"m": b""}))
    stranger, creator = connect(options, 1), connect(options, 2)
    try:
        stranger.run(["START TRANSACTION", "SELECT * FROM holdfast_records WHERE `key` = 'm' FOR UPDATE"])
        with ThreadPoolExecutor(1) as pool:
            deleting = pool.submit(backend.commit, Commit(deletes=[b"a"], puts={b"m": b"1", b"z": b"1"}))
            wait_for_a_waiter(options)
            wait_for_no_lock(creator)
            with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
                creator.send("INSERT INTO holdfast_records VALUES ('a', 1, '', 0)")
            stranger.send("COMMIT")
            assert isinstance(deleting.result(), Committed)
    finally:
        stranger.close()
        creator.close()
    assert backend.get_many([b"a", b"m", b"z"]).keys() == {b"m", b"z"}


@needs_mariadb
def test_settings_of_the_server_change_nothing(server: MariadbServer, options: MysqlOptions, opened: Open) -> None:
    """An administrator limits rows and idle transactions, chains these, or switches checks off, for everybody."""
    keys = [b"%03d" % number for number in range(40)]
    settings = {
        "sql_select_limit": "10",
        "completion_type": "1",
        "sql_safe_updates": "1",
        "max_join_size": "10",
        "sql_big_selects": "0",
        "unique_checks": "0",
        "foreign_key_checks": "0",
        "idle_transaction_timeout": "1",
        "idle_readonly_transaction_timeout": "1",
        "idle_write_transaction_timeout": "1",
    }
    with server.connect() as admin, admin.cursor() as cursor:
        before = {}
        for name, value in settings.items():
            cursor.execute(f"SELECT @@GLOBAL.{name}")
            before[name] = cursor.fetchone()[0]
            cursor.execute(f"SET GLOBAL {name} = {value}")
        try:
            backend = opened(options)
            assert isinstance(backend.commit(Commit(adds=dict.fromkeys(keys, 1000))), Committed)
            assert isinstance(backend.commit(Commit(adds=dict.fromkeys(keys, 1))), Committed)
            assert {record.number for record in backend.get_many(keys).values()} == {1001}
            assert backend.commit(Commit(reads=dict.fromkeys(keys, ABSENT))) == Conflict(tuple(keys))
            for _ in range(2):
                with backend.snapshot() as snapshot:
                    assert len(snapshot.get_many(keys)) == len(keys)
                page = backend.scan(b"0", b"1", 30, [b"039"])
                assert (len(page.records), page.more, len(page.guards)) == (30, True, 1)
                with backend.begin_locking_transaction() as transaction:
                    assert len(transaction.read(keys, exclusive=True)) == len(keys)
            with backend.snapshot() as snapshot, backend.begin_locking_transaction() as transaction:
                transaction.read(keys, exclusive=True)
                cursor.execute("SELECT SLEEP(1.5)")
                assert len(snapshot.get_many(keys)) == len(keys)
                assert isinstance(transaction.apply(Commit(puts={keys[0]: b""})), Committed)
        finally:
            for name, value in before.items():
                cursor.execute(f"SET GLOBAL {name} = %s", (value,))


def test_a_lock_that_is_never_released_is_waited_for_with_a_bound(options: MysqlOptions, opened: Open) -> None:
    backend = opened(dataclasses.replace(options, timeout_s=1.0))
    backend.commit(Commit(puts={b"a": b"1"}))
    session = connect(options, 1)
    try:
        session.run(["START TRANSACTION", "SELECT * FROM holdfast_records WHERE `key` = 'a' FOR UPDATE"])
        with pytest.raises(UnavailableError, match="other transactions hold the records for too long: repeat later"):
            backend.commit(Commit(puts={b"a": b"2"}))
    finally:
        session.close()
    assert backend.get_many([b"a"])[b"a"].value == b"1"


def test_pages_and_reads_are_snapshots(backend: MysqlBackend, options: MysqlOptions, opened: Open) -> None:
    """Two records, read in different statements, always have the same value."""
    keys = [b"g", *(b"s%04d" % number for number in range(700))]
    backend.commit(Commit(puts=dict.fromkeys(keys, b"0")))
    writer = opened(options)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            writer.commit(Commit(puts={b"g": b"%d" % number, keys[-1]: b"%d" % number}))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(40):
                page = backend.scan(b"s", b"t", 700, [b"g"])
                assert page.records[-1][1].value == page.guards[b"g"].value
                found = backend.get_many(keys)
                assert found[b"g"].value == found[keys[-1]].value
        finally:
            stop.set()
        writing.result()
    assert page.guards[b"g"].value != b"0"


# --- locked -----------------------------------------------------------------------------------------------------------
def test_read_scan_and_apply(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"1", b"b": b"2", b"c": b"3"}, adds={b"n": 4}))
    with backend.begin_locking_transaction() as transaction:
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
    with backend.begin_locking_transaction() as transaction:
        for number in range(3):
            backend.commit(Commit(inserts={b"a%d" % number: b""}))
            assert len(transaction.scan(b"a", b"b", 10).records) == number + 1


def test_a_commit_may_still_be_in_conflict(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b""}))
    with backend.begin_locking_transaction() as transaction:
        outcome = transaction.apply(Commit(inserts={b"a": b"", b"b": b""}))
    assert outcome == Conflict((b"a",))
    assert backend.get_many([b"b"]) == {}


def test_what_is_not_applied_is_released_without_effect(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"1"}))
    with suppress(KeyError), backend.begin_locking_transaction() as transaction:
        transaction.read([b"a"], exclusive=True)
        raise KeyError
    assert isinstance(backend.commit(Commit(puts={b"a": b"2"})), Committed)


def test_writers_take_turns(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0"}))

    def increment(_: int) -> None:
        with backend.begin_locking_transaction() as transaction:
            count = int(transaction.read([b"a"], exclusive=True)[b"a"].value)
            assert isinstance(transaction.apply(Commit(puts={b"a": b"%d" % (count + 1)})), Committed)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(increment, range(60)))
    assert backend.get_many([b"a"])[b"a"].value == b"60"


def test_readers_share(backend: MysqlBackend) -> None:
    backend.commit(Commit(inserts={b"a": b"0"}))
    with backend.begin_locking_transaction() as one, backend.begin_locking_transaction() as other:
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
                with backend.begin_locking_transaction() as transaction:
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
        with backend.begin_locking_transaction() as transaction:
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
    with backend.begin_locking_transaction() as holder:
        holder.read([b"a"], exclusive=True)
        with pytest.raises(UnavailableError, match="other transactions hold the records for too long"):
            with backend.begin_locking_transaction() as other:
                other.read([b"a"], exclusive=True)


def test_only_one_apply(backend: MysqlBackend) -> None:
    with backend.begin_locking_transaction() as transaction:
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
        with backend.begin_locking_transaction() as transaction:
            assert transaction.read([b"n"], exclusive=True) == {}
            if fault is Fault.LOSE_REPLY:
                assert isinstance(transaction.apply(Commit(reads={b"n": ABSENT}, adds={b"n": 1})), Committed)
            else:  # the locks are gone: only the caller can start over
                with pytest.raises(UnavailableError, match="cannot be reached"):
                    transaction.apply(Commit(reads={b"n": ABSENT}, adds={b"n": 1}))
        assert proxy.faults == [fault]
        assert len(backend.get_many([b"n"])) == count
        proxy.interfere_once(lambda request: b"SELECT" in request, fault)
        with (
            pytest.raises(UnavailableError, match="cannot be reached"),
            backend.begin_locking_transaction() as transaction,
        ):
            transaction.read([b"n"], exclusive=True)
