"""Nobody pays for another member of a group: not for the locks that it waits for, nor for its size or its mistakes."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.runtime import SystemClock
from holdfast.transactions import group_commit as group_module
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, Outcome, Record
from holdfast.transactions.group_commit import GroupCommit, RequestCombiner
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import sql_literal
from holdfast.transactions.postgres.backend import PostgresBackend
from holdfast.transactions.registry import open_backend
from tests.clocks import StillClock
from tests.database_servers import NewUrl
from tests.databases import needs_mariadb, needs_postgres
from tests.patience import PATIENCE_S, wait_until

LARGE = bytes(1 << 20)


class PickyStore(MemoryBackend):
    """A database that refuses a group, or a read, with more than a million bytes; its first group waits for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []
        self.go = threading.Event()

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self.groups.append(len(commits))
        if len(self.groups) == 1:
            assert self.go.wait(PATIENCE_S)
        if any(len(value) >= len(LARGE) for commit in commits for value in commit.puts.values()):
            raise InvalidRequestError("too large")
        return super().commit_group(commits)

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if b"refused" in keys:
            raise InvalidRequestError("refused")
        return super().get_many(keys)


def _waits(groups: GroupCommit, count: int) -> bool:
    return len(groups._commits._queue) == count


def test_the_main_thread_leads_nobody_and_waits_for_nobody() -> None:
    """Handlers of signals raise there: a leader that is gone would keep all others waiting."""
    backend = PickyStore()
    groups = GroupCommit(backend)
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(groups.commit, Commit(puts={b"1": b""}))
        wait_until(lambda: backend.groups, "nobody leads")
        follower = threads.submit(groups.commit, Commit(puts={b"2": b""}))
        wait_until(partial(_waits, groups, 1), "nobody waits")
        assert isinstance(groups.commit(Commit(puts={b"3": b""})), Committed)
        assert groups.get_many([b"3"]).keys() == {b"3"}
        assert backend.groups == [1, 1] and not follower.done()
        backend.go.set()
        assert isinstance(leader.result(PATIENCE_S), Committed)
        assert isinstance(follower.result(PATIENCE_S), Committed)


def _together(backend: PickyStore, groups: GroupCommit, commits: Sequence[Commit]) -> list[Outcome | str]:
    """Commit in threads, all of which wait for the first one."""

    def run(commit: Commit) -> Outcome | str:
        try:
            return groups.commit(commit)
        except InvalidRequestError as error:
            return error.message

    with ThreadPoolExecutor(len(commits)) as threads:
        found = []
        for number, commit in enumerate(commits):
            found.append(threads.submit(run, commit))
            wait_until(lambda: backend.groups, "nobody leads")
            wait_until(partial(_waits, groups, number), "nobody waits")
        backend.go.set()
        return [one.result(PATIENCE_S) for one in found]


def test_a_commit_that_is_refused_costs_its_group_nothing() -> None:
    backend = PickyStore()
    groups = GroupCommit(backend)
    puts = [Commit(puts={b"%d" % number: LARGE if number == 2 else b""}) for number in range(5)]
    outcomes = _together(backend, groups, puts)
    assert outcomes.pop(2) == "too large"
    assert all(isinstance(one, Committed) for one in outcomes)
    assert backend.groups == [1, 4, 1, 1, 1, 1]
    assert backend.scan(b"", b"z", 10).more is False


def test_a_group_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "_MOST_BYTES", 1000)
    backend = PickyStore()
    groups = GroupCommit(backend)
    sizes = [1, 500, 500, 500, 2000, 10, 10]
    outcomes = _together(
        backend, groups, [Commit(puts={b"%d" % number: bytes(size)}) for number, size in enumerate(sizes)]
    )
    assert all(isinstance(one, Committed) for one in outcomes)
    assert backend.groups == [1, 2, 1, 1, 2]


