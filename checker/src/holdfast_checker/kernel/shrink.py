"""Minimize counterexamples: search for a simpler execution that violates the same property.

A history is easier than another one if it has fewer actors; then fewer faults; then fewer runs, that is, switches from
one actor to another; then fewer steps; then actors that come earlier in the world. Changes are tried until none makes
the history easier: leave an actor out, or let another one take over its steps; remove a fault; let an actor stop
earlier; let an actor continue before the others; leave out steps. A change is kept if the property still breaks. A
changed list of choices is only a *proposal*: choices that cannot be taken are skipped, and the history that results is
the one that is compared.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", section 3 (halves, then quarters,
down to single steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.state_space import State, StateSpace, Step
from holdfast_checker.kernel.world import DIES, Choice, World

_Choices: TypeAlias = tuple[Choice, ...]


@dataclass(frozen=True)
class _ViolatingHistory:
    """A history that breaks the property. `cost` orders histories by how hard they are to tell."""

    choices: _Choices
    broke: str
    cost: tuple[int, ...]


class _Shrinker:
    def __init__(self, world: World, name: str, replays: int, until: Callable[[], bool]) -> None:
        self._space = StateSpace(world)
        self._actors = {actor.name: number for number, actor in enumerate(world.actors)}
        self._property = name
        self._tried: set[_Choices] = set()
        self._left = replays
        self._until = until

    def shrink(self, history: _ViolatingHistory) -> _ViolatingHistory:
        """Return a simpler history that also violates the property; the given one if none is found."""
        change_parts = partial(_hand_steps_to_actor, tuple(self._actors))
        for proposals in (_drop_each_actor, change_parts, _remove_faults, _shorten_each_actor, _join_runs, _drop_steps):
            easier: _ViolatingHistory | None = history
            while easier is not None:
                history = easier
                tried = (
                    self.replay_proposal(proposal)
                    for proposal in proposals(history.choices)
                    if self._begin_try(proposal)
                )
                easier = next((one for one in tried if one is not None and one.cost < history.cost), None)
        return history

    def _begin_try(self, proposal: _Choices) -> bool:
        if proposal in self._tried or self._left == 0 or self._until():
            return False
        self._tried.add(proposal)
        self._left -= 1
        return True

    def replay_proposal(self, proposal: _Choices) -> _ViolatingHistory | None:
        """Replay proposed choices, and return the history up to the violation; None if the property is not violated.

        Impossible choices are skipped. If the property is judged at the end of histories, actors go on without faults
        after the last choice, first the actor that moved last.
        """
        space, state = self._space, self._space.initial_state()
        steps: list[Step] = []
        proposed = iter(proposal)
        while True:
            choice = next(proposed, None)
            step = self._faultless_step(state, steps) if choice is None else self._step_for_choice(state, choice)
            if step is not None:
                steps.append(step)
                if broke := dict(space.violations_of_step(state, step)).get(self._property):
                    return self._history_of_steps(steps, broke)
                state = step.target
            elif choice is None:
                break
        broke = dict(space.violations_at_end(state)).get(self._property) if space.is_final(state) else None
        return self._history_of_steps(steps, broke) if broke else None

    def _step_for_choice(self, state: State, choice: Choice) -> Step | None:
        actor = self._actors.get(choice.actor)
        ways = [] if actor is None else self._space.steps_of_actor(state, actor)
        return next((way for way in ways if way.label == choice.label), None)

    def _faultless_step(self, state: State, steps: list[Step]) -> Step | None:
        if not self._property_is_judged_at_end:
            return None
        ways = [step for step in self._space.steps(state) if step.fault is None]
        last = steps[-1].actor if steps else 0
        return min(ways, key=lambda step: (step.actor != last, step.actor), default=None)

    @property
    def _property_is_judged_at_end(self) -> bool:
        return any(one.name == self._property and one.end is not None for one in self._space.world.properties)

    def _history_of_steps(self, steps: list[Step], broke: str) -> _ViolatingHistory:
        choices = tuple(Choice(self._space.world.actors[step.actor].name, step.label) for step in steps)
        faults = sum(step.fault is not None for step in steps)
        actors = {step.actor for step in steps}
        cost = (len(actors), faults, len(_split_into_runs(choices)), len(steps), sum(actors))
        return _ViolatingHistory(choices, broke, cost)


# --- proposals --------------------------------------------------------------------------------------------------------
def _drop_each_actor(choices: _Choices) -> Iterator[_Choices]:
    for actor in _actor_names(choices):
        yield tuple(choice for choice in choices if choice.actor != actor)


def _hand_steps_to_actor(everybody: tuple[str, ...], choices: _Choices) -> Iterator[_Choices]:
    """Let one actor take over another one's steps, instead of its own steps or in addition; adapt the labels."""
    for one in reversed(_actor_names(choices)):
        for other in everybody:
            if other != one:
                besides = tuple(
                    Choice(other if choice.actor == one else choice.actor, choice.label.replace(one, other))
                    for choice in choices
                )
                yield tuple(now for now, was in zip(besides, choices, strict=True) if was.actor != other)
                yield besides


