"""Nobody pays for another member of a group: not for the locks that it waits for, nor for its size or its mistakes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import SystemClock
from holdfast.runtime.simulated import StillClock
from holdfast.transactions import group_commit as group_module
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, Outcome, Record
from holdfast.transactions.group_commit import GroupCommit, _Way
from holdfast.transactions.memory.backend import MemoryBackend
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import literal
from holdfast.transactions.postgres.backend import PostgresBackend
from holdfast.transactions.registry import open_backend
from holdfast.transactions.seats import Seat
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
    groups = GroupCommit(backend, readers=1)
    groups.commit(Commit(puts={b"a": b"1"}))
    answers = groups._read([[b"a"], [b"refused"]])
    assert answers == [None, None]
    assert [list(one or ()) for one in groups._read([[b"a"], [b"b"]])] == [[b"a"], []]
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
    with backend.locked() as stranger:
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
    assert isinstance(backend.commit(Commit(adds={b"held": 1})), Committed)
    assert backend._held == frozenset()


def test_a_record_that_others_are_about_to_insert_holds_up_only_those_who_need_it(backend: GroupCommit) -> None:
    """It does not exist yet, so nobody can ask who holds it."""
    inner = backend._hasty
    assert inner is not None
    stranger = threading.Event()
    is_inserted = threading.Event()

    def insert() -> None:
        with _uncommitted(backend, b"new"):
            is_inserted.set()
            assert stranger.wait(PATIENCE_S)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(insert)
        assert is_inserted.wait(PATIENCE_S)
        group = [Commit(puts={b"%d" % number: b""}) for number in range(11)]
        group[3:3] = [Commit(inserts={b"new": b"mine"}), Commit(puts={b"new": b"", b"2": b"late"})]
        outcomes = backend._commit(group)
        suspects = backend._suspects
        late = Commit(inserts={b"new-too": b""}, puts={b"12": b""})
        backend._suspects = suspects | {b"new-too"}
        assert isinstance(backend.commit(late), Committed), "a suspect that nobody holds"
        stranger.set()
        waiting.result(PATIENCE_S)
    assert [number for number, one in enumerate(outcomes) if one is _Way.BESIDE] == [3, 4]
    assert all(isinstance(one, Committed) for number, one in enumerate(outcomes) if number not in (3, 4))
    assert suspects == {b"new"}
    assert len(backend.get_many([b"%d" % number for number in range(11)])) == 11
    assert isinstance(backend.commit(group[3]), Committed)
    assert backend._held == frozenset()


class _ScriptedStore(MemoryBackend):
    """A hasty database in which others hold all locks for a while; each of its calls takes a second."""

    def __init__(self, held_for: int, clock: StillClock) -> None:
        super().__init__()
        self.held_for = held_for
        self.clock = clock
        self.tried: list[int] = []

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        self.tried.append(len(commits))
        self.clock.at_s += patience_s
        if len(self.tried) <= self.held_for:
            return None
        if any(b"lost" in commit.puts for commit in commits):
            raise OutcomeUnknownError("the server is gone")
        if any(b"odd" in commit.puts for commit in commits):
            raise InvalidRequestError("refused")
        return self.commit_group(commits)

    def held_keys(self, keys: Collection[bytes]) -> set[bytes]:
        return set()


def test_each_member_has_its_own_answer_while_the_group_looks_for_locks() -> None:
    clock = StillClock()
    backend = _ScriptedStore(1, clock)
    group = [Commit(puts={key: b""}) for key in (b"a", b"odd", b"lost", b"b")]
    answers = GroupCommit(backend, clock=clock)._commit(group)
    assert [type(one) for one in answers] == [Committed, InvalidRequestError, OutcomeUnknownError, Committed]
    assert backend.tried == [4, 1, 1, 1, 1]


def test_who_perhaps_waits_for_an_insert_is_tried_alone_and_in_a_hurry() -> None:
    clock = StillClock()
    backend = _ScriptedStore(0, clock)
    groups = GroupCommit(backend, clock=clock)
    for held_for, tried in ((0, [1]), (2, [1, 1])):
        backend.held_for = held_for
        groups._suspects = frozenset({b"new"})
        assert isinstance(groups.commit(Commit(puts={b"new": b""})), Committed)
        assert backend.tried == tried
    assert clock.elapsed_s() - StillClock().elapsed_s() == pytest.approx(2 * group_module._HURRY_S)


class _HoldingStore(MemoryBackend):
    """A hasty database in which others hold one record, and say so."""

    def try_commit_group(self, commits: Sequence[Commit], patience_s: float) -> list[Outcome] | None:
        return None if any(b"held" in commit.puts for commit in commits) else self.commit_group(commits)

    def held_keys(self, keys: Collection[bytes]) -> set[bytes]:
        return {b"held"}.intersection(keys)


def test_each_member_has_its_own_answer_beside_one_that_waits() -> None:
    backend = _HoldingStore()
    backend.commit(Commit(puts={b"old": b""}))
    group = [
        *(Commit(puts={b"a": b""}), Commit(puts={b"held": b""}), Commit(inserts={b"old": b""})),
        *(Commit(puts={b"b": b""}), Commit(reads={b"c": 7}, puts={b"d": b""})),
    ]
    answers = GroupCommit(backend, clock=StillClock())._commit(group)
    assert [type(one) for one in answers] == [Committed, _Way, Conflict, Committed, Conflict]
    assert [one.keys for one in answers if isinstance(one, Conflict)] == [(b"old",), (b"c",)]


class _SilentStore(_ScriptedStore):
    """A hasty database that does not tell whether there is a certain record."""

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if b"a" in keys:
            raise UnavailableError("the server is busy")
        return super().get_many(keys)


def test_who_cannot_learn_what_others_insert_waits_beside_the_group() -> None:
    clock = StillClock()
    group = [Commit(puts={b"a": b""}), Commit(puts={b"b": b""})]
    answers = GroupCommit(_SilentStore(2, clock), clock=clock)._commit(group)
    assert [type(one) for one in answers] == [_Way, Committed] and answers[0] is _Way.BESIDE


def test_a_group_does_not_look_for_locks_without_end() -> None:
    clock = StillClock()
    backend = _ScriptedStore(1000, clock)
    group = [Commit(puts={b"%d" % number: b""}) for number in range(500)]
    assert set(GroupCommit(backend, clock=clock)._commit(group)) == {_Way.BESIDE}
    assert len(backend.tried) <= 302


def test_who_is_refused_together_with_others_waits_for_nobody() -> None:
    """Those who go on alone for this reason need no lock that others hold."""
    backend = PickyStore()
    backend.go.set()
    groups = GroupCommit(backend)
    seats = [Seat(), Seat()]
    assert all(groups._beside.take(one, SystemClock(), 0) for one in seats)
    assert groups._commit([Commit(puts={b"0": LARGE}), Commit(puts={b"1": b""})]) == [_Way.ALONE] * 2
    backend.groups.clear()
    backend.go.clear()
    outcomes = _together(backend, groups, [Commit(puts={b"%d" % one: LARGE if one == 2 else b""}) for one in range(4)])
    assert outcomes.pop(2) == "too large" and all(isinstance(one, Committed) for one in outcomes)
    assert groups._beside.seated() == seats


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
        with inner._pool.lease() as link:
            link.run(["START TRANSACTION", f"INSERT INTO holdfast_records VALUES ({literal(key)}, 1, '', 0)"])
            yield
            link.run(["ROLLBACK"])


def test_who_is_held_up_still_conflicts_or_not(backend: GroupCommit) -> None:
    with ThreadPoolExecutor(2) as threads:
        backend.commit(Commit(puts={b"held": b""}))
        version = backend.get_many([b"held"])[b"held"].version
        with backend.locked() as stranger:
            stranger.read([b"held"], exclusive=True)
            commit = Commit(reads={b"held": version}, puts={b"a": b""})
            waiting = threads.submit(backend.commit, commit)
            wait_until(lambda: backend._held == {b"held"}, "the lock is not found")
            stranger.apply(Commit(puts={b"held": b"2"}))
        assert waiting.result(PATIENCE_S) == Conflict((b"held",))
    assert backend.get_many([b"a"]) == {}


def test_a_group_in_a_hurry_gives_up_without_a_trace(backend: GroupCommit) -> None:
    inner = backend._hasty
    assert inner is not None
    with _held(backend, [b"held"]):
        group = [Commit(puts={b"a": b""}), Commit(puts={b"held": b"1"}), Commit(inserts={b"z": b""})]
        assert inner.try_commit_group(group, 0.01) is None
        assert inner.held_keys([b"a", b"held", b"z", *(b"%04d" % number for number in range(1200))]) == {b"held"}
        assert backend.get_many([b"a", b"z"]) == {}
        outcomes = inner.try_commit_group(group[::2], 0.01)
        assert outcomes is not None
        assert [type(one) for one in outcomes] == [Committed, Committed]
    assert inner.held_keys([b"held", b"a"]) == set()


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
    groups = GroupCommit(_HoldingStore(), connections=connections)
    taken = [Seat() for _ in range(connections + 1)]
    assert [groups._beside.take(one, SystemClock(), 0) for one in taken].count(True) == most
