"""Walk through random histories of a large world, each drawn from its own seed.

Two things are drawn for a whole history before it starts, so that histories differ more than their steps do:

- *The schedule*: either any actor may move at each step, or actors have priorities. In the second case, the actor that
moves gets the lowest priority at a few random points: a few are enough to find most concurrency bugs, with a known
probability. - *The weather*: which faults may happen, and how often. A history with all faults all the time makes no
progress; one
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
class Walks:
    """The result of random walks.

    Attributes:
        next: number of the history to continue with: ``walk(world, seed=seed, first=next)``.
        histories: number of histories.
        cut: number of histories that were cut off at `Budget.depth`.
        steps: number of steps in all histories together.
        ends: number of different final states of the resources.
        depth: number of steps in the longest history.
        faults: how often each fault happened.
        findings: the first history that broke each property, as it was drawn.
    """

    world: str
    seed: int
    next: int
    histories: int = 0
    cut: int = 0
    steps: int = 0
    ends: int = 0
    depth: int = 0
    seconds: float = 0.0
    faults: dict[Fault, int] = field(default_factory=dict)
    findings: dict[str, Counterexample] = field(default_factory=dict)


class _Schedule:
    """The order in which actors may move."""

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

    def went(self, actor: int, step: int) -> None:
        """Learn that an actor took step number `step` of the history, after which priorities may change."""
        if step in self._changes:
            self._order = [*(one for one in self._order if one != actor), actor]


class _Walker:
    """A random history that is being drawn. What `space` has learned saves time, but does not change the history."""

    def __init__(self, space: StateSpace, seed: int) -> None:
        self.space = space
        self.seed = seed
        self._chance = SeededRandom(seed)
        self._schedule = _Schedule(self._chance, len(space.world.actors))
        self._rates = {fault: self._chance.pick(_RATES) for fault in space.faults if self._chance.happens(_FAULT_IS_ON)}
        self.states = [space.initial()]
        self.steps: list[Step] = []

    def go_on(self) -> bool:
        """Take one step; return False if no actor can move anymore."""
        state = self.states[-1]
        now = {fault for fault, rate in self._rates.items() if self._chance.happens(rate)}
        return self._take((self._fault(state, now) if now else None) or self._ordinary(state))

    def go_wrong(self) -> bool:
        """Let a fault happen, half of the time, once no actor can move anymore; return whether one happened."""
        late = self._chance.happens(_LATE_FAULT)
        return self._take(self._fault(self.states[-1], set(Fault)) if late else None)

    def _take(self, step: Step | None) -> bool:
        if step is None:
            return False
        self.steps.append(step)
        self.states.append(step.target)
        self._schedule.went(step.actor, len(self.steps))
        return True

    def _fault(self, state: State, kinds: set[Fault]) -> Step | None:
        """Draw a fault, whichever actor's turn it is: faults can strike anywhere.

        Every actor is hit equally often, even if some can be hit in more ways.
        """
        found = [
            ways
            for actor in range(len(self.space.world.actors))
            if (ways := [step for step in self.space.steps_of(state, actor) if step.fault in kinds])
        ]
        return self._chance.pick(self._chance.pick(found)) if found else None

    def _ordinary(self, state: State) -> Step | None:
        for actor in self._schedule.order():
            ways = [step for step in self.space.steps_of(state, actor) if step.fault is None]
            if ways:
                return self._chance.pick(ways)
        return None

    @property
    def choices(self) -> tuple[Choice, ...]:
        actors = self.space.world.actors
        return tuple(Choice(actors[step.actor].name, step.label) for step in self.steps)


class _Walk:
    def __init__(self, world: World, seed: int, first: int) -> None:
        self.space = StateSpace(world)
        self.result = Walks(world=world.name, seed=seed, next=first)
        self._ends = set[int]()

    def go(self, depth: int | None) -> None:
        """Walk through the next history."""
        result = self.result
        if len(self.space.processes.places) > _PLACES_LIMIT:
            self.space = StateSpace(self.space.world)
        walker = _Walker(self.space, SeededRandom.derive(result.seed, result.next))
        ended = False
        while not ended and (depth is None or len(walker.steps) < depth):
            if not walker.go_on():
                self._note(walker, self.space.judge_end(walker.states[-1]))
                ended = not walker.go_wrong()
            if not ended:
                self._judge(walker)
        if ended:
            self._ends.add(hash(self.space.resource_keys(walker.states[-1])))
            result.ends = len(self._ends)
        result.cut += not ended
        result.next += 1
        result.histories += 1
        result.steps += len(walker.steps)
        result.depth = max(result.depth, len(walker.steps))

    def _judge(self, walker: _Walker) -> None:
        step = walker.steps[-1]
        if step.fault is not None:
            self.result.faults[step.fault] = self.result.faults.get(step.fault, 0) + 1
        self._note(walker, self.space.judge(walker.states[-2], step))

    def _note(self, walker: _Walker, broken: tuple[tuple[str, str], ...]) -> None:
        for name, broke in broken:
            if name not in self.result.findings:
                found = Counterexample(self.result.world, name, broke, walker.choices, walker.seed)
                self.result.findings[name] = found


def walk(
    world: World,
    *,
    seed: int,
    first: int = 0,
    budget: Budget = Budget(),
    until: Callable[[Walks], bool] = lambda found: False,
    progress: Callable[[Walks], None] = lambda found: None,
    clock: Clock | None = None,
) -> Walks:
    """Walk through random histories of a world until a budget or `until` ends the walk.

    Guarantee: history number n depends only on the world, `seed` and n: two walks that each take half of the numbers
    see the same histories as one walk that takes all. Memory does not grow with time, except for 100 bytes for each
    different end.

    Args:
        first: number of the first history.
        budget: limits the seconds and the histories in total, and the steps of each history. A limit of seconds or of
            histories, or `until`, is required.
        until: called after each history; stops the walk by returning true.
        progress: called after each history, to report progress.
    """
    clock = clock or SystemClock()
    started_s = clock.elapsed_s()
    walking = _Walk(world, seed, first)
    result = walking.result
    while True:
        walking.go(budget.depth)
        result.seconds = clock.elapsed_s() - started_s
        progress(result)
        if until(result) or budget.is_spent(seconds=result.seconds, histories=result.histories):
            return result


def draw_history(world: World, seed: int, *, depth: int | None = None) -> tuple[Choice, ...]:
    """Draw the history of one seed, such as `Counterexample.seed`, and return its choices."""
    walker = _Walker(StateSpace(world), seed)
    while (depth is None or len(walker.steps) < depth) and (walker.go_on() or walker.go_wrong()):
        continue
    return walker.choices
