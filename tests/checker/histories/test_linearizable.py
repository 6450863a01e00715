"""Linearizability: compared with brute force over all orders, and in worlds with correct and incorrect registers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, permutations
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import OutcomeUnknownError
from holdfast_checker.histories.history import (
    History,
    Operation,
    Outcome,
    Recorder,
    record_operation,
    recorded_operations,
)
from holdfast_checker.histories.linearizable import Linearizability, Model, Verdict, judge_linearizable
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.explore import Exploration, explore_world
from holdfast_checker.kernel.world import Actor, Port, Property, View, World


def _apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    number = cast("int", state)
    if operation.name == "read":
        return number, number
    if operation.name == "add":
        return number + 1, number
    return operation.args[0], None


REGISTER = Model(initial=0, apply=_apply)


# --- against brute force ----------------------------------------------------------------------------------------------
@st.composite
def _histories(draw: st.DrawFn) -> tuple[Operation, ...]:
    """Draw three actors on a register with at most five operations."""
    history = History()
    open_: dict[str, str] = {}
    count = 0
    for _ in range(draw(st.integers(1, 12))):
        who = draw(st.sampled_from("abc"))
        if who in open_:
            outcome = draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN]))
            if outcome is not Outcome.UNKNOWN:
                value = None if open_[who] == "write" else draw(st.integers(0, 2))
                history = history.end(who, outcome, value if outcome is Outcome.OK else None)
            del open_[who]
        elif count < 5:
            count += 1
            open_[who] = draw(st.sampled_from(["read", "write", "add"]))
            value = draw(st.integers(0, 2))
            history = history.invoke(who, open_[who], (value,) if open_[who] == "write" else ())
    return history.operations


def _orders(operations: Sequence[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Return all orders within real time, with any of the operations of unknown outcome."""
    sure = [one for one in operations if one.outcome is Outcome.OK]
    maybe = [one for one in operations if one.outcome is Outcome.UNKNOWN]
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            for order in permutations((*sure, *some)):
                if not any(later.precedes(one) for n, one in enumerate(order) for later in order[n + 1 :]):
                    yield order


def _explains(order: Sequence[Operation], free: Operation | None = None) -> bool:
    state: Hashable = 0
    for one in order:
        state, answer = _apply(state, one)
        if one.outcome is Outcome.OK and one is not free and answer != one.value:
            return False
    return True


@given(_histories())
def test_as_brute_force(operations: tuple[Operation, ...]) -> None:
    has_order = any(map(_explains, _orders(operations)))
    assert (judge_linearizable(operations, REGISTER).answer is Linearizability.YES) is has_order


def test_what_could_have_been_answered() -> None:
    history = History().invoke("ann", "write", (1,)).invoke("bob", "write", (2,))
    history = history.end("ann", Outcome.OK).invoke("cy", "read").end("cy", Outcome.OK, 0)
    assert judge_linearizable(history.operations, REGISTER) == Verdict(
        Linearizability.NO,
        "cy: read() -> 0 is impossible: at that time it could have answered 1 or 2 (explained: ann: write(1) -> None)",
    )


def test_what_could_have_been_answered_after_an_addition() -> None:
    history = History().invoke("ann", "add").end("ann", Outcome.OK, 0).invoke("bob", "add")
    history = history.invoke("cy", "read").end("cy", Outcome.OK, 0)
    assert judge_linearizable(history.operations, REGISTER) == Verdict(
        Linearizability.NO,
        "cy: read() -> 0 is impossible: at that time it could have answered 1 or 2 (explained: ann: add() -> 0)",
    )


def test_the_first_that_cannot_be_placed_is_named() -> None:
    """Later operations may be wrong as well; operations that were open then may still end."""
    history = History().invoke("ann", "add").invoke("bob", "read").end("bob", Outcome.OK, 1)
    history = history.invoke("bob", "read").end("bob", Outcome.OK, 0)
    history = history.invoke("bob", "read").end("bob", Outcome.OK, 7).end("ann", Outcome.OK, 0)
    words = judge_linearizable(history.operations, REGISTER).words
    assert words.startswith("bob: read() -> 0 is impossible: at that time it could have answered 1 ")


def test_nobody_knows_where_it_would_take_too_long() -> None:
    """Ten concurrent writes and ten additions, and a read that only eleven of them would explain."""
    history = History()
    for client in range(20):
        asked = (100 * client,) if client % 2 else ()
        history = history.invoke(f"client {client:02}", "write" if asked else "add", asked)
    history = history.invoke("reader", "read").end("reader", Outcome.OK, 311)
    verdict = judge_linearizable(history.operations, REGISTER, limit=2_000)
    assert verdict.answer is Linearizability.UNKNOWN
    assert verdict.words == (
        "unknown whether 21 operations have an order: so many overlap that the search takes too long"
    )


# --- worlds -----------------------------------------------------------------------------------------------------------
class _Register:
    """A register with a copy: reads go to the register or, if `stale`, to the copy."""

    def __init__(self, stale: bool) -> None:
        self._stale = stale

    def initial_state(self) -> tuple[int, int]:
        return 0, 0

    def state_key(self, state: object) -> Hashable:
        return cast("tuple[int, int]", state)

    def find_unblockers(self, state: object, call: Call) -> None:
        return None

    def state_after_death(self, state: object, actor: str) -> object:
        return state

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access("register", "", writes=call.operation != "read")})

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        value, copy = cast("tuple[int, int]", state)
        if call.operation == "copy":
            return [Alternative(state=(value, value))]
        if call.operation == "read":
            return [Alternative(state=state, reply=Reply(copy if self._stale else value))]
        after = (cast("int", call.args[0]), copy)
        lost = Reply(error=OutcomeUnknownError("the reply was lost: read before repeating"))
        return [
            Alternative(state=after),
            Alternative(state=after, reply=lost, label="reply lost", fault=Fault.LOST_REPLY),
        ]


def _write(value: int) -> Actor:
    def run(port: Port) -> None:
        try:
            record_operation(port, "write", (value,), lambda: port.call(Call("register", "write", (value,))))
        except OutcomeUnknownError:
            return

    return Actor(f"writer {value}", run)


def _read(port: Port) -> None:
    for _ in range(2):
        record_operation(port, "read", (), lambda: port.call(Call("register", "read")))


def _copy(port: Port) -> None:
    port.call(Call("register", "copy"))


def _judge(before: View, after: View, actor: str) -> str | None:
    return judge_linearizable(recorded_operations(after), REGISTER).words or None


def _explore(stale: bool, reduce: bool = True) -> Exploration:
    world = World(
        name="register",
        summary="",
        actors=(_write(1), _write(2), Actor("reader", _read), Actor("copier", _copy)),
        resources={"register": _Register(stale), "history": Recorder()},
        properties=(Property(name="N4", title="linearizable", meaning="", step=_judge),),
        budgets={Fault.CRASH: 1, Fault.LOST_REPLY: 1},
        observed=lambda call: False,
    )
    return explore_world(world, reduce=reduce)


@pytest.mark.parametrize("reduce", [True, False])
def test_a_register(reduce: bool) -> None:
    found = _explore(stale=False, reduce=reduce)
    assert found.complete
    assert not found.findings


@pytest.mark.parametrize("reduce", [True, False])
def test_a_register_with_stale_reads(reduce: bool) -> None:
    found = _explore(stale=True, reduce=reduce)
    assert found.findings["N4"].broke == (
        "reader: read() -> 0 is impossible: at that time it could have answered 1 "
        "(explained: writer 1: write(1) -> None)"
    )
