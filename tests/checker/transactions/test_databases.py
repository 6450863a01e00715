"""The simulated databases do what the conformance suite demands of real ones, and what servers do with locks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import pytest

from holdfast.conformance import Check
from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.transactions.base import Commit, Committed, Record, ScanPage
from holdfast_checker.kernel.calls import Call, Fault, Resource, may_conflict
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE, DatabaseResource, DatabaseState
from holdfast_checker.transactions.row_locks import RowLockingTable, SimulatedDatabase, StatementSteppedDatabase
from tests.conformance.backends.subject import Subject
from tests.conformance.backends.suite import checks_for, subject_of

_START = {b"x": Record(1, b"iv", 3)}


class _Live:
    """A resource whose calls take the ordinary way, for one actor after the other."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.state = resource.initial_state()

    def port(self, name: str, number: int) -> Port:
        """Return a port that is not part of any history."""
        port = Port(name, number, lambda index, call: None)
        port.call = lambda call: self.call(call, name)  # type: ignore[method-assign]  # calls are answered at once
        return port

    def call(self, call: Call, actor: str) -> object:
        ways = self.resource.alternatives(self.state, call, actor)
        assert ways, f"{call.operation} blocks, and nobody else can move"
        self.state = ways[0].state
        if ways[0].reply.error is not None:
            raise ways[0].reply.error
        return ways[0].reply.value


# --- the conformance suite --------------------------------------------------------------------------------------------
_ELSEWHERE = ("snapshot", "locked", "huge", "fresh", "stale", "limits", "many", "large")
_SEQUENTIAL = [
    check
    for check in checks_for(SimulatedDatabase)
    if not check.name.endswith(("_race", "_at_once", "_order", "_twins"))
    and not any(word in check.name for word in _ELSEWHERE)
]


class _Bytes(SimulatedDatabase):
    """A handle that also passes on what only checks ask for."""

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return super().get_many(set(keys))


class _SteppedBytes(StatementSteppedDatabase):
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return super().get_many(set(keys))


@pytest.mark.parametrize("check", _SEQUENTIAL, ids=lambda check: check.name)
@pytest.mark.parametrize(("resource", "handle"), [(DatabaseResource, _Bytes), (RowLockingTable, _SteppedBytes)])
def test_conformance(check: Check[Subject], resource: type[DatabaseResource], handle: type[SimulatedDatabase]) -> None:
    live = _Live(resource({}))
    handles = [handle(live.port(f"actor {number}", number)) for number in range(2)]
    check.run(subject_of(check, handles[0], handles[1], rounds=3))


def test_most_checks_run() -> None:
    assert len(_SEQUENTIAL) > 10


# --- faults -----------------------------------------------------------------------------------------------------------
def _call(*commits: Commit, base: int = 10) -> Call:
    return Call(DATABASE, "commit_group", (commits, base))


def _records(state: object) -> dict[bytes, Record]:
    return cast("DatabaseState", state).records.as_dict()


def test_ways_in_which_a_commit_can_end() -> None:
    database = DatabaseResource(_START)
    ways = {
        way.label: way for way in database.alternatives(database.initial_state(), _call(Commit(adds={b"x": 1})), "ann")
    }
    assert list(ways) == ["", "fails", "reply lost", "reply lost, effect comes later", "request lost"]
    assert ways[""].reply.value == (Committed(10),)
    for label in ("", "reply lost"):
        assert _records(ways[label].state) == {b"x": Record(10, b"iv", 4)}
    for label in ("fails", "request lost", "reply lost, effect comes later"):
        assert _records(ways[label].state) == _START
    assert isinstance(ways["fails"].reply.error, UnavailableError)
    for label in ("reply lost", "request lost", "reply lost, effect comes later"):
        assert isinstance(ways[label].reply.error, OutcomeUnknownError)
    late = ways["reply lost, effect comes later"].state
    [way] = database.alternatives(late, Call(DATABASE, "carry_out"), "network")
    assert way.state == ways[""].state
    assert database.state_key(late) != database.state_key(database.initial_state())
    assert database.alternatives(way.state, Call(DATABASE, "carry_out"), "network") == []


def test_late_commits_come_in_any_order() -> None:
    database = DatabaseResource(_START)
    state: object = database.initial_state()
    for base in (20, 10):
        call = _call(Commit(puts={b"x": b"%d" % base}), base=base)
        state = next(way.state for way in database.alternatives(state, call, "ann") if "later" in way.label)
    ways = database.alternatives(state, Call(DATABASE, "carry_out"), "network")
    assert {_records(way.state)[b"x"].value for way in ways} == {b"10", b"20"}
    assert len({way.label for way in ways}) == 2


