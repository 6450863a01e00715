"""The work of ``holdfast check``: explore, walk or replay, with progress, until it is done or somebody interrupts."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import click

from holdfast.checker.jobs.names import find_committer, find_property, find_scene
from holdfast.checker.jobs.scenes import ANY, COMBINED, LARGE, SCENES, SMALL
from holdfast.checker.jobs.session import Looking, Session, replay_again
from holdfast.checker.jobs.worlds import Scene
from holdfast.checker.kernel.counterexample import Counterexample, decode
from holdfast.checker.kernel.explore import Budget
from holdfast.cli.check_coverage import nothing_ran, watching
from holdfast.cli.check_files import StoryFiles
from holdfast.cli.check_report import Outcome, show_list, show_outcome, show_replay
from holdfast.cli.check_wish import STATES, WALK_S, Wish
from holdfast.cli.output import Output
from holdfast.commit import Committer
from holdfast.commit.committers import TWO_PHASE
from holdfast.errors import CorruptDataError, InvalidRequestError

__all__ = ["run_check"]


def run_check(wish: Wish, out: Output) -> bool:
    """Do what was asked for and show it; whether nothing was found.

    Raises:
        Abort: interrupted; what was found by then is shown.
    """
    if wish.listed:
        show_list(out)
        return True
    files = StoryFiles(html=wish.html, directory=wish.save)
    with _quiet(out.debug):
        if wish.replay is not None:
            return _replay(wish, files, out)
        if wish.every:
            from holdfast.cli.check_table import show_all

            return show_all(Budget(seconds=wish.seconds, states=wish.states), out)
        assert wish.name is not None
        return _look(wish, files, out)


# --- looking for something --------------------------------------------------------------------------------------------
def _look(wish: Wish, files: StoryFiles, out: Output) -> bool:
    assert wish.name is not None
    committer = find_committer(wish.name)
    properties = tuple(dict.fromkeys(map(find_property, wish.properties)))
    scenes = _scenes(wish, committer)
    with _first_interrupt() as interrupted, out.waiting("building a world") as say:
        session = Session(committer, properties, until=interrupted, progress=lambda now: say(_in_words(now)))
        outcome = Outcome(session=session, wish=wish, ran=nothing_ran())
        for scene in scenes:
            if not session.is_over:
                with watching(outcome.ran, scene.name):
                    if wish.walk:
                        budget = Budget(seconds=_walk_s(wish), histories=wish.histories)
                        outcome.walks = session.walk(scene, wish.seed or 0, first=wish.first or 0, budget=budget)
                    else:
                        outcome.scenes.append(session.explore(scene, _budget(wish, scene)))
        told = session.ranked()
        for number, found in enumerate(told if wish.save or out.json else told[:1]):
            say(f"looking for an easier history that breaks {found.name}")
            told[number] = session.ease(found)
        outcome.told = told
        outcome.story = session.story(told[0]) if told else None
        outcome.interrupted = interrupted()
    show_outcome(outcome, files, out)
    if outcome.interrupted:
        raise click.Abort
    return not told and not any(report.missing for report in outcome.scenes)


def _scenes(wish: Wish, committer: Committer) -> list[Scene]:
    if wish.small:
        return list(SMALL.values())
    if wish.scenes:
        return list({scene.name: scene for scene in map(find_scene, wish.scenes)}.values())
    if wish.walk:
        return [ANY if committer is TWO_PHASE else LARGE]
    return [*SCENES.values(), *(COMBINED.values() if committer is TWO_PHASE else ())]


def _budget(wish: Wish, scene: Scene) -> Budget:
    limited = wish.states is not None or wish.seconds is not None or scene.name in SMALL
    return Budget(seconds=wish.seconds, states=wish.states if limited else STATES)


def _walk_s(wish: Wish) -> float | None:
    return WALK_S if wish.seconds is None and wish.histories is None else wish.seconds


def _in_words(now: Looking) -> str:
    found = f", broken by now: {', '.join(now.broken)}" if now.broken else ""
    much = f"{now.histories:,} histories" if now.histories else f"{now.states:,} states"
    return f"{now.scene}: {much}{found}"


# --- a saved history --------------------------------------------------------------------------------------------------
def _replay(wish: Wish, files: StoryFiles, out: Output) -> bool:
    assert wish.replay is not None
    counterexample = _load(wish)
    with out.waiting("going through the history"):
        story = replay_again(counterexample)
    show_replay(counterexample, story, wish, files, out)
    return story is None


def _load(wish: Wish) -> Counterexample:
    assert wish.replay is not None
    try:
        return decode(wish.replay.read_bytes(), str(wish.replay))
    except OSError as error:
        raise InvalidRequestError(
            "the file cannot be read: name one that --save wrote", file=str(wish.replay), reason=error.strerror
        ) from error
    except CorruptDataError as error:
        reason = error.variables.get("reason")
        raise InvalidRequestError(
            "this is no counterexample, or a damaged one: name a file that --save wrote",
            file=str(wish.replay),
            reason=reason,
        ) from error


# --- around it --------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def _first_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C only be noted, so that what was found is shown; the second one ends everything."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet(debug: bool) -> Iterator[None]:
    """What the code under test has to warn of happens thousands of times here, and on purpose."""
    logger = logging.getLogger("holdfast")
    before = logger.level
    if not debug:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
