"""Transactions over a toy optimistic store: correct if all reads are validated, otherwise caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from holdfast.errors import OutcomeUnknownError
from holdfast_checker.histories.history import Recorder, note, record
from holdfast_checker.histories.serializable import serializable_property
from holdfast_checker.histories.transactions import Level, Write
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Exploration, explore
from holdfast_checker.kernel.process import Actor, Port
from holdfast_checker.kernel.world import World
from tests.checker.histories.toy_store import (
    STORE,
    Commit,
    OptimisticStore,
    Transaction,
    Validation,
    commit,
    is_commit,
    transact,
    versions_of,
)

Program = Callable[[Port], None]


def _number(transaction: Transaction, key: str) -> int:
    found = transaction.get(key)
    assert isinstance(found, int)
    return found


def _increment(port: Port) -> None:
    transact(port, "increment", lambda t: t.put("x", _number(t, "x") + 1))


def _move(source: str, target: str) -> Program:
    def body(transaction: Transaction) -> None:
        left, right = _number(transaction, source), _number(transaction, target)
        transaction.put(source, left - 1)
        transaction.put(target, right + 1)

    return lambda port: transact(port, "move", body)


def _leave(own: str, other: str) -> Program:
    """Go off duty if the other one is on."""

    def body(transaction: Transaction) -> None:
        if _number(transaction, own) and _number(transaction, other):
            transaction.put(own, 0)

    return lambda port: transact(port, "leave", body)


def _audit(port: Port) -> None:
    transact(port, "audit", lambda t: (_number(t, "x"), _number(t, "y")))


def _move_by_halves(port: Port) -> None:
    """Write each half separately: other transactions may see one without the other."""

    def act() -> None:
        note(port, Write("x", "half"), Write("y", "half"))
        commit(port, Commit(version="half", puts=(("x", 0),)))
        commit(port, Commit(version="half", puts=(("y", 2),)))

    try:
        record(port, "move", (), act)
    except OutcomeUnknownError:
        return


def _explore(
    programs: Mapping[str, Program],
    validation: Validation,
    level: Level = Level.SERIALIZABLE,
    faults: dict[Fault, int] | None = None,
    reduce: bool = True,
) -> Exploration:
    world = World(
        name="transactions",
        summary="",
        actors=tuple(Actor(name, program) for name, program in programs.items()),
        resources={STORE: OptimisticStore({"x": 1, "y": 1}, validation), "history": Recorder()},
        properties=(serializable_property(versions_of=versions_of, level=level),),
        budgets={Fault.CRASH: 1, Fault.LOST_REPLY: 1} if faults is None else faults,
        observed=is_commit,
    )
    return explore(world, reduce=reduce, until=lambda found: bool(found.findings))


_INCREMENTS = {"ann": _increment, "bob": _increment}
_MOVES = {"ann": _move("x", "y"), "bob": _move("y", "x")}
_LEAVES = {"ann": _leave("x", "y"), "bob": _leave("y", "x")}
_AUDITED = {"ann": _move("x", "y"), "eve": _audit}


@pytest.mark.parametrize("programs", [_INCREMENTS, _MOVES, _LEAVES, _AUDITED], ids=["add", "bank", "skew", "audit"])
def test_all_reads_are_checked(programs: dict[str, Program]) -> None:
    found = _explore(programs, Validation.ALL)
    assert found.complete
    assert not found.findings
    assert found.faults[Fault.CRASH] and found.faults[Fault.LOST_REPLY], "the faults were there"


@pytest.mark.parametrize(
    ("programs", "validation", "name"),
    [
        (_INCREMENTS, Validation.NOTHING, "lost update"),
        (_MOVES, Validation.NOTHING, "lost update"),
        (_LEAVES, Validation.WRITTEN, "G2-item"),
        (_AUDITED, Validation.WRITTEN, "G-single"),
        ({"ann": _move_by_halves}, Validation.ALL, "missing write"),
    ],
)
@pytest.mark.parametrize("reduce", [True, False])
def test_reads_are_not_checked(programs: dict[str, Program], validation: Validation, name: str, reduce: bool) -> None:
    found = _explore(programs, validation, reduce=reduce)
    assert found.findings["T1"].broke.startswith(f"{name}: ")


@pytest.mark.parametrize("reduce", [True, False])
def test_halves_are_seen_before_the_whole_is_acknowledged(reduce: bool) -> None:
    """The writer is still running when it is caught: its second half may come, but too late."""
    found = _explore({"ann": _move_by_halves, "eve": _audit}, Validation.ALL, faults={}, reduce=reduce)
    words = found.findings["T1"].broke
    assert words.startswith("G-single: ")
    assert "T1 read y='start', and T2 overwrote y='start' with 'half'" in words


def test_write_skew_in_words() -> None:
    """The message is a proof: who read what another transaction overwrote."""
    found = _explore(_LEAVES, Validation.WRITTEN, faults={})
    assert found.findings["T1"].broke == (
        "G2-item: let T1 = ann: leave (read x='start', read y='start', wrote x='ann 1'); "
        "T2 = bob: leave (read y='start', read x='start', wrote y='bob 1'). "
        "Then T1 < T2, because T1 read y='start', and T2 overwrote y='start' with 'bob 1'; "
        "however, T2 < T1, because T2 read x='start', and T1 overwrote x='start' with 'ann 1': a contradiction"
    )


def test_snapshot_isolation_allows_write_skew_only() -> None:
    skew = _explore(_LEAVES, Validation.WRITTEN, Level.SNAPSHOT_ISOLATION)
    assert skew.complete and not skew.findings
    assert _explore(_AUDITED, Validation.WRITTEN, Level.SNAPSHOT_ISOLATION).findings
    assert _explore(_INCREMENTS, Validation.NOTHING, Level.SNAPSHOT_ISOLATION).findings
