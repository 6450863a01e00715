"""How many histories a graph of states holds, those counted once that differ only in the order of what commutes.

Two histories are the same if one becomes the other by swapping neighbours: steps of two actors whose calls touch
nothing in common that either changes. Such a class is a *trace*; paths through the graph are more, also through a
reduced one.

Of each trace one path counts, as sleep sets choose it: when an actor's steps from a state have been counted, it sleeps
in what follows the steps of the next actors, until somebody does what does not commute with its call. A path on which a
sleeper acts is a path that was counted before, with neighbours swapped. So ways are counted by state and sleepers.

Who is dead cannot be cut off, taken for dead or answered any more. Where the reduction lets a death go first, a history
in which the same actor is cut off, or answered, and dies before anybody has noticed is the one in which it dies, and is
not counted beside it: up to a tenth fewer than there are.

Sources: Mazurkiewicz, "Trace theory", LNCS 255, 1987; Godefroid, "Partial-Order Methods for the Verification of
Concurrent Systems", LNCS 1032, 1996, chapter 5 (sleep sets: at most one path of each trace; with persistent sets, which
ample sets are, exactly one of each that ends).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import groupby

from holdfast.checker.kernel.state_space import State, StateSpace

__all__ = ["Graph", "dying"]


class Graph:
    """Steps between numbered states, as an exploration finds them; they never lead back."""

    def __init__(self) -> None:
        self._targets: list[array[int]] = []
        self._movers: list[array[int]] = []
        self._ends = bytearray()

    def add(self) -> None:
        """A state without steps: it gets the next number."""
        self._targets.append(array("q"))
        self._movers.append(array("b"))
        self._ends.append(1)

    def set_steps(self, number: int, steps: Sequence[tuple[int, int]], is_end: bool) -> None:
        """The steps from a state, and whether a history may end there.

        Args:
            steps: (who, target), those of one after the other; `dying` for an actor that dies.
        """
        self._movers[number] = array("b", (mover for mover, _target in steps))
        self._targets[number] = array("q", (target for _mover, target in steps))
        self._ends[number] = is_end

    def count_histories(self, space: StateSpace, states: Sequence[State]) -> int:
        """How many traces lead from state 0 to an end."""
        incoming = array("q", bytes(8 * len(states)))
        for targets in self._targets:
            for target in targets:
                incoming[target] += 1
        ways: list[dict[int, int]] = [{} for _ in states]  # by sleepers, as bits
        ways[0] = {0: 1}
        ready = [0]
        total = 0
        while ready:
            number = ready.pop()
            here, ways[number] = ways[number], {}
            if self._ends[number]:
                total += sum(here.values())
            self._pass_on(number, here, ways, space, states[number])
            for target in self._targets[number]:
                incoming[target] -= 1
                if not incoming[target]:
                    ready.append(target)
        return total

    def _pass_on(
        self, number: int, here: Mapping[int, int], ways: Sequence[dict[int, int]], space: StateSpace, state: State
    ) -> None:
        """Add the ways to a state to those of its targets. Calls and deaths of an actor sleep apart from each other."""
        actors = len(space.world.actors)
        steps = []
        for mover, those in groupby(zip(self._movers[number], self._targets[number], strict=True), _first):
            bit = 1 << mover if mover >= 0 else 1 << actors + ~mover
            steps.append((bit, _sleep_on(space, state, mover), [target for _mover, target in those]))
        for asleep, count in here.items():
            counted = asleep
            for bit, sleep_on, targets in steps:
                if not asleep & bit:
                    still = counted & sleep_on
                    for target in targets:
                        found = ways[target]
                        found[still] = found.get(still, 0) + count
                    counted |= bit


def dying(actor: int) -> int:
    """How the death of an actor is told from its call."""
    return ~actor


def _sleep_on(space: StateSpace, state: State, mover: int) -> int:
    """Who is not woken by a step, as bits: the calls of actors, then their deaths.

    The footprint of a death is that of the call that it comes before; but it may let others do more than that shows.
    """
    dies = mover < 0
    actor = ~mover if dies else mover
    actors = len(space.world.actors)
    found = 0
    for other in range(actors):
        if other != actor and space.commute(state, actor, other):
            if not (dies and space.is_let_go_on(state, other, dead=actor)):
                found |= 1 << other
            if dies or not space.is_let_go_on(state, actor, dead=other):
                found |= 1 << actors + other
    return found


def _first(step: tuple[int, int]) -> int:
    return step[0]
