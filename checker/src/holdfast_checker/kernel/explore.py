"""Explore all executions of a small world exhaustively, up to equivalence (explicit-state model checking).

The search is breadth-first, so that counterexamples are as short as possible. Two techniques keep it small:

- *State hashing*: a state that was reached before is not explored again.
- *Partial-order reduction* (ample sets): if the next calls of some actors commute with every call that any other actor
  can still make, then only those actors move in this state, and the others wait.

Calls that change what properties look at never commute with each other. Which calls an actor can still make is
learned while exploring: they are the calls below the actor's present place in the tree of its histories. What is
learned later may invalidate an earlier reduction. So at the end, every reduced state is checked again. States whose
reduction no longer holds are expanded in full, and this repeats until all reductions hold. Then every full history
can be turned into an explored one by swapping neighboring steps that commute. All faults of a kind share one budget,
but a swap never exceeds it, because the history as a whole is within the budget.

Source: Clarke, Grumberg, Peled, "Model Checking", chapter 10 (ample sets, which must meet the conditions C0 to C3; C2
is replaced by treating all calls that properties observe as dependent on each other; C3 holds because states never
repeat, since every step lengthens a history).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.runtime import Clock, SystemClock
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.state_space import State, StateSpace, Step
from holdfast_checker.kernel.world import Choice, World

_LOOK_EVERY = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of an exhaustive exploration or of random executions: time, states, histories; None means no limit.

    Attributes:
        states: number of states in an exploration.
        histories: number of random histories in a walk.
    """

    seconds: float | None = None
    states: int | None = None
    histories: int | None = None

    def is_spent(self, *, seconds: float, states: int = 0, histories: int = 0) -> bool:
        """Check whether the budget is used up: more seconds or states than allowed, or the full number of histories."""
        return (
            (self.seconds is not None and seconds > self.seconds)
            or (self.states is not None and states > self.states)
            or (self.histories is not None and histories >= self.histories)
        )


@dataclass(slots=True, kw_only=True)
class Exploration:
    """The result of exploring a world: statistics, and a counterexample for each violated property.

    Attributes:
        complete: whether every history (execution) was explored, or an equivalent one.
        ends: number of states in which no actor can move anymore without a fault.
        reduced: number of states in which only some of the actors moved.
        faults: how often each fault happened, over all steps.
        findings: the first counterexample of each violated property, by the property's name.
    """

    world: str
    complete: bool = False
    states: int = 0
    steps: int = 0
    ends: int = 0
    reduced: int = 0
    seconds: float = 0.0
    faults: dict[Fault, int] = field(default_factory=dict)
    findings: dict[str, Counterexample] = field(default_factory=dict)


class _StateSearch:
    def __init__(self, world: World, reduce: bool) -> None:
        self.space = StateSpace(world)
        self.reduce = reduce
        self.states: list[State] = []
        self.index: dict[State, int] = {}
        self.parents = array("q")
        self.choices: list[tuple[int, str]] = []
        self.shortcuts: dict[int, int] = {}
        self.queue: deque[int] = deque()
        self.result = Exploration(world=world.name)

    def add(self, state: State, parent: int, choice: tuple[int, str]) -> None:
        number = self.index.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.parents.append(parent)
            self.choices.append(choice)
            self.queue.append(number)

    def expand(self, number: int, *, full: bool = False) -> None:
        """Take the steps from a state: those of its ample set if it has one and `full` is false, else all steps."""
        state, space = self.states[number], self.space
        if self.reduce and not full and (group := space.ample_set(state)):
            self.shortcuts[number] = group
            actors = range(len(space.world.actors))
            self.take(number, [step for one in actors if group >> one & 1 for step in space.steps_of_actor(state, one)])
            return
        steps = list(space.steps(state))
        self.take(number, steps)
        if all(step.fault is not None for step in steps):
            self.result.ends += 1
            for name, broke in space.violations_at_end(state):
                self.find(name, broke, number, None)

    def take(self, number: int, steps: Sequence[Step]) -> None:
        state, faults = self.states[number], self.result.faults
        for step in steps:
            self.result.steps += 1
            if step.fault is not None:
                faults[step.fault] = faults.get(step.fault, 0) + 1
            self.add(step.target, number, (step.actor, step.label))
            for name, broke in self.space.violations_of_step(state, step):
                self.find(name, broke, number, step)

    def find(self, name: str, broke: str, number: int, step: Step | None) -> None:
        if name in self.result.findings:
            return
        path = [] if step is None else [(step.actor, step.label)]
        while self.parents[number] >= 0:
            path.append(self.choices[number])
            number = self.parents[number]
        actors = self.space.world.actors
        choices = tuple(Choice(actors[actor].name, label) for actor, label in reversed(path))
        self.result.findings[name] = Counterexample(self.result.world, name, broke, choices)

    def list_wrongly_reduced_states(self) -> list[int]:
        """Return the states whose reduction to an ample set has become invalid, given the calls that are now known."""
        taken = self.shortcuts.items()
        return [state for state, group in taken if not self.space.is_ample_set(self.states[state], group)]


def explore_world(
    world: World,
    *,
    budget: Budget = Budget(),
    reduce: bool = True,
    until: Callable[[Exploration], bool] = lambda found: False,
    progress: Callable[[Exploration], None] = lambda found: None,
    clock: Clock | None = None,
) -> Exploration:
    """Explore all executions of a small world, up to equivalence, and find violations of its properties.

    Guarantee: if `Exploration.complete` is set, every state that is reachable within the world's fault budgets was
    judged, or an equivalent one; if not, only some states were. The same world gives the same result, except for the
    time, and for how much was explored if a limit of seconds ends the exploration.

    Args:
        reduce: False to explore all interleavings, including equivalent ones, in order to test the reduction.
        until: stops the exploration by returning true.
        progress: called every few hundred states, to report progress.
    """
    clock = clock or SystemClock()
    started_s = clock.elapsed_s()
    search = _StateSearch(world, reduce)
    search.add(search.space.initial_state(), -1, (-1, ""))
    result = search.result
    looked = 0
    stopped = False
    while not stopped:
        while search.queue:
            search.expand(search.queue.popleft())
            looked += 1
            if looked % _LOOK_EVERY == 0 or result.findings:
                result.states, result.seconds = len(search.states), clock.elapsed_s() - started_s
                progress(result)
                stopped = until(result) or budget.is_spent(seconds=result.seconds, states=result.states)
                if stopped:
                    break
        else:
            again = search.list_wrongly_reduced_states()
            if not again:
                result.complete = True
                break
            for number in again:
                del search.shortcuts[number]
                search.expand(number, full=True)
    result.states, result.reduced = len(search.states), len(search.shortcuts)
    result.seconds = clock.elapsed_s() - started_s
    return result