def _remove_faults(choices: _Choices) -> Iterator[_Choices]:
    """Replace one choice that is not ordinary, such as a fault, with the ordinary one, or leave it out."""
    for at, choice in enumerate(choices):
        if choice.label:
            if choice.label != DIES:
                yield (*choices[:at], Choice(choice.actor), *choices[at + 1 :])
            yield (*choices[:at], *choices[at + 1 :])


def _shorten_each_actor(choices: _Choices) -> Iterator[_Choices]:
    """Leave out the second half of an actor's steps, then the last quarter, and so on."""
    for actor in _actor_names(choices):
        own = [at for at, choice in enumerate(choices) if choice.actor == actor]
        count = len(own)
        while count := count // 2:
            gone = set(own[-count:])
            yield tuple(choice for at, choice in enumerate(choices) if at not in gone)


def _join_runs(choices: _Choices) -> Iterator[_Choices]:
    """Join two runs of an actor, and try every position for the joined run among the runs that were in between."""
    runs = _split_into_runs(choices)
    for first, run in enumerate(runs):
        second = next((at for at in range(first + 1, len(runs)) if runs[at][0].actor == run[0].actor), None)
        if second is not None:
            between = runs[first + 1 : second]
            for at in range(len(between) + 1):
                moved = [*between[:at], run, runs[second], *between[at:]]
                yield _concatenate([*runs[:first], *moved, *runs[second + 1 :]])


def _drop_steps(choices: _Choices) -> Iterator[_Choices]:
    """Leave out whole runs, then single steps, the last ones first."""
    runs = _split_into_runs(choices)
    for at in reversed(range(len(runs))):
        yield _concatenate([*runs[:at], *runs[at + 1 :]])
    for at in reversed(range(len(choices))):
        yield (*choices[:at], *choices[at + 1 :])


def _actor_names(choices: _Choices) -> list[str]:
    return list(dict.fromkeys(choice.actor for choice in choices))


def _split_into_runs(choices: _Choices) -> list[_Choices]:
    return [tuple(run) for _actor, run in groupby(choices, key=lambda choice: choice.actor)]


def _concatenate(runs: list[_Choices]) -> _Choices:
    return tuple(choice for run in runs for choice in run)


def shrink_counterexample(
    world: World, counterexample: Counterexample, replays: int = 5000, *, until: Callable[[], bool] = lambda: False
) -> Counterexample:
    """Minimize a counterexample: return one for the same property whose execution is simpler, or the same one.

    Guarantee: the result is no more complex (actors, faults, switches, steps) than the given one, and can be replayed.
    The result is the same in every run, unless `until` ended the search.

    Args:
        replays: the maximum number of changes to try; to try a change costs one replay.
        until: called before each change; stops the search by returning true.

    Raises:
        InvalidRequestError: the counterexample does not break its property in this world.
    """
    shrinker = _Shrinker(world, counterexample.property, replays, until)
    history = shrinker.replay_proposal(counterexample.choices)
    if history is None:
        raise InvalidRequestError(
            "the history does not break its property in this world and this version of the code: look for a new one",
            world=world.name,
            property=counterexample.property,
        )
    while (easier := shrinker.shrink(history)) is not history:
        history = easier
    return replace(counterexample, broke=history.broke, choices=history.choices)