def test_a_commit_that_changes_nothing_cannot_be_lost() -> None:
    database = DatabaseResource(_START)
    ways = database.alternatives(database.initial_state(), _call(Commit(inserts={b"x": b""})), "ann")
    assert [way.label for way in ways] == ["", "fails"]


def test_a_crash_takes_away_the_newest_commits() -> None:
    database = DatabaseResource(_START, crashes=2)
    state: object = database.initial_state()
    for number in range(3):
        state = database.alternatives(state, _call(Commit(adds={b"x": 1}), base=10 * (number + 1)), "ann")[0].state
    assert database.state_key(state) != database.state_key(database.initial_state())
    ways = {way.label: way for way in database.alternatives(state, Call(DATABASE, "crash"), "database")}
    assert {label: _records(way.state)[b"x"].number for label, way in ways.items()} == {
        "": 6,
        "loses 3": 3,
        "loses 2": 4,
        "loses 1": 5,
    }
    assert [way.reply.value for way in ways.values()] == [0, 3, 2, 1]
    [same, *again] = database.alternatives(ways["loses 1"].state, Call(DATABASE, "crash"), "database")
    assert [_records(way.state)[b"x"].number for way in again] == [3, 4]
    assert cast("DatabaseState", same.state).unsaved == (), "nobody will lose it any more"


def test_what_is_durable_survives_a_crash() -> None:
    database = DatabaseResource(_START, crashes=1)
    written = database.alternatives(database.initial_state(), _call(Commit(adds={b"x": 1})), "ann")[0].state
    [durable, _fails] = database.alternatives(written, Call(DATABASE, "make_durable"), "ann")
    [way] = database.alternatives(durable.state, Call(DATABASE, "crash"), "database")
    assert _records(way.state)[b"x"].number == 4


def test_a_crash_takes_away_what_is_on_its_way() -> None:
    database = DatabaseResource(_START, crashes=1)
    ways = database.alternatives(database.initial_state(), _call(Commit(adds={b"x": 1})), "ann")
    late = next(way.state for way in ways if "later" in way.label)
    written = database.alternatives(late, _call(Commit(puts={b"y": b""}), base=20), "bob")[0].state
    lost = database.alternatives(written, Call(DATABASE, "crash"), "database")[1].state
    assert database.alternatives(lost, Call(DATABASE, "carry_out"), "network") == []


# --- locks ------------------------------------------------------------------------------------------------------------
def _lock(key: bytes, *, exclusive: bool) -> Call:
    return Call(DATABASE, "lock", (key, exclusive))


def _after(table: RowLockingTable, *calls: tuple[str, Call]) -> object:
    state: object = table.initial_state()
    for actor, call in calls:
        state = table.alternatives(state, call, actor)[0].state
    return state


@pytest.mark.parametrize(
    ("held", "asked", "blocks"), [(False, False, False), (False, True, True), (True, False, True), (True, True, True)]
)
def test_only_shared_locks_are_held_together(held: bool, asked: bool, blocks: bool) -> None:
    table = RowLockingTable(_START)
    state = _after(table, ("ann", _lock(b"x", exclusive=held)))
    assert (not table.alternatives(state, _lock(b"x", exclusive=asked), "bob")) is blocks
    assert table.alternatives(state, _lock(b"x", exclusive=True), "ann"), "nobody waits for himself"
    for release in (Call(DATABASE, "rollback", ((b"x",), ())), Call(DATABASE, "commit", ((b"x",), ()))):
        released = table.alternatives(state, release, "ann")[0].state
        assert table.alternatives(released, _lock(b"x", exclusive=asked), "bob")
    assert table.alternatives(table.state_after_death(state, "ann"), _lock(b"x", exclusive=asked), "bob")
    assert table.state_after_death(state, "bob") == state


def test_a_row_that_is_created_blocks_others_that_create_it() -> None:
    table = RowLockingTable(_START)
    create = Call(DATABASE, "create", (b"new",))
    state = _after(table, ("ann", create))
    assert table.alternatives(state, create, "bob") == []
    [seen, _fails] = table.alternatives(state, _lock(b"new", exclusive=False), "bob")
    assert (seen.reply.value, seen.state) == (None, state), "nobody sees it, so nobody can lock it"
    changes = ((b"new", Record(7, b"n")),)
    committed = table.alternatives(state, Call(DATABASE, "commit", ((b"new",), changes)), "ann")[0].state
    [exists, _fails] = table.alternatives(committed, create, "bob")
    assert exists.reply.value == Record(7, b"n")
    rolled_back = table.alternatives(state, Call(DATABASE, "rollback", ((b"new",), ())), "ann")[0].state
    assert rolled_back == table.initial_state()


