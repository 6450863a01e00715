"""Counterexamples from small worlds of real committers, with their stories."""

from __future__ import annotations

import random
from dataclasses import replace

from holdfast_checker.committers.actors import CommitterScene, OtherJob
from holdfast_checker.committers.cluster import TaskCommitTiming
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import Counterexample, ReplayedExecution, replay_choices
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.state_space import StateSpace
from holdfast_checker.kernel.world import Choice, Property, World
from holdfast_checker.narrative.story import Story, tell_story
from holdfast_checker.specimens import COMPARED

__all__ = ["Found", "find", "wander"]


class Found:
    """A counterexample, its history, and its story."""

    def __init__(self, world: World, counterexample: Counterexample) -> None:
        self.world = world
        self.counterexample = counterexample
        self.history: ReplayedExecution = replay_choices(world, counterexample.choices)
        self.story: Story = tell_story(world, counterexample, job_narrator(world))


def find(committer: str) -> dict[str, Found]:
    """Find everything that breaks with one task, two attempts, two files, a crash and a partition; by property."""
    scene = CommitterScene(
        name="small",
        summary="One task with two attempts; a crash and a partition.",
        tasks=1,
        order=TaskCommitTiming.ASK_FIRST,
        budgets={Fault.PARTITION: 1, Fault.CRASH: 1},
    )
    world = build_world(COMPARED[committer], scene)
    return {name: Found(world, one) for name, one in explore_world(world).findings.items()}


def wander(committer: str, seed: int) -> Found:
    """Draw a long history with every actor and every fault, as if something broke at its end."""
    draw = random.Random(seed)
    scene = CommitterScene(
        name="large",
        summary="Everybody.",
        tasks=2,
        order=draw.choice(list(TaskCommitTiming)),
        recovery=1,
        second_driver=True,
        reader=True,
        others=(OtherJob(),),
        cancel=draw.random() < 0.3,
        bystanders=True,
        old=("day=0",),
        properties=(),
        budgets=dict.fromkeys(Fault, 2),
    )
    end = Property(name="end", title="never over", meaning="it never ends", end=lambda view: "it is over")
    world = replace(build_world(COMPARED[committer], scene), properties=(end,))
    space = StateSpace(world)
    state, choices = space.initial_state(), list[Choice]()
    while steps := list(space.steps(state)):
        calm = [step for step in steps if step.alternative is not None and step.alternative.fault is None]
        step = draw.choice(calm if calm and draw.random() < 0.93 else steps)
        choices.append(Choice(world.actors[step.actor].name, step.label))
        state = step.target
    return Found(world, Counterexample(world.name, "end", "it is over", tuple(choices), seed))
