"""Run ``holdfast check transactions``: explore or walk, and show the result, even after an interrupt."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import click

from holdfast.checker.kernel.explore import Budget
from holdfast.checker.transactions.check_run import TransactionCheck
from holdfast.checker.transactions.drawing import ANY
from holdfast.checker.transactions.names import find_property, find_scenes
from holdfast.checker.transactions.scenes import SCENES, SMALL
from holdfast.checker.transactions.worlds import Scene
from holdfast.cli.check.coverage import nothing_ran, watching
from holdfast.cli.check.files import StoryFiles
from holdfast.cli.check.interrupts import first_interrupt
from holdfast.cli.check.options import STATES, WALK_S, CheckOptions
from holdfast.cli.check.transactions_report import TransactionOutcome, show_transactions
from holdfast.cli.output import Output

__all__ = ["check_transactions"]

_CODE = (
    "holdfast.transactions.base",
    "holdfast.transactions.transaction",
    "holdfast.transactions.retry",
    "holdfast.transactions.memory.store",
)


def check_transactions(options: CheckOptions, files: StoryFiles, out: Output) -> bool:
    """Check transactions and show the result; return True if no problem was found.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    properties = tuple(dict.fromkeys(map(find_property, options.properties)))
    scenes = {scene.name: scene for name in options.scenes for scene in find_scenes(name)}
    with first_interrupt() as interrupted, out.waiting("building a world") as say:
        check = TransactionCheck(
            properties, until=interrupted, progress=lambda scene, done: say(f"{scene}: {done}" if done else scene)
        )
        outcome = TransactionOutcome(check=check, options=options, ran=nothing_ran(_CODE))
        if options.walk:
            _walk(outcome, tuple(scenes.values()))
        else:
            _explore(outcome, scenes.values() if scenes else (SMALL if options.small else SCENES).values())
        told = check.ranked()
        for number, found in enumerate(told if options.save or out.json else told[:1]):
            say(f"searching for a simpler history that violates {found.name}")
            told[number] = check.shrink(found)
        outcome.told = told
        outcome.story = check.story(told[0]) if told else None
        outcome.interrupted = interrupted()
    show_transactions(outcome, files, out)
    if outcome.interrupted:
        raise click.Abort
    return not told and not any(report.missing for report in outcome.families)


def _explore(outcome: TransactionOutcome, scenes: Iterable[Scene]) -> None:
    options = outcome.options
    limited = options.states is not None or options.seconds is not None or options.small
    budget = Budget(seconds=options.seconds, states=options.states if limited else STATES)
    for family, members in groupby(scenes, key=lambda scene: scene.family):
        if not outcome.check.is_over:
            with watching(outcome.ran, family):
                outcome.families.append(outcome.check.explore(members, budget))


def _walk(outcome: TransactionOutcome, scenes: tuple[Scene, ...]) -> None:
    options = outcome.options
    if len(scenes) > 1:
        raise click.UsageError("--walk takes at most one scene, not a family of them")
    seconds = WALK_S if options.seconds is None and options.histories is None else options.seconds
    budget = Budget(seconds=seconds, histories=options.histories)
    with watching(outcome.ran, "walk"):
        scene = scenes[0] if scenes else ANY
        outcome.walks = outcome.check.walk(scene, options.seed or 0, first=options.first or 0, budget=budget)
