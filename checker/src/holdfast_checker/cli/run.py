"""Run ``holdfast check``: explore, run random executions, or replay; print the result, even after an interrupt."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from types import FrameType

import click

from holdfast.cli.output import Output
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast_checker.cli.options import STATES, WALK_S, CheckOptions
from holdfast_checker.cli.report import (
    CheckOutcome,
    explore_and_print_committers,
    print_outcome,
    print_replay,
    print_scenes_and_properties,
)
from holdfast_checker.framework.check import Check, replay_with_current_code
from holdfast_checker.framework.subject import Scene
from holdfast_checker.kernel.counterexample import Counterexample, decode_counterexample
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.subjects import find_subject


def run_check(options: CheckOptions, out: Output) -> bool:
    """Run the exploration, random executions or replay that the options ask for, and print the result.

    Returns:
        Whether no problem was found.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    if options.listed:
        print_scenes_and_properties(out, options.name)
        return True
    if options.save is not None:
        _require_writable_directory(options.save)
    with _silence_logging(out.debug):
        if options.replay is not None:
            return _replay_saved_counterexample(options, out)
        if options.every:
            return explore_and_print_committers(Budget(seconds=options.seconds, states=options.states), out)
        return _search_violations(options, out)


def _require_writable_directory(directory: Path) -> None:
    """Create the directory for counterexamples before the search starts, and try to write there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".holdfast"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidRequestError(
            "the directory cannot be written: name another", directory=str(directory), reason=error.strerror
        ) from error


# --- the search -------------------------------------------------------------------------------------------------------
def _search_violations(options: CheckOptions, out: Output) -> bool:
    assert options.name is not None
    subject = find_subject(options.name)
    properties = tuple(dict.fromkeys(map(subject.find_property, options.properties)))
    named = {scene.name: scene for name in options.scenes for scene in subject.find_scenes(name)}
    with _defer_first_interrupt() as interrupted, out.show_spinner("building a world") as say:
        check = Check(
            subject,
            properties,
            until=interrupted,
            progress=lambda scene, done: say(f"{scene}: {done}" if done else scene),
        )
        outcome = CheckOutcome(check=check, options=options)
        if options.walk:
            _run_random_histories(outcome, tuple(named.values()))
        else:
            _explore_scenes(outcome, tuple((named or (subject.small if options.small else subject.scenes)).values()))
        told = check.violations_by_harm()
        for number, found in enumerate(told if options.save or out.json else told[:1]):
            say(f"searching for a simpler history that violates {found.name}")
            told[number] = check.shrink(found)
        outcome.told = told
        outcome.story = check.tell_story(told[0]) if told else None
        outcome.interrupted = interrupted()
    print_outcome(outcome, out)
    if outcome.interrupted:
        raise click.Abort
    return not told and not any(report.missing for report in outcome.scenes)


def _explore_scenes(outcome: CheckOutcome, scenes: tuple[Scene, ...]) -> None:
    options = outcome.options
    limited = options.states is not None or options.seconds is not None
    for _, group in groupby(scenes, key=lambda scene: scene.family):
        if not outcome.check.may_stop:
            members = tuple(group)
            is_small = any(one.name in outcome.check.subject.small for one in members)
            states = options.states if limited or is_small else STATES
            outcome.scenes.append(outcome.check.explore(members, Budget(seconds=options.seconds, states=states)))


def _run_random_histories(outcome: CheckOutcome, scenes: tuple[Scene, ...]) -> None:
    options = outcome.options
    if len(scenes) > 1:
        raise click.UsageError("--walk takes at most one scene, not a family of them")
    seconds = WALK_S if options.seconds is None and options.histories is None else options.seconds
    scene = scenes[0] if scenes else outcome.check.subject.walk
    budget = Budget(seconds=seconds, histories=options.histories)
    outcome.walk = outcome.check.walk(scene, options.seed or 0, first=options.first or 0, budget=budget)


@contextlib.contextmanager
def _defer_first_interrupt() -> Iterator[Callable[[], bool]]:
    """Record the first Ctrl-C without stopping, so that results can be shown; let the second one end the command."""
    asked = False

    def note_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note_interrupt)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _silence_logging(debug: bool) -> Iterator[None]:
    """Silence the warnings of the code under test, into which thousands of faults are injected; not with `debug`."""
    logger = logging.getLogger("holdfast")
    before = logger.level
    if not debug:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


# --- a saved history --------------------------------------------------------------------------------------------------
def _replay_saved_counterexample(options: CheckOptions, out: Output) -> bool:
    counterexample = _load_counterexample(options)
    with out.show_spinner("replaying the history"):
        story = replay_with_current_code(counterexample, find_subject(counterexample.world.partition("/")[0]))
    print_replay(counterexample, story, options, out)
    return story is None


def _load_counterexample(options: CheckOptions) -> Counterexample:
    assert options.replay is not None
    try:
        return decode_counterexample(options.replay.read_bytes(), str(options.replay))
    except OSError as error:
        raise InvalidRequestError(
            "the file cannot be read: name one that --save wrote", file=str(options.replay), reason=error.strerror
        ) from error
    except CorruptDataError as error:
        raise InvalidRequestError(
            "the file holds no valid counterexample: name a file that --save wrote",
            file=str(options.replay),
            reason=error.variables.get("reason"),
        ) from error
