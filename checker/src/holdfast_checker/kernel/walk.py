"""Run random executions (*histories*) of a large world, each with its own seed, schedule and fault rates.

Two things are drawn for a whole history before it starts, so that histories differ more than their steps do:

- *The schedule*: either any actor may move at each step, or actors have priorities. In the second case, the actor that
  moves gets the lowest priority at a few random points: a few are enough to find most concurrency bugs, with a known
  probability.
- *The weather*: which faults may happen, and how often. A history with all faults all the time makes no progress; one
  with only crashes gets far.

Sources: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", section 2
(priorities and change points); Groce et al., "Swarm Testing", section 1 (features on and off).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.runtime import Clock, SeededRandom, SystemClock
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.kernel.state_space import State, StateSpace, Step
from holdfast_checker.kernel.world import Choice, World

_PLACES_LIMIT = 60_000
"""Number of places after which everything learned about the world is dropped; so many take about 150 MB."""

_ANYBODY = 1 / 3
_CHANGES = (1, 2, 3, 5)
_GAPS = (8, 32, 128)
_FAULT_IS_ON = 3 / 4
_RATES = (1 / 4, 1 / 12, 1 / 40, 1 / 120)
_LATE_FAULT = 1 / 2


@dataclass(slots=True, kw_only=True)
class WalkResults:
    """The accumulated result of random executions (histories) of one or several worlds.

    Attributes:
        next: number of the history to continue with.
        worlds, histories: number of worlds, and of histories in all of them.
        steps: number of steps in all histories together.
        ends: different final states of the resources, as hashes.
        depth: number of steps in the longest history.
        faults: how often each fault happened.
        findings: the first counterexample of each violated property, not minimized.
        numbers: the history number of each finding, by property name.
    """

    seed: int
    next: int = 0
    worlds: int = 0
    histories: int = 0
    steps: int = 0
    depth: int = 0
    seconds: float = 0.0
    ends: set[int] = field(default_factory=set)
    faults: dict[Fault, int] = field(default_factory=dict)
    findings: dict[str, Counterexample] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


class _Schedule:
    """The priorities that decide which actor takes the next step of a random history."""

    def __init__(self, chance: SeededRandom, actors: int) -> None:
        self._chance = chance
        self._order = chance.shuffled(range(actors))
        self._anybody = chance.happens(_ANYBODY)
        self._changes = set[int]()
        gap, at = chance.pick(_GAPS), 0
        for _ in range(chance.pick(_CHANGES)):
            at += 1 + chance.pick(range(gap))
            self._changes.add(at)

    def order(self) -> list[int]:
        if self._anybody:
            self._order = self._chance.shuffled(self._order)
        return self._order

    def record_step(self, actor: int, step: int) -> None:
        """Record that an actor took step number `step`; after some steps, the actor gets the lowest priority."""
        if step in self._changes:
            self._order = [*(one for one in self._order if one != actor), actor]


class _RandomHistoryWalker:
    """A random history that is being drawn. What `space` has learned saves time, but does not change the history."""

    def __init__(self, space: StateSpace, seed: int) -> None:
        self.space = space
        self.seed = seed
        self._chance = SeededRandom(seed)
        self._schedule = _Schedule(self._chance, len(space.world.actors))
        self._rates = {fault: self._chance.pick(_RATES) for fault in space.faults if self._chance.happens(_FAULT_IS_ON)}
        self.states = [space.initial_state()]
        self.steps: list[Step] = []

    def take_next_step(self) -> bool:
        """Take one step; return False if no actor can move anymore."""
        state = self.states[-1]
        now = {fault for fault, rate in self._rates.items() if self._chance.happens(rate)}
        return self._take_step((self._draw_fault(state, now) if now else None) or self._find_faultless_step(state))

    def inject_late_fault(self) -> bool:
        """Let a fault happen, half of the time, once no actor can move anymore; return whether one happened."""
        late = self._chance.happens(_LATE_FAULT)
        return self._take_step(self._draw_fault(self.states[-1], set(Fault)) if late else None)

    def _take_step(self, step: Step | None) -> bool:
        if step is None:
            return False
        self.steps.append(step)
        self.states.append(step.target)
        self._schedule.record_step(step.actor, len(self.steps))
        return True

    def _draw_fault(self, state: State, kinds: set[Fault]) -> Step | None:
        """Draw a fault, whichever actor's turn it is: faults can strike anywhere.

        Every actor is hit equally often, even if some can be hit in more ways.
        """
        every = (self.space.steps_of_actor(state, actor) for actor in range(len(self.space.world.actors)))
        found = [ways for steps in every if (ways := [step for step in steps if step.fault in kinds])]
        return self._chance.pick(self._chance.pick(found)) if found else None

    def _find_faultless_step(self, state: State) -> Step | None:
        for actor in self._schedule.order():
            ways = [step for step in self.space.steps_of_actor(state, actor) if step.fault is None]
            if ways:
                return self._chance.pick(ways)
        return None

    @property
    def choices(self) -> tuple[Choice, ...]:
        actors = self.space.world.actors
        return tuple(Choice(actors[step.actor].name, step.label) for step in self.steps)


def _draw_history(space: StateSpace, walks: WalkResults) -> None:
    """Walk through the next history."""
    walker = _RandomHistoryWalker(space, SeededRandom.derive(walks.seed, walks.next))

    def note_violations(broken: tuple[tuple[str, str], ...]) -> None:
        for name, broke in broken:
            if name not in walks.findings:
                walks.findings[name] = Counterexample(space.world.name, name, broke, walker.choices, walker.seed)
                walks.numbers[name] = walks.next

    while True:
        if not walker.take_next_step():
            note_violations(space.violations_at_end(walker.states[-1]))
            if not walker.inject_late_fault():
                break
        step = walker.steps[-1]
        if step.fault is not None:
            walks.faults[step.fault] = walks.faults.get(step.fault, 0) + 1
        note_violations(space.violations_of_step(walker.states[-2], step))
    walks.ends.add(hash(space.compute_resource_state_keys(walker.states[-1])))
    walks.next += 1
    walks.histories += 1
    walks.steps += len(walker.steps)
    walks.depth = max(walks.depth, len(walker.steps))


def run_random_histories(
    world: World,
    walks: WalkResults,
    *,
    budget: Budget = Budget(),
    until: Callable[[WalkResults], bool] = lambda found: False,
    clock: Clock | None = None,
) -> WalkResults:
    """Run random executions of a world, and add their results to `walks`, until the budget or `until` ends this.

    Guarantee: history number n depends only on the world, `walks.seed` and n: two walks that each take half of the
    numbers see the same histories as one walk that takes all. Memory does not grow with time, except for 100 bytes for
    each different end.

    Args:
        walks: the first history has the number `walks.next`.
        budget: limits the seconds and the histories of `walks` in total. It, or `until`, is required.
        until: called after each history; stops the walk by returning true.
    """
    clock = clock or SystemClock()
    started_s = clock.elapsed_s() - walks.seconds
    space = StateSpace(world)
    walks.worlds += 1
    while True:
        if len(space.processes.places) > _PLACES_LIMIT:
            space = StateSpace(world)
        _draw_history(space, walks)
        walks.seconds = clock.elapsed_s() - started_s
        if until(walks) or budget.is_spent(seconds=walks.seconds, histories=walks.histories):
            return walks
