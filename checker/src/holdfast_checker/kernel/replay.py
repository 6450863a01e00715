"""Replay a history from the scheduler's choices: compute its states, its steps, and what is broken at its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.state_space import State, StateSpace, Step
from holdfast_checker.kernel.world import Choice, World


@dataclass(frozen=True)
class Replay:
    """A replayed history.

    Attributes:
        space: the state space that explains the numbers in `states`.
        states: the states from the initial one on; one more than `steps`.
        broken: the properties that the last step violates and, if no actor can take another step, those that do not
            hold at the end; each as (name of the property, explanation).
    """

    space: StateSpace
    states: list[State]
    steps: list[Step]
    broken: tuple[tuple[str, str], ...]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the choices that were taken."""
        actors = self.space.world.actors
        return tuple(Choice(actors[step.actor].name, step.label) for step in self.steps)


def replay(world: World, choices: Iterable[Choice], *, lenient: bool = False) -> Replay:
    """Follow choices through a world.

    Guarantee: the same choices give the same history; if the code under test has changed, the same history or an error.

    Args:
        lenient: whether to skip choices that cannot be taken, instead of raising an error.

    Raises:
        InvalidRequestError: a choice cannot be taken: the history belongs to another world or to other code.
    """
    space = StateSpace(world)
    actors = {actor.name: number for number, actor in enumerate(world.actors)}
    states, steps = [space.initial()], list[Step]()
    for choice in choices:
        actor = actors.get(choice.actor)
        ways = [] if actor is None else space.steps_of(states[-1], actor)
        step = next((way for way in ways if way.label == choice.label), None)
        if step is not None:
            steps.append(step)
            states.append(step.target)
        elif not lenient:
            raise InvalidRequestError(
                "the history does not fit this world and this version of the code: look for a new one",
                world=world.name,
                step=len(steps) + 1,
                actor=choice.actor,
                label=choice.label,
            )
    return Replay(space, states, steps, _broken(space, states, steps))


def _broken(space: StateSpace, states: list[State], steps: list[Step]) -> tuple[tuple[str, str], ...]:
    broken = space.judge(states[-2], steps[-1]) if steps else ()
    if space.is_over(states[-1]):
        broken += space.judge_end(states[-1])
    return broken
