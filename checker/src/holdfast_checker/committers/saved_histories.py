"""Find the world of a saved counterexample, and replay it with the current code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import InvalidRequestError
from holdfast_checker.committers.names import find_committer, find_property, find_scene
from holdfast_checker.committers.narration.job_narrator import job_narrator
from holdfast_checker.committers.table_v.experiments import EXPERIMENTS, build_experiment
from holdfast_checker.committers.table_v.questions import ASKED
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.replay import replay
from holdfast_checker.kernel.shrink import shrink
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.story import Story, tell


def find_world(name: str, properties: Sequence[str] = ()) -> World:
    """Return the world that a counterexample names, such as ``committer/scene``, to replay it there.

    Args:
        properties: names of the properties to judge; empty for all that the scene judges. An experiment of `table_v`
            always judges its own.

    Raises:
        InvalidRequestError: there is no world of that name.
    """
    committer, _, scene = name.partition("/")
    if scene in EXPERIMENTS:  # they have few properties, all for one row of the table
        return build_experiment(find_committer(committer), EXPERIMENTS[scene])
    found = find_scene(scene)
    return build_world(find_committer(committer), replace(found, properties=tuple(properties) or found.properties))


def replay_again(counterexample: Counterexample) -> Story | None:
    """Replay a saved history with the current code.

    Returns:
        The story of the history up to the step that breaks the property, or None if the property holds now. If the
        saved history ends before the current code does, and the property is judged at the end, the replay continues
        without faults.

    Raises:
        InvalidRequestError: the world or property does not exist, or the history no longer fits the code.
    """
    name = counterexample.property
    known = name == BROKEN_CODE or name in ASKED
    world = find_world(counterexample.world, () if known else (find_property(name),))
    replay(world, counterexample.choices)
    try:
        again = shrink(world, counterexample, replays=0)
    except InvalidRequestError:
        return None
    return tell(world, again, job_narrator(world))
