"""Show the result of ``holdfast check``: tables and a story for a person, one JSON document for a program."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from holdfast.cli.output import Output
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.wording import counted
from holdfast_checker.cli.options import CheckOptions, StoryFiles
from holdfast_checker.committers.subject import CHECKED, committer_subject
from holdfast_checker.framework.check import Check, SceneReport, Violation, WalkReport
from holdfast_checker.framework.subject import Subject
from holdfast_checker.kernel.counterexample import Counterexample, encode
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.narrative.story import Story, heading
from holdfast_checker.subjects import SUBJECTS

_ASTRONOMIC = 10**12
"""Counts from this number on are rounded."""


@dataclass(kw_only=True)
class CheckOutcome:
    """The result of one run of ``holdfast check``.

    Attributes:
        scenes: the results of exploring, for each family of scenes.
        told: the violations to report, worst first.
        story: the story of the worst violation.
    """

    check: Check
    options: CheckOptions
    scenes: list[SceneReport] = field(default_factory=list)
    walk: WalkReport | None = None
    told: Sequence[Violation] = ()
    story: Story | None = None
    interrupted: bool = False


# --- after the search -------------------------------------------------------------------------------------------------
def show_outcome(outcome: CheckOutcome, files: StoryFiles, out: Output) -> None:
    """Show what was explored and which properties were violated; write the files that the user asked for."""
    subject = outcome.check.subject
    saved = [files.save(found.counterexample) for found in outcome.told]
    page = files.write_page(outcome.story) if outcome.story is not None else None
    if out.json:
        out.document(_document(outcome))
    out.say(subject.title)
    if outcome.scenes:
        _show_scenes(outcome.scenes, out)
    if outcome.walk is not None:
        _show_walk(outcome, outcome.walk, out)
    for report in outcome.scenes:
        for scene, name in report.missing:
            what = subject.goals[name].meaning if name in subject.goals else f"a fault of the kind: {name}"
            out.say(f"NEVER REACHED in {scene}: {name} ({what})")
    out.say(_summary(outcome))
    if outcome.story is not None:
        out.say("")
        for line in outcome.story.lines(details=outcome.options.details, width=out.width):
            out.say(line)
        for line in textwrap.wrap(_declared(outcome.told[0].name, subject), out.width):
            out.say(line)
    if len(outcome.told) > 1:
        out.say("\nAlso violated; each command tells its story:")
        for found in outcome.told[1:]:
            title = subject.described[found.name].title if found.name in subject.described else ""
            short = f" ({_in_short(found.name, subject)})" if subject.declared is not None else ""
            out.say(f"  {heading(found.name, title)}{short}: {_command(outcome, found)}")
    for file in saved:
        if file is not None:
            out.note(f"saved: {file}")
    if page is not None:
        out.note(f"written: {page}")


def _show_scenes(scenes: Sequence[SceneReport], out: Output) -> None:
    rows = [
        (
            report.family,
            f"{report.scenes:,}",
            _count(report.histories) if report.complete else "not all",
            f"{report.states:,}",
            f"{report.seconds:.1f} s",
            f"{report.reached:,} of {report.goals:,}",
            ", ".join(report.broken),
        )
        for report in scenes
    ]
    figures = ["scenes", "histories", "states", "time", "reached"]
    out.table(["scene", *figures, "violated"], rows, right=figures)


def _show_walk(outcome: CheckOutcome, walk: WalkReport, out: Output) -> None:
    rows = [
        ("scenes", f"{walk.scenes:,}" if walk.scene is None else f"{walk.scene.name}: {walk.scene.summary}"),
        ("seed", str(walk.seed)),
        ("histories", f"{walk.histories:,}: numbers {walk.first:,} to {walk.next - 1:,}"),
        ("steps", f"{walk.steps:,}, at most {walk.depth:,} in a history"),
        ("distinct ends", f"{walk.ends:,}"),
        ("time", f"{walk.seconds:.1f} s"),
        ("reached", ", ".join(walk.reached) or "nothing"),
        ("violated", ", ".join(walk.broken) or "nothing"),
        ("to continue", _walk_command(outcome, walk, walk.next)),
    ]
    out.table(["random walk", ""], rows)


def _summary(outcome: CheckOutcome) -> str:
    scenes, walk = outcome.scenes, outcome.walk
    whole = bool(scenes) and all(report.complete for report in scenes) and not outcome.interrupted
    if walk is not None:
        extent = counted(walk.histories, "random history", "random histories")
    else:
        states = sum(report.states for report in scenes)
        extent = f"{counted(sum(report.scenes for report in scenes), 'scene')}, {states:,} states"
    if whole:
        extent += f", {_count(sum(report.histories for report in scenes))} histories"
    if outcome.told:
        return f"{counted(len(outcome.told), 'property', 'properties')} violated in {extent}"
    return f"nothing found in {extent}: {'the search is complete' if whole else 'the search is not complete'}"


def _in_short(name: str, subject: Subject[Any]) -> str:
    answer = subject.declared(name) if subject.declared is not None else None
    if answer is None:
        return "nothing declared"
    return "NOT DECLARED" if answer.holds and not answer.unless else "as declared"


def _declared(name: str, subject: Subject[Any]) -> str:
    if subject.declared is None:
        return ""
    answer, where = subject.declared(name), f"(holdfast committers --why {subject.name})"
    if answer is None:
        return "There is no declaration about this property."
    if not answer.holds:
        return f"This is declared: {answer.why} {where}"
    if answer.unless:
        return f"This is declared to hold unless {answer.unless} {where}"
    return f"This is NOT DECLARED: {subject.name} is declared to hold the property. This is an unknown hole."


def _command(outcome: CheckOutcome, found: Violation) -> str:
    judged = [] if found.name == BROKEN_CODE else ["--property", found.name]
    if outcome.walk is not None and found.history is not None:
        walk = _walk_command(outcome, outcome.walk, found.history)
        return f"{walk} --histories 1 {shlex.join(judged)}".rstrip()
    return shlex.join(["holdfast", "check", outcome.check.subject.name, "--scene", found.scene.name, *judged])


def _walk_command(outcome: CheckOutcome, walk: WalkReport, first: int) -> str:
    subject = outcome.check.subject
    where = "" if walk.scene is subject.walk or walk.scene is None else f" --scene {shlex.quote(walk.scene.name)}"
    return f"holdfast check {subject.name} --walk{where} --seed {walk.seed} --first {first}"


def _count(number: int) -> str:
    return f"{number:,}" if number < _ASTRONOMIC else f"{number:.1e}"


def _document(outcome: CheckOutcome) -> dict[str, object]:
    check, walk = outcome.check, outcome.walk
    return {
        "checked": check.subject.name,
        "interrupted": outcome.interrupted,
        "scenes": [asdict(report) for report in outcome.scenes],
        "walk": None
        if walk is None
        else {**asdict(replace(walk, scene=None)), "scene": walk.scene and walk.scene.name},
        "broken": [_broken(check, found) for found in outcome.told],
    }


def _broken(check: Check, found: Violation) -> dict[str, object]:
    answer = check.subject.declared(found.name) if check.subject.declared is not None else None
    return {
        "property": found.name,
        "declared": None if answer is None else not answer.holds or bool(answer.unless),
        "why": None if answer is None else answer.why,
        "unless": None if answer is None else answer.unless or None,
        "scene": found.scene.name,
        "history": found.history,
        "counterexample": json.loads(encode(found.counterexample)),
        "story": check.story(found).document(),
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
    """List committers, and the scenes and properties of each kind of subject."""
    kinds = {"committers": committer_subject(TWO_PHASE), **SUBJECTS}
    listed: dict[str, dict[str, list[tuple[str, ...]]]] = {
        kind: {
            "scenes": [(name, subject.many.get(name, scenes[0].summary)) for name, scenes in subject.families.items()],
            "properties": [(one.name, one.title, one.meaning) for one in subject.described.values()],
        }
        for kind, subject in kinds.items()
    }
    committers: list[tuple[str, ...]] = [(one.name, one.summary) for one in CHECKED.values()]
    columns = {"names": ("name", "summary"), "scenes": ("name", "summary"), "properties": ("name", "title", "meaning")}
    out.document(
        {
            kind: {part: [dict(zip(columns[part], row, strict=True)) for row in rows] for part, rows in those.items()}
            for kind, those in {**listed, "committers": {"names": committers, **listed["committers"]}}.items()
        }
    )
    out.table(["committer", "what it does"], committers)
    for kind, those in listed.items():
        out.table([f"scene of {kind}", "what happens"], those["scenes"])
        out.table([f"property of {kind}", "title", "what must hold"], those["properties"])
