"""The same choices give the same history; choices that do not fit are refused, or skipped if requested."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import replay_choices
from holdfast_checker.kernel.world import DIES, Choice
from tests.checker.kernel.toys import cells, ends_with, racing_world, toy_world

RACE = [Choice("first"), Choice("second"), Choice("first"), Choice("second")]


def test_each_state_and_step_is_there() -> None:
    found = replay_choices(racing_world(), RACE)
    assert [cells(found.space.view(state)).get("count", 0) for state in found.states] == [0, 0, 0, 1, 1]
    assert [step.call.operation for step in found.steps] == ["get", "get", "put", "put"]
    assert found.choices == tuple(RACE)
    assert found.broken == (("count", "the cells hold {'count': 1}"),)


def test_nothing_is_broken_before_the_end() -> None:
    assert replay_choices(racing_world(), RACE[:3]).broken == ()
    assert replay_choices(racing_world(), []).broken == ()


@pytest.mark.parametrize(
    "choice", [Choice("first", "fails"), Choice("first", DIES), Choice("third"), Choice("first", "sneezes")]
)
def test_a_choice_that_does_not_fit_is_refused_or_passed_over(choice: Choice) -> None:
    world = racing_world()
    with pytest.raises(InvalidRequestError, match="does not fit") as caught:
        replay_choices(world, [RACE[0], choice, *RACE[1:]])
    assert caught.value.variables["step"] == 2
    assert replay_choices(world, [RACE[0], choice, *RACE[1:]], lenient=True).choices == tuple(RACE)


def test_nobody_goes_on_after_the_end() -> None:
    with pytest.raises(InvalidRequestError):
        replay_choices(racing_world(), [*RACE, Choice("first")])


def test_a_budget_is_not_exceeded() -> None:
    world = racing_world({Fault.FAILURE: 1})
    replay_choices(world, [Choice("first", "fails")])
    with pytest.raises(InvalidRequestError):
        replay_choices(world, [Choice("first", "fails"), Choice("second", "fails")])


def test_it_is_over_when_only_faults_are_left() -> None:
    """A fault need not happen: a wait that only a fault would end is an end."""
    waits = toy_world(
        {"waits": lambda handle: handle.break_("glass")},
        ends_with("broken glass", lambda now: now.get("glass") == 1),
        budgets={Fault.PARTITION: 1},
    )
    assert [name for name, _broke in replay_choices(waits, []).broken] == ["broken glass"]
    assert replay_choices(waits, [Choice("waits", "breaks")]).broken == ()
