"""Histories as values, and what a recorder makes of its calls."""

from __future__ import annotations

import pytest

from holdfast.errors import (
    DestinationExistsError,
    FencedError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast_checker.histories.history import (
    HISTORY,
    History,
    Operation,
    Outcome,
    Recorder,
    record_operation,
    recorded_operations,
)
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.world import Actor, Port, Property, View, World


def _note(port: Port, word: object) -> None:
    port.call(Call(HISTORY, "note", (port.name, word)))


def test_what_overlaps_has_no_order() -> None:
    """Consecutive invocations have no order, nor do consecutive ends: histories that differ only in these are equal."""
    one = History().invoke("ann", "f").invoke("bob", "g").end("ann", Outcome.OK, 1).end("bob", Outcome.OK, 2)
    two = History().invoke("bob", "g").invoke("ann", "f").end("bob", Outcome.OK, 2).end("ann", Outcome.OK, 1)
    assert one == two
    ann, bob = one.operations
    assert not ann.precedes(bob) and not bob.precedes(ann)


def test_what_ended_before_precedes() -> None:
    history = History().invoke("ann", "f").end("ann", Outcome.OK).invoke("bob", "g").invoke("ann", "h")
    first, *others = history.operations
    assert [first.precedes(other) for other in others] == [True, True]
    assert [other.precedes(first) for other in others] == [False, False]


def test_an_unknown_outcome_stays_open() -> None:
    history = History().invoke("ann", "f").invoke("ann", "g").add_notes("ann", 1).end("ann", Outcome.FAILED)
    assert history.operations == (
        Operation(who="ann", name="f"),
        Operation(who="ann", name="g", ended=1, outcome=Outcome.FAILED, notes=(1,)),
    )
    assert [str(one) for one in history.operations] == ["ann: f() -> unknown", "ann: g() -> failed"]


@pytest.mark.parametrize(
    ("error", "outcome", "value"),
    [
        (None, Outcome.OK, 7),
        (NotFoundError("no"), Outcome.FAILED, None),
        (DestinationExistsError("one is there"), Outcome.OK, "DestinationExistsError"),
        (UnavailableError("no"), Outcome.FAILED, None),
        (OutcomeUnknownError("perhaps"), Outcome.UNKNOWN, None),
        (FencedError("stop"), Outcome.UNKNOWN, None),
    ],
)
def test_how_an_operation_ends(error: HoldfastError | None, outcome: Outcome, value: object) -> None:
    def act(port: Port) -> int:
        _note(port, "on the way")
        if error is not None:
            raise error
        return 7

    def run(port: Port) -> None:
        try:
            record_operation(port, "f", (1,), lambda: act(port), answers=(DestinationExistsError,))
        except HoldfastError:
            return

    ended = 1 if outcome is not Outcome.UNKNOWN else None
    wanted = Operation(who="ann", name="f", args=(1,), ended=ended, outcome=outcome, value=value, notes=("on the way",))
    assert _ends(Actor("ann", run)) == {(wanted,)}


def test_an_actor_dies_on_the_way() -> None:
    def run(port: Port) -> None:
        record_operation(port, "f", (), lambda: _note(port, 1))

    open_ = Operation(who="ann", name="f")
    assert _ends(Actor("ann", run), {Fault.CRASH: 1}) == {
        (open_,),
        (Operation(who="ann", name="f", notes=(1,)),),
        (Operation(who="ann", name="f", notes=(1,), ended=1, outcome=Outcome.OK),),
    }


def test_every_order_is_gone_through() -> None:
    """The reduction leaves out no history with a different value."""

    def run(port: Port) -> None:
        for name in ("f", "g"):
            record_operation(port, name, (), lambda: None)

    def run_once(port: Port) -> None:
        record_operation(port, "f", (), lambda: None)

    actors = (Actor("ann", run), Actor("bob", run), Actor("cy", run_once))
    assert _all_ends(actors, reduce=True) == _all_ends(actors, reduce=False)


def _ends(actor: Actor, budgets: dict[Fault, int] | None = None) -> set[tuple[Operation, ...]]:
    return _all_ends((actor,), budgets)


def _all_ends(
    actors: tuple[Actor, ...], budgets: dict[Fault, int] | None = None, *, reduce: bool = True
) -> set[tuple[Operation, ...]]:
    """Return the histories of a world at all its ends."""
    found: set[tuple[Operation, ...]] = set()

    def end(view: View) -> None:
        found.add(recorded_operations(view))

    world = World(
        name="history",
        summary="",
        actors=actors,
        resources={"history": Recorder()},
        properties=(Property(name="ends", title="", meaning="", end=end),),
        budgets=budgets or {},
        observed=lambda call: False,
    )
    assert explore_world(world, reduce=reduce).complete
    return found
