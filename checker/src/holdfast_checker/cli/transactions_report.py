"""Show the result of ``holdfast check transactions``: tables and a story for a person, JSON for a program."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.cli.output import Output, milliseconds
from holdfast.wording import counted
from holdfast_checker.cli.coverage import Ran, show_ran
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.options import CheckOptions
from holdfast_checker.kernel.counterexample import encode
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.narrative.story import Story
from holdfast_checker.transactions.check_run import SceneReport, TransactionCheck, Violation, WalkReport


@dataclass(kw_only=True)
class TransactionOutcome:
    """The result of one run.

    Attributes:
        name, title: what was checked: see `Checked`.
        families: the results of exploring, for each family of scenes.
        told: the violations to report, worst first.
        story: the story of the worst violation.
        ran: the coverage of the code under test.
    """

    name: str
    title: str
    check: TransactionCheck
    options: CheckOptions
    ran: Ran
    families: list[SceneReport] = field(default_factory=list)
    walks: WalkReport | None = None
    told: Sequence[Violation] = ()
    story: Story | None = None
    interrupted: bool = False


def show_transactions(outcome: TransactionOutcome, files: StoryFiles, out: Output) -> None:
    """Show what was explored and which properties were violated; write the files that the user asked for."""
    saved = [files.save(found.counterexample) for found in outcome.told]
    page = files.write_page(outcome.story) if outcome.story is not None else None
    if out.json:
        out.document(_document(outcome))
    out.say(outcome.title)
    if outcome.families:
        _show_families(outcome.families, outcome.ran, out)
    if outcome.walks is not None:
        _show_walks(outcome, outcome.walks, out)
    for report in outcome.families:
        for scene, name in report.missing:
            out.say(f"NEVER REACHED in {scene}: {name} ({outcome.check.subject.goals[name].meaning})")
    out.say(_summary(outcome))
    show_ran(outcome.ran, out, lines=outcome.options.coverage)
    if outcome.story is not None:
        out.say("")
        for line in outcome.story.lines(details=outcome.options.details, width=out.width):
            out.say(line)
    if len(outcome.told) > 1:
        out.say("\nAlso violated; each command tells its story:")
        for found in outcome.told[1:]:
            out.say(f"  {found.name}: {_command(outcome.name, found, outcome.walks)}")
    for file in saved:
        if file is not None:
            out.note(f"saved: {file}")
    if page is not None:
        out.note(f"written: {page}")


def _show_families(families: Sequence[SceneReport], ran: Ran, out: Output) -> None:
    rows = [
        (
            report.family,
            f"{report.scenes:,}",
            f"{report.histories:,}" if report.complete else "not all",
            f"{report.states:,}",
            f"{ran.scenes[report.family]:,}",
            milliseconds(round(report.seconds * 1000)),
            f"{report.reached:,} of {report.goals:,}",
            ", ".join(sorted(report.broken)),
        )
        for report in families
    ]
    figures = ["scenes", "histories", "states", "ran", "time", "reached"]
    out.table(["scene", *figures, "violated"], rows, right=figures)


def _show_walks(outcome: TransactionOutcome, walks: WalkReport, out: Output) -> None:
    rows = [
        ("scenes", f"{walks.scenes:,}"),
        ("seed", str(walks.seed)),
        ("histories", f"{walks.histories:,}: numbers {walks.first:,} to {walks.next - 1:,}"),
        ("steps", f"{walks.steps:,}, at most {walks.depth:,} in a history"),
        ("distinct ends", f"{walks.ends:,}"),
        ("time", milliseconds(round(walks.seconds * 1000))),
        ("violated", ", ".join(sorted(walks.broken)) or "nothing"),
        ("to continue", _walk_command(outcome.name, walks, walks.next, outcome.options.scenes)),
    ]
    out.table(["random walk", ""], rows)


def _summary(outcome: TransactionOutcome) -> str:
    families, walks = outcome.families, outcome.walks
    whole = bool(families) and all(report.complete for report in families) and not outcome.interrupted
    if walks is not None:
        extent = counted(walks.histories, "random history", "random histories")
    else:
        scenes, states = sum(report.scenes for report in families), sum(report.states for report in families)
        extent = f"{counted(scenes, 'scene')}, {states:,} states"
    if whole:
        extent += f", {sum(report.histories for report in families):,} histories"
    if outcome.told:
        return f"{counted(len(outcome.told), 'property', 'properties')} violated in {extent}"
    return f"nothing found in {extent}: {'the search is complete' if whole else 'the search is not complete'}"


def _command(what: str, found: Violation, walks: WalkReport | None) -> str:
    judged = "" if found.name == BROKEN_CODE else f" --property {found.name}"
    if walks is not None and found.history is not None:
        return f"{_walk_command(what, walks, found.history, ())} --histories 1{judged}"
    return f"holdfast check {what} --scene {shlex.quote(found.scene.name)}{judged}"


def _walk_command(what: str, walks: WalkReport, first: int, scenes: Sequence[str]) -> str:
    where = "".join(f" --scene {shlex.quote(name)}" for name in scenes)
    return f"holdfast check {what} --walk{where} --seed {walks.seed} --first {first}"


def _document(outcome: TransactionOutcome) -> dict[str, object]:
    walks = outcome.walks
    return {
        "checked": outcome.name,
        "interrupted": outcome.interrupted,
        "coverage": outcome.ran.document(),
        "scenes": [
            {
                "family": report.family,
                "scenes": report.scenes,
                "complete": report.complete,
                "histories": report.histories if report.complete else None,
                "states": report.states,
                "seconds": round(report.seconds, 3),
                "broken": sorted(report.broken),
                "goals": report.goals,
                "never_reached": [{"scene": scene, "goal": name} for scene, name in report.missing],
            }
            for report in outcome.families
        ],
        "walk": None
        if walks is None
        else {
            "seed": walks.seed,
            "first": walks.first,
            "next": walks.next,
            "scenes": walks.scenes,
            "histories": walks.histories,
            "steps": walks.steps,
            "ends": walks.ends,
            "seconds": round(walks.seconds, 3),
            "broken": sorted(walks.broken),
        },
        "broken": [
            {
                "property": found.name,
                "scene": found.scene.name,
                "history": found.history,
                "counterexample": json.loads(encode(found.counterexample)),
                "story": outcome.check.story(found).document(),
            }
            for found in outcome.told
        ],
    }