def test_a_group_that_its_bytes_bound_has_no_two_commits_that_depend_on_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a group, the second one would be judged by what was there before the first one."""
    monkeypatch.setattr(group_module, "_MOST_BYTES", 1000)
    backend = PickyStore()
    groups = GroupCommit(backend)
    rivals = [Commit(reads={b"a": ABSENT}, puts={b"a": value}) for value in (b"1", b"2")]
    first, one, other, large = _together(
        backend, groups, [Commit(puts={b"b": b""}), *rivals, Commit(puts={b"c": bytes(2000)})]
    )
    assert all(isinstance(outcome, Committed) for outcome in (first, one, large))
    assert isinstance(other, Conflict)
    assert backend.get_many([b"a"])[b"a"].value == b"1"


def test_a_read_that_is_refused_costs_others_nothing() -> None:
    backend = PickyStore()
    backend.go.set()
    groups = GroupCommit(backend)
    groups.commit(Commit(puts={b"a": b"1"}))
    answers = groups._read_together([[b"a"], [b"refused"]])
    assert answers == [None, None]
    assert [list(one or ()) for one in groups._read_together([[b"a"], [b"b"]])] == [[b"a"], []]
    with pytest.raises(InvalidRequestError):
        groups.get_many([b"refused"])
    assert groups.get_many([b"a"])[b"a"].value == b"1"


# --- locks of others --------------------------------------------------------------------------------------------------
@pytest.fixture(params=[pytest.param("postgres", marks=needs_postgres), pytest.param("mysql", marks=needs_mariadb)])
def backend(request: pytest.FixtureRequest) -> Iterator[GroupCommit]:
    new_url: NewUrl = request.getfixturevalue(f"new_{request.param}_url")
    found = open_backend(new_url(), create=True)
    assert isinstance(found, GroupCommit)
    yield found
    found.close()


@contextmanager
def _held(backend: GroupCommit, keys: Collection[bytes]) -> Iterator[None]:
    backend.commit(Commit(puts=dict.fromkeys(keys, b"")))
    with backend.begin_locking_transaction() as stranger:
        stranger.read(keys, exclusive=True)
        yield


def test_locks_of_others_hold_up_only_those_who_need_them(backend: GroupCommit) -> None:
    with ThreadPoolExecutor(12) as threads:
        with _held(backend, [b"held"]):
            held = [threads.submit(backend.commit, Commit(adds={b"held": 1})) for _ in range(6)]
            for turn in range(5):
                free = [
                    threads.submit(backend.commit, Commit(puts={b"%d/%d" % (turn, number): b""})) for number in range(6)
                ]
                for one in free:
                    assert isinstance(one.result(PATIENCE_S), Committed)
            assert not any(one.done() for one in held)
        for one in held:
            assert isinstance(one.result(PATIENCE_S), Committed)
    assert backend.get_many([b"held"])[b"held"].number == 6
    assert backend._held == frozenset()


def test_a_record_that_others_are_about_to_insert_holds_up_only_those_who_need_it(backend: GroupCommit) -> None:
    """It does not exist yet, so nobody can ask who holds it."""
    stranger = threading.Event()
    is_inserted = threading.Event()

    def insert() -> None:
        with _uncommitted(backend, b"new"):
            is_inserted.set()
            assert stranger.wait(PATIENCE_S)

    with ThreadPoolExecutor(14) as threads:
        waiting = threads.submit(insert)
        assert is_inserted.wait(PATIENCE_S)
        group = [Commit(puts={b"%d" % number: b""}) for number in range(11)]
        group[3:3] = [Commit(inserts={b"new": b"mine"}), Commit(puts={b"new": b"", b"2": b"late"})]
        assert backend._commit_as_group(group) == [None] * 13
        found = [threads.submit(backend.commit, one) for one in group]
        wait_until(lambda: sum(one.done() for one in found) == 11, "the others do not go on")
        assert not found[3].done() and not found[4].done()
        stranger.set()
        waiting.result(PATIENCE_S)
        assert all(isinstance(one.result(PATIENCE_S), (Committed, Conflict)) for one in found)
    assert len(backend.get_many([b"%d" % number for number in range(11)])) == 11
    assert backend._held == frozenset()


class _HoldingStore(MemoryBackend):
    """A hasty database in which others hold one record, as long as nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[bytes] = []

    def commit(self, commit: Commit) -> Outcome:
        self.waited += commit.puts
        return self.commit_group([commit])[0]

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        return None if any(b"held" in commit.puts for commit in commits) else self.commit_group(commits)


def test_each_member_has_its_own_answer_beside_one_that_waits() -> None:
    backend = _HoldingStore()
    backend.commit_group([Commit(puts={b"old": b""})])
    group = [
        *(Commit(puts={b"a": b""}), Commit(puts={b"held": b""}), Commit(inserts={b"old": b""})),
        *(Commit(puts={b"b": b""}), Commit(reads={b"c": 7}, puts={b"d": b""})),
    ]
    groups = GroupCommit(backend, clock=StillClock())
    assert groups._commit_as_group(group) == [None] * 5
    answers = [groups._commit_outside_group(one) for one in group]
    assert [type(one) for one in answers] == [Committed, Committed, Conflict, Committed, Conflict]
    assert [one.keys for one in answers if isinstance(one, Conflict)] == [(b"old",), (b"c",)]
    assert backend.waited == [b"held"]


