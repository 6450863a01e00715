"""Run ``holdfast check``: explore, walk or replay, and show the result, even after an interrupt."""

from __future__ import annotations

import click

from holdfast.cli.output import Output
from holdfast.commit import Committer
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast_checker.cli.coverage import nothing_ran, watching
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.interrupts import first_interrupt, quiet
from holdfast_checker.cli.options import NAMESPACE, STATES, TRANSACTIONS, UNITS, WALK_S, CheckOptions
from holdfast_checker.cli.report import Outcome, show_list, show_outcome, show_replay
from holdfast_checker.committers.check_report import Progress
from holdfast_checker.committers.check_run import CheckRun
from holdfast_checker.committers.names import find_committer, find_property, find_scene
from holdfast_checker.committers.saved_histories import replay_again
from holdfast_checker.committers.scenes import ANY, COMBINED, LARGE, SCENES, SMALL
from holdfast_checker.committers.worlds import Scene
from holdfast_checker.kernel.counterexample import Counterexample, decode
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.narrative.story import Story


def run_check(options: CheckOptions, out: Output) -> bool:
    """Run what the options ask for and show it; return True if no problem was found.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    if options.listed:
        show_list(out)
        return True
    files = StoryFiles(html=options.html, directory=options.save)
    with quiet(out.debug):
        if options.replay is not None:
            return _replay(options, files, out)
        if options.every:
            from holdfast_checker.cli.table import show_all

            return show_all(Budget(seconds=options.seconds, states=options.states), out)
        if options.name == TRANSACTIONS:
            from holdfast_checker.cli.transactions import check_transactions

            return check_transactions(options, files, out)
        if options.name == NAMESPACE:
            from holdfast_checker.cli.namespace import check_namespace

            return check_namespace(options, files, out)
        if options.name == UNITS:
            from holdfast_checker.cli.units import check_units

            return check_units(options, files, out)
        return _search(options, files, out)


# --- the search -------------------------------------------------------------------------------------------------------
def _search(options: CheckOptions, files: StoryFiles, out: Output) -> bool:
    assert options.name is not None
    committer = find_committer(options.name, others=(TRANSACTIONS, NAMESPACE, UNITS))
    properties = tuple(dict.fromkeys(map(find_property, options.properties)))
    scenes = _scenes(options, committer)
    with first_interrupt() as interrupted, out.waiting("building a world") as say:
        check = CheckRun(committer, properties, until=interrupted, progress=lambda now: say(_in_words(now)))
        outcome = Outcome(check=check, options=options, ran=nothing_ran())
        for scene in scenes:
            if not check.is_over:
                with watching(outcome.ran, scene.name):
                    if options.walk:
                        budget = Budget(seconds=_walk_s(options), histories=options.histories)
                        outcome.walks = check.walk(scene, options.seed or 0, first=options.first or 0, budget=budget)
                    else:
                        outcome.scenes.append(check.explore(scene, _budget(options, scene)))
        told = check.ranked()
        for number, found in enumerate(told if options.save or out.json else told[:1]):
            say(f"searching for a simpler history that violates {found.name}")
            told[number] = check.shrink(found)
        outcome.told = told
        outcome.story = check.story(told[0]) if told else None
        outcome.interrupted = interrupted()
    show_outcome(outcome, files, out)
    if outcome.interrupted:
        raise click.Abort
    return not told and not any(report.missing for report in outcome.scenes)


def _scenes(options: CheckOptions, committer: Committer) -> list[Scene]:
    if options.small:
        return list(SMALL.values())
    if options.scenes:
        return list({scene.name: scene for scene in map(find_scene, options.scenes)}.values())
    if options.walk:
        return [ANY if committer is TWO_PHASE else LARGE]
    return [*SCENES.values(), *(COMBINED.values() if committer is TWO_PHASE else ())]


def _budget(options: CheckOptions, scene: Scene) -> Budget:
    limited = options.states is not None or options.seconds is not None or scene.name in SMALL
    return Budget(seconds=options.seconds, states=options.states if limited else STATES)


def _walk_s(options: CheckOptions) -> float | None:
    return WALK_S if options.seconds is None and options.histories is None else options.seconds


def _in_words(now: Progress) -> str:
    found = f", violated so far: {', '.join(now.broken)}" if now.broken else ""
    much = f"{now.histories:,} histories" if now.histories else f"{now.states:,} states"
    return f"{now.scene}: {much}{found}"


# --- a saved history --------------------------------------------------------------------------------------------------
def _replay(options: CheckOptions, files: StoryFiles, out: Output) -> bool:
    assert options.replay is not None
    counterexample = _load(options)
    with out.waiting("replaying the history"):
        story = _replay_again(counterexample)
    show_replay(counterexample, story, options, files, out)
    return story is None


def _replay_again(counterexample: Counterexample) -> Story | None:
    if counterexample.world.startswith(f"{TRANSACTIONS}/"):
        from holdfast_checker.transactions.check_run import replay_again as replay_transactions

        return replay_transactions(counterexample)
    if counterexample.world.startswith(f"{NAMESPACE}/"):
        from holdfast_checker.namespace.subject import NAMESPACE as SUBJECT
        from holdfast_checker.transactions.check_run import replay_again as replay_transactions

        return replay_transactions(counterexample, SUBJECT)
    if counterexample.world.startswith(f"{UNITS}/"):
        from holdfast_checker.transactions.check_run import replay_again as replay_transactions
        from holdfast_checker.units.subject import UNITS as SUBJECT_OF_UNITS

        return replay_transactions(counterexample, SUBJECT_OF_UNITS)
    return replay_again(counterexample)


def _load(options: CheckOptions) -> Counterexample:
    assert options.replay is not None
    try:
        return decode(options.replay.read_bytes(), str(options.replay))
    except OSError as error:
        raise InvalidRequestError(
            "the file cannot be read: name one that --save wrote", file=str(options.replay), reason=error.strerror
        ) from error
    except CorruptDataError as error:
        reason = error.variables.get("reason")
        raise InvalidRequestError(
            "the file holds no valid counterexample: name a file that --save wrote",
            file=str(options.replay),
            reason=reason,
        ) from error
