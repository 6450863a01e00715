"""Count the histories in a graph of states; those that differ only in the order of independent calls count once.

Two histories are equivalent if one becomes the other by swapping neighboring steps of two actors whose calls touch
nothing in common that either changes. A class of equivalent histories is a *trace*. A graph has more paths than traces,
even a reduced one.

Sleep sets select one path of each trace, which is counted: when an actor's steps from a state have been counted, the
actor sleeps on the paths that begin with the other actors' steps, until a step does not commute with its call. A path
on which a sleeping actor moves was counted before, with neighbors swapped. So the search keeps one count for each pair
of a state and a set of sleeping actors.

A dead actor cannot be cut off, presumed dead, or answered. Where the reduction moves a death forward, a history in
which the actor is cut off or answered, and dies before anyone notices, is not counted in addition to the history in
which it just dies. So the count may be too low, by up to a tenth where this was measured.

Sources: Mazurkiewicz, "Trace theory", LNCS 255, 1987; Godefroid, "Partial-Order Methods for the Verification of
Concurrent Systems", LNCS 1032, 1996, chapter 5 (sleep sets: at most one path of each trace; with persistent sets, which
ample sets are, exactly one of each that ends).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import groupby

from holdfast_checker.kernel.state_space import State, StateSpace


class Graph:
    """The steps between numbered states that an exploration found. The graph has no cycles."""

    def __init__(self) -> None:
        self._targets: list[array[int]] = []
        self._movers: list[array[int]] = []
        self._ends = bytearray()

    def add(self) -> None:
        """Add a state without steps; it gets the next number."""
        self._targets.append(array("q"))
        self._movers.append(array("b"))
        self._ends.append(1)

    def set_steps(self, number: int, steps: Sequence[tuple[int, int]], is_end: bool) -> None:
        """Set the steps that lead out of a state, and whether a history may end in it.

        Args:
            steps: each as (actor, number of the next state), grouped by actor; if the step is a death, the actor is
                given by `dying`.
        """
        self._movers[number] = array("b", (mover for mover, _target in steps))
        self._targets[number] = array("q", (target for _mover, target in steps))
        self._ends[number] = is_end

    def count_histories(self, space: StateSpace, states: Sequence[State]) -> int:
        """Count the traces that lead from the initial state, number 0, to an end."""
        incoming = array("q", bytes(8 * len(states)))
        for targets in self._targets:
            for target in targets:
                incoming[target] += 1
        ways: list[dict[int, int]] = [{} for _ in states]  # by sleeping actors, as bits
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
        """Add a state's counts to those of its targets. An actor's calls and its death sleep separately."""
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
    """Return the number that stands for the death of an actor."""
    return ~actor


def _sleep_on(space: StateSpace, state: State, mover: int) -> int:
    """Return what keeps sleeping if `mover` takes a step, as bits: first the calls of the actors, then their deaths.

    A death has the footprint of the call before which it happens, but it may also unblock other actors, which the
    footprint does not show.
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