@contextmanager
def _uncommitted(backend: GroupCommit, key: bytes) -> Iterator[None]:
    """Insert a record, and roll back after the block."""
    inner = backend._inner
    insert = "INSERT INTO records (key, version, value, number) VALUES (%s, 1, '', 0)"
    if isinstance(inner, PostgresBackend):
        with inner._pool.lease() as session:
            session.connection.execute("BEGIN")
            session.connection.execute(insert, (key,))
            yield
            session.connection.execute("ROLLBACK")
    else:
        assert isinstance(inner, MysqlBackend)
        with inner._pool.lease() as session:
            session.run(["START TRANSACTION", f"INSERT INTO holdfast_records VALUES ({sql_literal(key)}, 1, '', 0)"])
            yield
            session.run(["ROLLBACK"])


def test_who_is_held_up_still_conflicts_or_not(backend: GroupCommit) -> None:
    with ThreadPoolExecutor(2) as threads:
        backend.commit(Commit(puts={b"held": b""}))
        version = backend.get_many([b"held"])[b"held"].version
        with backend.begin_locking_transaction() as stranger:
            stranger.read([b"held"], exclusive=True)
            commit = Commit(reads={b"held": version}, puts={b"a": b""})
            waiting = threads.submit(backend.commit, commit)
            wait_until(lambda: backend._held == {b"a", b"held"}, "the lock is not found")
            stranger.apply(Commit(puts={b"held": b"2"}))
        assert waiting.result(PATIENCE_S) == Conflict((b"held",))
    assert backend.get_many([b"a"]) == {}


def test_a_group_in_a_hurry_gives_up_without_a_trace(backend: GroupCommit) -> None:
    inner = backend._inner
    with _held(backend, [b"held"]):
        group = [Commit(puts={b"a": b""}), Commit(puts={b"held": b"1"}), Commit(inserts={b"z": b""})]
        assert inner.try_commit_group(group, 0.01) is None
        assert backend.get_many([b"a", b"z"]) == {}
        outcomes = inner.try_commit_group(group[::2], 0.01)
        assert outcomes is not None
        assert [type(one) for one in outcomes] == [Committed, Committed]


def test_those_who_wait_for_others_do_not_wait_without_end(
    backend: GroupCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_module, "_LONGEST_WAIT_S", 0.1)
    with ThreadPoolExecutor(4) as threads:
        with _held(backend, [b"held"]):
            held = [threads.submit(backend.commit, Commit(puts={b"held": b"%d" % number})) for number in range(4)]
            wait_until(lambda: sum(one.done() for one in held) == 2, "nobody gives up")
            for one in held:
                if one.done():
                    with pytest.raises(UnavailableError, match="too many commits wait for records that others hold"):
                        one.result()
        assert sum(one.exception(PATIENCE_S) is None for one in held) == 2


@pytest.mark.parametrize(("connections", "most"), [(1, 1), (2, 1), (3, 2), (100, group_module._BESIDE)])
def test_those_who_wait_for_others_leave_a_connection(connections: int, most: int) -> None:
    inner = _HoldingStore()
    inner.connections = connections
    groups = GroupCommit(inner)
    with ExitStack() as taken:
        found = [taken.enter_context(groups._beside.hold(SystemClock(), 0)) for _ in range(connections + 1)]
    assert found.count(True) == most


# --- callers that share a run -----------------------------------------------------------------------------------------
def _in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    """Run something in threads; return the results, or the errors; fail if a thread hangs."""
    results: list[object] = [None] * count

    def run(number: int) -> None:
        try:
            results[number] = work(number)
        except Exception as error:  # noqa: BLE001  # the test looks at them
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE_S)
        assert not one.is_alive(), "a thread hangs"
    return results


def _double(requests: list[int]) -> list[int]:
    return [2 * one for one in requests]


def test_a_single_caller() -> None:
    combiner = RequestCombiner(_double, limit=3)
    assert [combiner.submit(number) for number in range(5)] == [0, 2, 4, 6, 8]


def test_a_leader_gathers_until_the_callers_of_the_last_batch_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "_LONGEST_GATHERING_S", PATIENCE_S)  # it is woken
    batches: list[list[int]] = []

    def run(requests: list[int]) -> list[int]:
        batches.append(requests)
        return requests

    combiner = RequestCombiner(run, limit=10, clock=SystemClock())
    inner: Any = combiner
    inner._last_size, inner._last_s = 2, PATIENCE_S

    def work(number: int) -> int:
        if number:
            wait_until(lambda: inner._gathering is not None, "nobody gathers")
        return combiner.submit(number)

    assert _in_threads(2, work) == [0, 1]
    assert batches == [[0, 1]]


