"""Show the result of ``holdfast check``: tables and a story for a person, one JSON document for a program."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.cli.output import Output, milliseconds
from holdfast.commit import Committer
from holdfast.wording import counted
from holdfast_checker.cli.coverage import Ran, show_ran
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.options import CheckOptions
from holdfast_checker.committers.check_report import SceneReport, Violation, WalkReport
from holdfast_checker.committers.check_run import CheckRun
from holdfast_checker.committers.goals import GOALS
from holdfast_checker.committers.names import ALL_SCENES, CHECKED
from holdfast_checker.committers.saved_histories import find_world
from holdfast_checker.committers.scenes import ANY, LARGE
from holdfast_checker.kernel.counterexample import Counterexample, encode
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.namespace.scenes.catalog import SCENES as NAMESPACE_SCENES
from holdfast_checker.namespace.worlds import build_world as build_namespace
from holdfast_checker.narrative.story import Story
from holdfast_checker.transactions.properties import PROPERTIES, properties_for
from holdfast_checker.transactions.scenes import FAMILIES, MANY
from holdfast_checker.units.scenes import SCENES as UNIT_SCENES
from holdfast_checker.units.worlds import build_world as build_units

_ASTRONOMIC = 10**12
"""Counts from this number on are rounded."""


@dataclass(kw_only=True)
class Outcome:
    """The result of one run of ``holdfast check``.

    Attributes:
        told: the violations to report, worst first.
        story: the story of the worst violation.
        ran: the coverage of the code under test.
    """

    check: CheckRun
    options: CheckOptions
    ran: Ran
    scenes: list[SceneReport] = field(default_factory=list)
    walks: WalkReport | None = None
    told: Sequence[Violation] = ()
    story: Story | None = None
    interrupted: bool = False


# --- after the search -------------------------------------------------------------------------------------------------
def show_outcome(outcome: Outcome, files: StoryFiles, out: Output) -> None:
    """Show what was explored and which properties were violated; write the files that the user asked for."""
    committer = outcome.check.committer
    saved = [files.save(found.counterexample) for found in outcome.told]
    page = files.write_page(outcome.story) if outcome.story is not None else None
    if out.json:
        out.document(_document(outcome))
    out.say(f"{committer.name}: {committer.summary}")
    if outcome.scenes:
        _show_scenes(outcome.scenes, outcome.ran, out)
    if outcome.walks is not None:
        _show_walks(outcome.walks, committer, outcome.options, out)
    if outcome.scenes:
        _show_reached(outcome.scenes, out)
    out.say(_summary(outcome))
    show_ran(outcome.ran, out, lines=outcome.options.coverage)
    if outcome.told and outcome.story is not None:
        out.say("")
        for line in outcome.story.lines(details=outcome.options.details, width=out.width):
            out.say(line)
        for line in textwrap.wrap(_declared(outcome.told[0], committer), out.width):
            out.say(line)
    if len(outcome.told) > 1:
        out.say("\nAlso violated; each command tells its story:")
        for found in outcome.told[1:]:
            short = "as declared" if found.is_declared else "NOT DECLARED" if found.answer else "nothing declared"
            out.say(f"  {_heading(found)} ({short}): {_command(found, committer, outcome.walks)}")
    for file in saved:
        if file is not None:
            out.note(f"saved: {file}")
    if page is not None:
        out.note(f"written: {page}")


def _show_scenes(scenes: Sequence[SceneReport], ran: Ran, out: Output) -> None:
    rows = [
        (
            report.scene.name,
            _count(report.histories) if report.complete else "not all",
            f"{report.states:,}",
            f"{ran.scenes[report.scene.name]:,}",
            milliseconds(round(report.seconds * 1000)),
            f"{len(report.reached)} of {len(report.goals)}",
            ", ".join(report.broken),
        )
        for report in scenes
    ]
    figures = ["histories", "states", "ran", "time", "reached"]
    out.table(["scene", *figures, "violated"], rows, right=figures)


def _show_walks(walks: WalkReport, committer: Committer, options: CheckOptions, out: Output) -> None:
    rows = [
        ("scene", f"{walks.scene.name}: {walks.scene.summary}"),
        *([("combinations", f"{walks.scenes:,}")] if walks.scene is ANY else []),
        ("seed", str(walks.seed)),
        ("histories", f"{walks.histories:,}: numbers {walks.first:,} to {walks.next - 1:,}"),
        ("steps", f"{walks.steps:,}, at most {walks.depth:,} in a history"),
        ("distinct ends", f"{walks.ends:,}"),
        ("time", milliseconds(round(walks.seconds * 1000))),
        ("reached", ", ".join(walks.reached) or "nothing"),
        ("violated", ", ".join(walks.broken) or "nothing"),
        ("to continue", _walk_command(committer, walks, walks.next)),
    ]
    out.table(["random walk", ""], rows)


def _summary(outcome: Outcome) -> str:
    scenes, walks = outcome.scenes, outcome.walks
    whole = bool(scenes) and all(report.complete for report in scenes) and not outcome.interrupted
    if walks is not None:
        extent = counted(walks.histories, "random history", "random histories")
    else:
        extent = f"{counted(len(scenes), 'scene')}, {sum(report.states for report in scenes):,} states"
    if whole:
        extent += f", {_count(sum(report.histories for report in scenes))} histories"
    if outcome.told:
        return f"{counted(len(outcome.told), 'property', 'properties')} violated in {extent}"
    return f"nothing found in {extent}: {'the search is complete' if whole else 'the search is not complete'}"


def _show_reached(scenes: Sequence[SceneReport], out: Output) -> None:
    """Show which goals the histories reached. To find no violation means little if no history gets to a commit."""
    reached = Counter(name for report in scenes for name in report.reached)
    if reached:
        rows = [(name, str(number), GOALS[name].meaning) for name, number in reached.most_common()]
        out.table(["goal", "scenes", "what some history in that many scenes reached"], rows, right=["scenes"])
    for report in scenes:
        for name in report.missing:
            what = GOALS[name].meaning if name in GOALS else f"a violation of the kind: {name}"
            out.say(f"NEVER REACHED in {report.scene.name}: {name} ({what})")


def _heading(found: Violation) -> str:
    return found.name if found.title.replace(" ", "-") == found.name else f"{found.name} {found.title}"


def _declared(found: Violation, committer: Committer) -> str:
    answer = found.answer
    if answer is not None and not answer.holds:
        return f"This is declared: {answer.why} (holdfast committers --why {committer.name})"
    if answer is not None and answer.unless:
        return f"This is declared to hold unless {answer.unless} (holdfast committers --why {committer.name})"
    if answer is None:
        return "There is no declaration about this property."
    return f"This is NOT DECLARED: {committer.name} is declared to hold the property. This is an unknown hole."


def _command(found: Violation, committer: Committer, walks: WalkReport | None) -> str:
    judged = [] if found.name == BROKEN_CODE else ["--property", found.name]
    if walks is not None and found.history is not None:
        return f"{_walk_command(committer, walks, found.history)} --histories 1 {shlex.join(judged)}".rstrip()
    return shlex.join(["holdfast", "check", committer.name, "--scene", found.scene.name, *judged])


def _walk_command(committer: Committer, walks: WalkReport, first: int) -> str:
    where = "" if walks.scene in (ANY, LARGE) else f" --scene {walks.scene.name}"
    return f"holdfast check {committer.name} --walk{where} --seed {walks.seed} --first {first}"


def _count(number: int) -> str:
    return f"{number:,}" if number < _ASTRONOMIC else f"{number:.1e}"


def _document(outcome: Outcome) -> dict[str, object]:
    check, walks = outcome.check, outcome.walks
    return {
        "committer": check.committer.name,
        "unsafe": check.committer.unsafe or None,
        "interrupted": outcome.interrupted,
        "coverage": outcome.ran.document(),
        "scenes": [
            {
                "name": report.scene.name,
                "summary": report.scene.summary,
                "complete": report.complete,
                "histories": report.histories if report.complete else None,
                "states": report.states,
                "seconds": round(report.seconds, 3),
                "broken": list(report.broken),
                "reached": list(report.reached),
                "never_reached": list(report.missing),
            }
            for report in outcome.scenes
        ],
        "walk": None
        if walks is None
        else {
            "scene": walks.scene.name,
            "seed": walks.seed,
            "first": walks.first,
            "next": walks.next,
            "histories": walks.histories,
            "steps": walks.steps,
            "ends": walks.ends,
            "seconds": round(walks.seconds, 3),
            "broken": list(walks.broken),
        },
        "broken": [
            {
                "property": found.name,
                "title": found.title,
                "meaning": found.meaning,
                "declared": found.is_declared,
                "why": None if found.answer is None else found.answer.why,
                "unless": None if found.answer is None else found.answer.unless or None,
                "scene": found.scene.name,
                "history": found.history,
                "counterexample": json.loads(encode(found.counterexample)),
                "story": check.story(found).document(),
            }
            for found in outcome.told
        ],
    }


# --- a saved history --------------------------------------------------------------------------------------------------
def show_replay(
    counterexample: Counterexample, story: Story | None, options: CheckOptions, files: StoryFiles, out: Output
) -> None:
    """Show whether a saved history still violates its property."""
    page = files.write_page(story) if story is not None else None
    out.document(
        {
            "world": counterexample.world,
            "property": counterexample.property,
            "breaks": story is not None,
            "story": None if story is None else story.document(),
        }
    )
    if story is None:
        out.say(f"{counterexample.property} holds: {counterexample.world} no longer violates it in this history")
        return
    for line in story.lines(details=options.details, width=out.width):
        out.say(line)
    if page is not None:
        out.note(f"written: {page}")


# --- the list ---------------------------------------------------------------------------------------------------------
def show_list(out: Output) -> None:
    """List committers, scenes and properties, and those of transactions, of the namespace and of units."""
    properties = find_world("two_phase/speculation").properties
    families = [(name, scenes[0].summary if len(scenes) == 1 else MANY[name]) for name, scenes in FAMILIES.items()]
    promises = properties_for((), tuple(PROPERTIES))
    places = [(name, scene.summary) for name, scene in NAMESPACE_SCENES.items()]
    invariants = build_namespace(NAMESPACE_SCENES["same-name"]).properties
    tasks = [(name, scene.summary) for name, scene in UNIT_SCENES.items()]
    truths = build_units(UNIT_SCENES["increments"]).properties
    out.document(
        {
            "committers": [{"name": one.name, "summary": one.summary} for one in CHECKED.values()],
            "scenes": [{"name": scene.name, "summary": scene.summary} for scene in ALL_SCENES.values()],
            "properties": [{"name": one.name, "title": one.title, "meaning": one.meaning} for one in properties],
            "transactions": {
                "scenes": [{"name": name, "summary": summary} for name, summary in families],
                "properties": [{"name": one.name, "title": one.title, "meaning": one.meaning} for one in promises],
            },
            "namespace": {
                "scenes": [{"name": name, "summary": summary} for name, summary in places],
                "properties": [{"name": one.name, "title": one.title, "meaning": one.meaning} for one in invariants],
            },
            "units": {
                "scenes": [{"name": name, "summary": summary} for name, summary in tasks],
                "properties": [{"name": one.name, "title": one.title, "meaning": one.meaning} for one in truths],
            },
        }
    )
    out.table(["committer", "what it does"], [(one.name, one.summary) for one in CHECKED.values()])
    out.table(["scene", "what happens"], [(scene.name, scene.summary) for scene in ALL_SCENES.values()])
    out.table(["property", "title", "what must hold"], [(one.name, one.title, one.meaning) for one in properties])
    out.table(["scene of transactions", "what happens"], families)
    out.table(["of transactions", "title", "what must hold"], [(one.name, one.title, one.meaning) for one in promises])
    out.table(["scene of namespace", "what happens"], places)
    out.table(["of namespace", "title", "what must hold"], [(one.name, one.title, one.meaning) for one in invariants])
    out.table(["scene of units", "what happens"], tasks)
    out.table(["of units", "title", "what must hold"], [(one.name, one.title, one.meaning) for one in truths])
