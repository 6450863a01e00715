"""Run ``holdfast check transactions``: explore or walk, and show the result, even after an interrupt.

``holdfast check namespace`` and ``holdfast check units`` are the same for other worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

import click

from holdfast.cli.output import Output
from holdfast_checker.cli.coverage import nothing_ran, watching
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.interrupts import first_interrupt
from holdfast_checker.cli.options import STATES, WALK_S, CheckOptions
from holdfast_checker.cli.transactions_report import TransactionOutcome, show_transactions
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.transactions.check_run import TRANSACTIONS, Described, Subject, TransactionCheck
from holdfast_checker.transactions.scenes import SCENES, SMALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is checked.

    Attributes:
        name: what the user types.
        title: what is checked, in a few words.
        code: the packages and modules whose code is checked.
        scenes, small: the quick scenes, and larger ones, by name.
    """

    name: str
    title: str
    code: tuple[str, ...]
    subject: Subject
    scenes: Mapping[str, Described]
    small: Mapping[str, Described]


_TRANSACTIONS = Checked(
    name="transactions",
    title="transactions: what their callers run, and the steps inside of a commit",
    code=(
        "holdfast.transactions.base",
        "holdfast.transactions.transaction",
        "holdfast.transactions.retry",
        "holdfast.transactions.memory.backend",
    ),
    subject=TRANSACTIONS,
    scenes=SCENES,
    small=SMALL,
)


def check_transactions(options: CheckOptions, files: StoryFiles, out: Output, checked: Checked = _TRANSACTIONS) -> bool:
    """Check transactions and show the result; return True if no problem was found.

    Args:
        checked: what is checked in their place.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    subject = checked.subject
    properties = tuple(dict.fromkeys(map(subject.find_property, options.properties)))
    scenes = {scene.name: scene for name in options.scenes for scene in subject.find_scenes(name)}
    with first_interrupt() as interrupted, out.waiting("building a world") as say:
        check = TransactionCheck(
            properties,
            until=interrupted,
            progress=lambda scene, done: say(f"{scene}: {done}" if done else scene),
            subject=subject,
        )
        outcome = TransactionOutcome(
            name=checked.name, title=checked.title, check=check, options=options, ran=nothing_ran(checked.code)
        )
        if options.walk:
            _walk(outcome, tuple(scenes.values()))
        else:
            _explore(
                outcome, scenes.values() if scenes else (checked.small if options.small else checked.scenes).values()
            )
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


def _explore(outcome: TransactionOutcome, scenes: Iterable[Described]) -> None:
    options = outcome.options
    limited = options.states is not None or options.seconds is not None or options.small
    budget = Budget(seconds=options.seconds, states=options.states if limited else STATES)
    for family, members in groupby(scenes, key=lambda scene: scene.family):
        if not outcome.check.is_over:
            with watching(outcome.ran, family):
                outcome.families.append(outcome.check.explore(members, budget))


def _walk(outcome: TransactionOutcome, scenes: tuple[Described, ...]) -> None:
    options = outcome.options
    if len(scenes) > 1:
        raise click.UsageError("--walk takes at most one scene, not a family of them")
    seconds = WALK_S if options.seconds is None and options.histories is None else options.seconds
    budget = Budget(seconds=seconds, histories=options.histories)
    with watching(outcome.ran, "walk"):
        scene = scenes[0] if scenes else outcome.check.subject.any
        outcome.walks = outcome.check.walk(scene, options.seed or 0, first=options.first or 0, budget=budget)
