"""A crash is not an exception: nothing in a dead process runs, not even its cleanup code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.counterexample import replay_choices
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.state_space import State, StateSpace
from holdfast_checker.kernel.world import DIES, Choice, Port, ProcessStopped, World
from tests.checker.kernel.toys import CELLS, Handle, cells, toy_world


def _work(handle: Handle) -> None:
    handle.put("first", 1)
    handle.put("second", 1)


def _finally(handle: Handle) -> None:
    try:
        _work(handle)
    finally:
        handle.put("cleaned", 1)


def _except_exception(handle: Handle) -> None:
    try:
        _work(handle)
    except Exception:  # noqa: BLE001  # what is tested
        handle.put("cleaned", 1)


def _except_everything(handle: Handle) -> None:
    for _ in range(3):
        try:
            _work(handle)
        except BaseException:  # noqa: BLE001  # what is tested
            handle.put("cleaned", 1)
        else:
            return


def _suppress(handle: Handle) -> None:
    with contextlib.suppress(BaseException):
        _work(handle)
    handle.put("cleaned", 1)


class _Cleaning:
    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __enter__(self) -> None:
        self.handle.put("entered", 1)

    def __exit__(self, *error: object) -> bool:
        self.handle.put("cleaned", 1)
        return True


def _with(handle: Handle) -> None:
    with _Cleaning(handle):
        _work(handle)


def _pages(handle: Handle) -> Iterator[int]:
    try:
        for number in range(3):
            yield handle.get(f"page {number}")
    finally:
        handle.put("cleaned", 1)


def _generator(handle: Handle) -> None:
    for _ in _pages(handle):
        _work(handle)


def _exit_stack(handle: Handle) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(handle.put, "cleaned", 1)
        _work(handle)


_each = pytest.mark.parametrize(
    "program", [_finally, _except_exception, _except_everything, _suppress, _with, _generator, _exit_stack]
)


def _world(program: Callable[[Handle], object]) -> World:
    return toy_world({"mortal": program, "other": lambda handle: handle.put("other", 1)}, budgets={Fault.CRASH: 1})


def _histories(space: StateSpace, state: State, choices: tuple[Choice, ...] = ()) -> Iterator[tuple[Choice, ...]]:
    steps = list(space.steps(state))
    for step in steps:
        actor = space.world.actors[step.actor].name
        yield from _histories(space, step.target, (*choices, Choice(actor, step.label)))
    if not steps:
        yield choices


@_each
def test_the_dead_do_nothing(program: Callable[[Handle], object]) -> None:
    """After its death an actor takes no step, and the store keeps its contents."""
    world = _world(program)
    space = StateSpace(world)
    deaths = 0
    for choices in _histories(space, space.initial_state()):
        names = [choice.actor for choice in choices]
        for at, choice in enumerate(choices):
            if choice == Choice("mortal", DIES):
                deaths += 1
                assert "mortal" not in names[at + 1 :]
                found = replay_choices(world, choices)
                then, end = (cells(found.space.view(found.states[number])) for number in (at + 1, -1))
                then.pop("other", None)
                end.pop("other", None)
                assert then == end
    assert deaths >= 3, "before, between and after the steps of the other one"


@_each
def test_cleaning_up_is_a_call_like_others(program: Callable[[Handle], object]) -> None:
    """A live process does clean up, so the test above is meaningful."""
    found = replay_choices(toy_world({"mortal": program}), [Choice("mortal")] * 12, lenient=True)
    holds = cells(found.space.view(found.states[-1]))
    assert (holds.get("cleaned") == 1) is (program not in (_except_exception, _except_everything))


def test_a_handle_of_the_dead_stays_dead() -> None:
    """A process cannot act through a handle of a dead process."""
    kept: list[Handle] = []

    def keep(handle: Handle) -> None:
        kept.append(handle)
        _work(handle)

    explore_world(_world(keep))
    for handle in kept:
        with pytest.raises(ProcessStopped):
            handle.put("late", 1)


def test_a_process_that_has_ended_makes_no_calls() -> None:
    """Cleanup by the garbage collector, whenever it runs, changes nothing."""
    kept: list[Handle] = []
    world = toy_world({"only": lambda handle: kept.append(handle)})
    explore_world(world)
    with pytest.raises(ProcessStopped):
        kept[0].put("late", 1)


def test_a_process_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(handle: Handle) -> None:
        while True:
            handle.get("cell")

    monkeypatch.setattr("holdfast_checker.kernel.process_tree._CALLS_LIMIT", 20)
    found = explore_world(toy_world({"spinner": spin}))
    assert found.complete
    assert "more than 20 calls" in found.findings["code"].broke
    assert len(found.findings["code"].choices) == 20


def test_a_stopped_port_stays_stopped() -> None:
    port = Port("actor", 0, lambda number, call: None)
    for _ in range(2):
        with pytest.raises(ProcessStopped):
            port.call(Call(CELLS, "get", ("cell",)))