def test_a_broken_connection_gives_its_locks_back() -> None:
    table = RowLockingTable(_START)
    state = _after(table, ("ann", _lock(b"x", exclusive=True)))
    failed = next(
        way for way in table.alternatives(state, Call(DATABASE, "count", (b"a", b"z", 9)), "ann") if way.fault
    )
    assert (failed.state, failed.fault) == (table.initial_state(), Fault.FAILURE)
    commit = Call(DATABASE, "commit", ((b"x",), ((b"x", None),)))
    ways = {way.label: way.state for way in table.alternatives(state, commit, "ann")}
    assert ways["request lost"] == ways["fails"] == table.initial_state()
    assert ways["reply lost"] == ways[""] and _records(ways[""]) == {}


def test_counts_see_what_is_committed() -> None:
    table = RowLockingTable({b"a": Record(1, b""), b"b": Record(2, b"")})
    state = _after(table, ("ann", Call(DATABASE, "create", (b"c",))), ("bob", Call(DATABASE, "create", (b"d",))))
    for end, most, count in ((b"z", 9, 2), (b"z", 1, 1), (b"b", 9, 1)):
        way = table.alternatives(state, Call(DATABASE, "count", (b"a", end, most)), "ann")[0]
        assert way.reply.value == count


# --- footprints -------------------------------------------------------------------------------------------------------
def _commit_of(**parts: object) -> Call:
    return _call(Commit(**parts))  # type: ignore[arg-type]  # the parts of a commit


_X = (_commit_of(reads={b"x": 1}), Call(DATABASE, "get_many", ((b"x",),)), Call(DATABASE, "scan", (b"w", b"z", 9, ())))
_WRITES_X = (
    _commit_of(puts={b"x": b""}),
    _commit_of(inserts={b"x": b""}),
    _commit_of(deletes=[b"x"]),
    _commit_of(adds={b"x": 1}),
    Call(DATABASE, "carry_out"),
)
_Y = (_commit_of(puts={b"y/1": b""}), Call(DATABASE, "get_many", ((b"y/1",),)))


def test_what_commits_touch() -> None:
    database = DatabaseResource({})
    prints: dict[str, Sequence[object]] = {}
    for write in _WRITES_X:
        assert all(may_conflict(database.footprint(write), database.footprint(read)) for read in _X)
        assert all(may_conflict(database.footprint(write), database.footprint(other)) for other in _WRITES_X)
    for one in _X:
        assert not any(may_conflict(database.footprint(one), database.footprint(other)) for other in _X), prints
        assert not may_conflict(database.footprint(_Y[1]), database.footprint(one))
    assert not may_conflict(database.footprint(_Y[0]), database.footprint(_WRITES_X[0]))
    ranged = Call(DATABASE, "scan", (b"y/", b"y0", 9, (b"x",)))
    assert may_conflict(database.footprint(ranged), database.footprint(_Y[0]))
    assert may_conflict(database.footprint(ranged), database.footprint(_WRITES_X[0])), "a guard is read"


def test_what_locks_touch() -> None:
    table = RowLockingTable({})

    def conflict(one: Call, other: Call) -> bool:
        return may_conflict(table.footprint(one), table.footprint(other))

    shared, exclusive = _lock(b"x", exclusive=False), _lock(b"x", exclusive=True)
    create = Call(DATABASE, "create", (b"x",))
    commit = Call(DATABASE, "commit", ((b"x",), ((b"x", None),)))
    rollback = Call(DATABASE, "rollback", ((b"x",), ()))
    assert not conflict(shared, shared)
    for one in (exclusive, create, commit, rollback):
        assert all(conflict(one, other) for other in (shared, exclusive, create, commit, rollback))
        assert not conflict(one, _lock(b"y", exclusive=True))
    for read in (Call(DATABASE, "count", (b"w", b"z", 9)), Call(DATABASE, "get_many", ((b"x",),))):
        assert conflict(read, commit)
        assert not any(conflict(read, other) for other in (shared, exclusive, create, rollback))


def test_pages() -> None:
    table = RowLockingTable({b"%d" % number: Record(number + 1, b"") for number in range(5)})
    way = table.alternatives(table.initial_state(), Call(DATABASE, "scan", (b"1", b"4", 2, (b"0", b"9"))), "ann")[0]
    page = cast("ScanPage", way.reply.value)
    assert [key for key, _record in page.records] == [b"1", b"2"]
    assert page.more and list(page.guards) == [b"0"]