class Gate:
    """A run function whose first call waits until it is opened, so that others queue up."""

    def __init__(self, run: Callable[[list[int]], Sequence[int]] = _double) -> None:
        self._run = run
        self.batches: list[list[int]] = []
        self.is_busy = threading.Event()
        self.opened = threading.Event()

    def __call__(self, requests: list[int]) -> Sequence[int]:
        self.batches.append(requests)
        self.is_busy.set()
        assert self.opened.wait(PATIENCE_S)
        return self._run(requests)


def _queue_up(combiner: RequestCombiner[int, int], gate: Gate, count: int) -> list[object]:
    """Let one caller lead, and the others come one after the other while it works; return their results."""
    combiner_queue: Any = combiner

    def work(number: int) -> int:
        if number:
            assert gate.is_busy.wait(PATIENCE_S)
            wait_until(lambda: len(combiner_queue._queue) == number - 1, "the caller before does not come")
        else:
            threading.Thread(target=open_when_all_wait, daemon=True).start()
        return combiner.submit(number)

    def open_when_all_wait() -> None:
        wait_until(lambda: len(combiner_queue._queue) == count - 1, "not all come")
        gate.opened.set()

    return _in_threads(count, work)


def test_those_who_wait_share_a_run() -> None:
    gate = Gate()
    combiner = RequestCombiner(gate, limit=3)
    assert _queue_up(combiner, gate, 6) == [0, 2, 4, 6, 8, 10]
    assert gate.batches == [[0], [1, 2, 3], [4, 5]]


def test_a_batch_ends_where_it_is_told() -> None:
    gate = Gate()
    combiner = RequestCombiner(gate, limit=10, take=lambda requests: min(2, len(requests)))
    _queue_up(combiner, gate, 6)
    assert gate.batches == [[0], [1, 2], [3, 4], [5]]


def test_an_error_of_the_run_reaches_its_batch_alone() -> None:
    def run(requests: list[int]) -> list[int]:
        if 1 in requests:
            raise UnavailableError("away") from ValueError("the cause")
        return requests

    gate = Gate(run)
    results = _queue_up(RequestCombiner(gate, limit=2), gate, 5)
    assert [results[number] for number in (0, 3, 4)] == [0, 3, 4]
    errors = [results[1], results[2]]
    assert all(isinstance(one, UnavailableError) and isinstance(one.__cause__, ValueError) for one in errors)
    assert errors[0] is not errors[1], "threads must not share a traceback"


def test_a_run_that_answers_too_little_is_an_error() -> None:
    combiner: RequestCombiner[int, int] = RequestCombiner(lambda requests: [], limit=2)
    with pytest.raises(ValueError):
        combiner.submit(1)


@pytest.mark.parametrize("leaders", [1, 2, 5])
def test_thousands_of_rounds(leaders: int) -> None:
    """No wake-up is lost, each request is run once, and each caller gets the answer to its own request."""
    ran: Counter[tuple[int, int]] = Counter()
    busy, most = Counter[str](), Counter[str]()

    def run(requests: list[tuple[int, int]]) -> list[tuple[int, int]]:
        busy["now"] += 1
        most["now"] = max(most["now"], busy["now"])
        ran.update(requests)
        busy["now"] -= 1
        return requests

    combiner = RequestCombiner(run, limit=4, take=lambda requests: max(1, len(requests) - 1), leaders=leaders)

    def work(number: int) -> bool:
        return all(combiner.submit((number, turn)) == (number, turn) for turn in range(500))

    assert _in_threads(12, work) == [True] * 12
    assert len(ran) == sum(ran.values()) == 12 * 500
    assert most["now"] <= leaders


def test_a_child_starts_anew() -> None:
    """At the time of the fork, a thread of the parent leads, and others wait."""
    gate = Gate()
    combiner = RequestCombiner(gate, limit=2)
    threads = [threading.Thread(target=combiner.submit, args=(number,), daemon=True) for number in range(3)]
    for one in threads:
        one.start()
    assert gate.is_busy.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        gate.opened.set()
        os._exit(0 if _in_threads(4, combiner.submit) == [0, 2, 4, 6] else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.opened.set()
    for one in threads:
        one.join(PATIENCE_S)
        assert not one.is_alive()
