"""Represent the state space of a world: number its states, compute the steps between them, and choose ample sets.

A *state* is a tuple of small numbers: one for each resource's state, one for each actor's place (what it will do next:
see `process_tree`), and what is left of each fault budget. A *step* is an actor's next call with one of its possible
outcomes, or that actor's death.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from holdfast_checker.kernel.calls import Alternative, Call, Fault, ValueNumbering
from holdfast_checker.kernel.process_tree import LocalState, ProcessTrees
from holdfast_checker.kernel.world import DIES, View, World

State: TypeAlias = tuple[int, ...]

BROKEN_CODE = "code"
"""Name of the pseudo-property that is violated if the code under test ends with an unexpected exception."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transition of the state space: an actor's call with one of its outcomes, or the actor's crash.

    Attributes:
        alternative: how the call ended; None if the actor died.
    """

    actor: int
    call: Call
    alternative: Alternative | None
    target: State

    @property
    def label(self) -> str:
        return DIES if self.alternative is None else self.alternative.label

    @property
    def fault(self) -> Fault | None:
        """Return the fault that is injected in this step; None if the step has no fault."""
        return Fault.CRASH if self.alternative is None else self.alternative.fault


@dataclass(slots=True)
class _Outcome:
    """One way in which a call can end in a state of its resource; reply and new state are given as numbers."""

    alternative: Alternative
    state: int
    reply: int


class StateSpace:
    """The states of a world that are known so far, and the steps between them; grows while the world is explored."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names = tuple(world.resources)
        self._resources = tuple(world.resources.values())
        self._index = {name: number for number, name in enumerate(self.names)}
        self._actors = {actor.name: number for number, actor in enumerate(world.actors)}
        self._numbered: tuple[ValueNumbering[object], ...] = tuple(ValueNumbering() for _ in self.names)
        self.faults = tuple(world.budgets)
        self._budget = {fault: number for number, fault in enumerate(self.faults)}
        self.processes = ProcessTrees(world.actors, world.resources, world.observed)
        self._first_place = len(self.names)
        self._first_budget = self._first_place + len(world.actors)
        self._ends: dict[tuple[int, int], tuple[_Outcome, ...]] = {}
        self._judged: dict[tuple[tuple[int, ...], tuple[int, ...], int], tuple[tuple[str, str], ...]] = {}
        self._judged_ends: dict[tuple[int, ...], tuple[tuple[str, str], ...]] = {}

    # --- states -------------------------------------------------------------------------------------------------------
    def initial_state(self) -> State:
        states = {name: resource.initial_state() for name, resource in self.world.resources.items()}
        numbers = [self._number_resource_state(index, states[name]) for index, name in enumerate(self.names)]
        places = [self.processes.start(actor, states).number for actor in range(len(self.world.actors))]
        return (*numbers, *places, *self.world.budgets.values())

    def _number_resource_state(self, resource: int, state: object) -> int:
        return self._numbered[resource].number(self._resources[resource].state_key(state), state)

    def view(self, state: State) -> View:
        """Return the view of a world's state that properties evaluate: the states of all its resources."""
        return View({name: self._numbered[i].values[state[i]] for i, name in enumerate(self.names)})

    def compute_resource_state_keys(self, state: State) -> tuple[Hashable, ...]:
        """Return a hashable key for each resource's state in a state of the world; comparable between state spaces."""
        return tuple(self._resources[i].state_key(self._numbered[i].values[state[i]]) for i in range(len(self.names)))

    def get_local_state(self, state: State, actor: int) -> LocalState:
        return self.processes.places[state[self._first_place + actor]]

    # --- steps --------------------------------------------------------------------------------------------------------
    def steps_of_actor(self, state: State, actor: int) -> list[Step]:
        """List the steps that one actor can take in a state; an empty list if it has ended, crashed, or is blocked."""
        place = self.get_local_state(state, actor)
        call = place.call
        if call is None:
            return []
        resource = self._index[call.resource]
        steps = [
            self._make_step(state, actor, place, call, resource, outcome)
            for outcome in self._outcomes(state[resource], resource, place, actor)
            if outcome.alternative.fault is None or self._remaining_faults(state, outcome.alternative.fault)
        ]
        if self.world.actors[actor].mortal and place.parent is not None and self._remaining_faults(state, Fault.CRASH):
            steps.append(Step(actor, call, None, self._compute_state_after_crash(state, actor)))
        return steps

    def steps(self, state: State) -> Iterator[Step]:
        """Iterate over all steps that the actors can take in a state: the successors of the state."""
        for actor in range(len(self.world.actors)):
            yield from self.steps_of_actor(state, actor)

    def is_final(self, state: State) -> bool:
        """Check whether a state is final: without a fault, no actor can take another step."""
        return all(step.fault is not None for step in self.steps(state))

    def _remaining_faults(self, state: State, fault: Fault) -> int:
        number = self._budget.get(fault)
        return 0 if number is None else state[self._first_budget + number]

    def _outcomes(self, number: int, resource: int, place: LocalState, actor: int) -> tuple[_Outcome, ...]:
        key = (number, place.number)
        found = self._ends.get(key)
        if found is None:
            assert place.call is not None
            state = self._numbered[resource].values[number]
            ways = self._resources[resource].alternatives(state, place.call, self.world.actors[actor].name)
            found = self._ends[key] = tuple(
                _Outcome(way, self._number_resource_state(resource, way.state), self.processes.reply_number(way.reply))
                for way in ways
                if way.fault is None or way.fault in self._budget
            )
        return found

    def _make_step(
        self, state: State, actor: int, place: LocalState, call: Call, resource: int, outcome: _Outcome
    ) -> Step:
        target = list(state)
        target[resource] = outcome.state
        after = place.next.get(outcome.reply)
        if after is None:
            values = {name: self._numbered[i].values[target[i]] for i, name in enumerate(self.names)}
            after = self.processes.after(actor, place, outcome.reply, values)
        target[self._first_place + actor] = after.number
        if outcome.alternative.fault is not None:
            target[self._first_budget + self._budget[outcome.alternative.fault]] -= 1
        return Step(actor, call, outcome.alternative, tuple(target))

    def _compute_state_after_crash(self, state: State, actor: int) -> State:
        target = list(state)
        name = self.world.actors[actor].name
        for index, resource in enumerate(self._resources):
            before = self._numbered[index].values[state[index]]
            after = resource.state_after_death(before, name)
            if after is not before:
                target[index] = self._number_resource_state(index, after)
        target[self._first_place + actor] = self.processes.dead.number
        target[self._first_budget + self._budget[Fault.CRASH]] -= 1
        return tuple(target)

    # --- properties ---------------------------------------------------------------------------------------------------
    def violations_of_step(self, before: State, step: Step) -> tuple[tuple[str, str], ...]:
        """Return the properties that a step violates, as pairs (name of the property, description)."""
        old, new = before[: self._first_place], step.target[: self._first_place]
        failure = self.get_local_state(step.target, step.actor).failure
        if failure:
            return (
                (BROKEN_CODE, f"{self.world.actors[step.actor].name} ended with an unexpected exception: {failure}"),
            )
        if old == new:
            return ()
        key = (old, new, step.actor)
        found = self._judged.get(key)
        if found is None:
            views = self.view(before), self.view(step.target)
            name = self.world.actors[step.actor].name
            words = ((one.name, one.step(*views, name)) for one in self.world.properties if one.step is not None)
            found = self._judged[key] = tuple((one, broke) for one, broke in words if broke)
        return found

    def violations_at_end(self, state: State) -> tuple[tuple[str, str], ...]:
        """Return the properties that a final state violates, as pairs (name of the property, description)."""
        key = state[: self._first_place]
        found = self._judged_ends.get(key)
        if found is None:
            view = self.view(state)
            words = ((one.name, one.end(view)) for one in self.world.properties if one.end is not None)
            found = self._judged_ends[key] = tuple((one, broke) for one, broke in words if broke)
        return found

    # --- reduction ----------------------------------------------------------------------------------------------------
    def ample_set(self, state: State) -> int:
        """Return the smallest ample set of a state: actors, as a bit set, whose steps suffice to be explored there.

        Their next calls commute with everything that the others are known to be able to do from here on, and at least
        one of them can move without a fault. The result is 0 if only the set of all actors qualifies.
        """
        near, alive = self._conflicting_actors(state)
        best = alive
        for actor in range(len(near)):
            if alive >> actor & 1:
                found = _compute_dependence_closure(near, 1 << actor)
                if found.bit_count() < best.bit_count() and self._can_any_actor_proceed(state, found):
                    best = found
        return 0 if best == alive else best

    def is_ample_set(self, state: State, actors: int) -> bool:
        """Check whether a set of actors (bits) is an ample set of a state, given the calls that are known by now."""
        near, _alive = self._conflicting_actors(state)
        return _compute_dependence_closure(near, actors) == actors

    def _conflicting_actors(self, state: State) -> tuple[list[int], int]:
        """Return, for each actor, which others may conflict with its next call; and the actors that have not ended."""
        places, conflicts = self.processes.places, self.processes.conflicts
        here = [places[state[self._first_place + actor]] for actor in range(len(self.world.actors))]
        alive = sum(1 << actor for actor, place in enumerate(here) if place.call is not None)
        waits = [self._find_awaited_actor(state, place) for place in here]
        near = []
        for actor, place in enumerate(here):
            found = 0
            if place.call is not None:
                mask = conflicts[place.footprint]
                for other, there in enumerate(here):
                    if mask & there.future and other != actor and waits[other] != (actor, True):
                        found |= 1 << other
                if waits[actor][0] >= 0 and self._may_die(state, waits[actor][0]):
                    found |= 1 << waits[actor][0]  # no footprint contains that death, which unblocks this actor
            near.append(found)
        return near, alive

    def _find_awaited_actor(self, state: State, place: LocalState) -> tuple[int, bool]:
        """Return the actor whose death would unblock an actor at `place` (-1 if none), and whether nothing else can.

        If nothing else can, the blocked actor cannot move before the other actor's next step.
        """
        if place.call is None:
            return -1, False
        resource = self._index[place.call.resource]
        found = self._resources[resource].find_unblockers(self._numbered[resource].values[state[resource]], place.call)
        if found is None:
            return -1, False
        return self._actors[found[0]], not any(self._remaining_faults(state, fault) for fault in found[1])

    def _may_die(self, state: State, actor: int) -> bool:
        alive = self.get_local_state(state, actor).call is not None
        return alive and self.world.actors[actor].mortal and self._remaining_faults(state, Fault.CRASH) > 0

    def _can_any_actor_proceed(self, state: State, actors: int) -> bool:
        """Check whether one of these actors can move without a fault; other actors may use up the fault budget."""
        moving = (actor for actor in range(len(self.world.actors)) if actors >> actor & 1)
        return any(step.fault is None for actor in moving for step in self.steps_of_actor(state, actor))


def _compute_dependence_closure(near: list[int], actors: int) -> int:
    """Return the smallest superset of these actors in which nobody depends on an actor outside."""
    seen = 0
    while seen != actors:
        fresh, seen = actors & ~seen, actors
        for actor, others in enumerate(near):
            if fresh >> actor & 1:
                actors |= others
    return actors
