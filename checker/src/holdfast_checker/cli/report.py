"""Print the result of ``holdfast check``: tables and a story as text, or one JSON document."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast.cli.output import Output
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.wording import format_count
from holdfast_checker.cli.options import CheckOptions
from holdfast_checker.committers.table_v.table import GuaranteeCell, GuaranteeTable, build_table
from holdfast_checker.framework.check import Check, RandomHistoryReport, SceneReport, Violation
from holdfast_checker.framework.subject import Scene, Subject
from holdfast_checker.kernel.counterexample import Counterexample, encode_counterexample
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.narrative.story import Story, property_heading
from holdfast_checker.specimens import COMPARED
from holdfast_checker.subjects import SUBJECTS, build_committer_subject, find_subject


@dataclass(kw_only=True)
class CheckOutcome:
    """The result of one run of ``holdfast check``.

    Attributes:
        scenes: the results of exploring, for each family of scenes.
        told: the reported violations, worst first.
        story: the story of the worst violation.
    """

    check: Check
    options: CheckOptions
    scenes: list[SceneReport] = field(default_factory=list)
    walk: RandomHistoryReport | None = None
    told: Sequence[Violation] = ()
    story: Story | None = None
    interrupted: bool = False


# --- after the search -------------------------------------------------------------------------------------------------
def print_outcome(outcome: CheckOutcome, out: Output) -> None:
    """Print what was explored, and the violated properties; write counterexamples to files if ``--save`` is given."""
    subject = outcome.check.subject
    if out.json:
        out.document(_outcome_as_json(outcome))
    out.say(subject.title)
    if outcome.scenes:
        _print_scene_reports(outcome.scenes, out)
    if outcome.walk is not None:
        _print_random_history_report(outcome, outcome.walk, out)
    for report in outcome.scenes:
        for scene, name in report.missing:
            what = subject.goals[name].meaning if name in subject.goals else f"a fault of the kind: {name}"
            out.say(f"NEVER REACHED in {scene}: {name} ({what})")
    out.say(_summarize_violations(outcome))
    if outcome.story is not None:
        out.say("")
        for line in outcome.story.lines(details=outcome.options.details, width=out.width):
            out.say(line)
        for line in textwrap.wrap(_compare_with_declaration(outcome.told[0].name, subject)[1], out.width):
            out.say(line)
    if len(outcome.told) > 1:
        out.say("\nAlso violated; each command tells its story:")
        for found in outcome.told[1:]:
            title = subject.rules[found.name].title if found.name in subject.rules else ""
            short = f" ({words})" if (words := _compare_with_declaration(found.name, subject)[0]) else ""
            out.say(f"  {property_heading(found.name, title)}{short}: {_reproducing_command(outcome, found)}")
    if (directory := outcome.options.save) is not None:
        for found in outcome.told:
            out.note(f"saved: {_save_counterexample(found.counterexample, directory)}")


def _save_counterexample(counterexample: Counterexample, directory: Path) -> Path:
    file = directory / f"{counterexample.world.replace('/', '-')}-{counterexample.property}.json"
    file.write_bytes(encode_counterexample(counterexample))
    return file


def _print_scene_reports(scenes: Sequence[SceneReport], out: Output) -> None:
    rows = [
        (
            report.family,
            f"{report.scenes:,}",
            f"{report.states:,}{'' if report.complete else ', not all'}",
            f"{report.seconds:.1f} s",
            f"{report.reached:,} of {report.goals:,}",
            ", ".join(report.broken),
        )
        for report in scenes
    ]
    figures = ["scenes", "states", "time", "reached"]
    out.table(["scene", *figures, "violated"], rows, right=figures)


def _print_random_history_report(outcome: CheckOutcome, report: RandomHistoryReport, out: Output) -> None:
    walks, scene = report.walks, report.scene
    rows = [
        ("scenes", f"{walks.worlds:,}" if scene is None else f"{scene.name}: {scene.summary}"),
        ("seed", str(walks.seed)),
        ("histories", f"{walks.histories:,}: numbers {report.first:,} to {walks.next - 1:,}"),
        ("steps", f"{walks.steps:,}, at most {walks.depth:,} in a history"),
        ("distinct ends", f"{len(walks.ends):,}"),
        ("time", f"{walks.seconds:.1f} s"),
        ("reached", ", ".join(report.reached) or "nothing"),
        ("violated", ", ".join(report.broken) or "nothing"),
        ("to continue", _format_random_history_command(outcome, report, walks.next)),
    ]
    out.table(["random walk", ""], rows)


def _summarize_violations(outcome: CheckOutcome) -> str:
    scenes = outcome.scenes
    whole = bool(scenes) and all(report.complete for report in scenes) and not outcome.interrupted
    if outcome.walk is not None:
        extent = format_count(outcome.walk.walks.histories, "random history", "random histories")
    else:
        states = sum(report.states for report in scenes)
        extent = f"{format_count(sum(report.scenes for report in scenes), 'scene')}, {states:,} states"
    if outcome.told:
        return f"{format_count(len(outcome.told), 'property', 'properties')} violated in {extent}"
    return f"nothing found in {extent}: {'the search is complete' if whole else 'the search is not complete'}"


def _compare_with_declaration(name: str, subject: Subject[Any]) -> tuple[str, str]:
    """Return what is declared about a property that broke, in two words and in one sentence; empty for a subject."""
    if subject.declared is None:
        return "", ""
    answer, where = subject.declared(name), f"(holdfast committers --why {subject.name})"
    if answer is None:
        return "nothing declared", "There is no declaration about this property."
    if not answer.holds:
        return "as declared", f"This is declared: {answer.why} {where}"
    if answer.unless:
        return "as declared", f"This is declared to hold unless {answer.unless} {where}"
    sentence = f"This is NOT DECLARED: {subject.name} is declared to hold the property. This is an unknown hole."
    return "NOT DECLARED", sentence


def _reproducing_command(outcome: CheckOutcome, found: Violation) -> str:
    judged = [] if found.name == BROKEN_CODE else ["--property", found.name]
    if outcome.walk is not None and found.history is not None:
        walk = _format_random_history_command(outcome, outcome.walk, found.history)
        return f"{walk} --histories 1 {shlex.join(judged)}".rstrip()
    return shlex.join(["holdfast", "check", outcome.check.subject.name, "--scene", found.scene.name, *judged])


def _format_random_history_command(outcome: CheckOutcome, walk: RandomHistoryReport, first: int) -> str:
    subject = outcome.check.subject
    where = "" if walk.scene is subject.walk or walk.scene is None else f" --scene {shlex.quote(walk.scene.name)}"
    return f"holdfast check {subject.name} --walk{where} --seed {walk.walks.seed} --first {first}"


def _outcome_as_json(outcome: CheckOutcome) -> dict[str, object]:
    return {
        "checked": outcome.check.subject.name,
        "interrupted": outcome.interrupted,
        "scenes": [asdict(report) for report in outcome.scenes],
        "walk": None if outcome.walk is None else _walk_report_as_json(outcome.walk),
        "broken": [_violation_as_json(outcome.check, found) for found in outcome.told],
    }


def _walk_report_as_json(report: RandomHistoryReport) -> dict[str, object]:
    walks = report.walks
    return {
        "scene": report.scene and report.scene.name,
        "first": report.first,
        **{name: getattr(walks, name) for name in ("seed", "next", "histories", "steps", "depth", "seconds")},
        "scenes": walks.worlds,
        "ends": len(walks.ends),
        "broken": report.broken,
        "reached": report.reached,
    }


def _violation_as_json(check: Check, found: Violation) -> dict[str, object]:
    answer = check.subject.declared(found.name) if check.subject.declared is not None else None
    return {
        "property": found.name,
        "declared": None if answer is None else not answer.holds or bool(answer.unless),
        "why": None if answer is None else answer.why,
        "unless": None if answer is None else answer.unless or None,
        "scene": found.scene.name,
        "history": found.history,
        "counterexample": json.loads(encode_counterexample(found.counterexample)),
        "story": check.tell_story(found).to_json_value(),
    }


# --- a saved history --------------------------------------------------------------------------------------------------
def print_replay(counterexample: Counterexample, story: Story | None, options: CheckOptions, out: Output) -> None:
    """Print whether a saved counterexample still violates its property, with its story if it does."""
    out.document(
        {
            "world": counterexample.world,
            "property": counterexample.property,
            "breaks": story is not None,
            "story": None if story is None else story.to_json_value(),
        }
    )
    if story is None:
        out.say(f"{counterexample.property} holds: {counterexample.world} no longer violates it in this history")
        return
    for line in story.lines(details=options.details, width=out.width):
        out.say(line)


# --- the list ---------------------------------------------------------------------------------------------------------
def print_scenes_and_properties(out: Output, name: str | None) -> None:
    """Print the list of committers, and the scenes and properties of each subject, or of the one with this name."""
    kinds: Mapping[str, Subject[Any]] = {"committers": build_committer_subject(TWO_PHASE), **SUBJECTS}
    if name is not None:
        subject = find_subject(name)
        kinds = {subject.name if subject.name in SUBJECTS else "committers": subject}
    listed: dict[str, dict[str, list[tuple[str, ...]]]] = {
        kind: {
            "scenes": [(family, _summarize_scenes(scenes)) for family, scenes in subject.families.items()],
            "properties": [(one.name, one.title, one.meaning) for one in subject.rules.values()],
        }
        for kind, subject in kinds.items()
    }
    if name is None:
        listed["committers"]["names"] = [(one.name, one.summary) for one in COMPARED.values()]
    columns = {"names": ("name", "summary"), "scenes": ("name", "summary"), "properties": ("name", "title", "meaning")}
    out.document(
        {
            kind: {part: [dict(zip(columns[part], row, strict=True)) for row in rows] for part, rows in those.items()}
            for kind, those in listed.items()
        }
    )
    for kind, those in listed.items():
        if "names" in those:
            out.table(["committer", "what it does"], those["names"])
        out.table([f"scene of {kind}", "what happens"], those["scenes"])
        out.table([f"property of {kind}", "title", "what must hold"], those["properties"])


def _summarize_scenes(scenes: Sequence[Scene]) -> str:
    more = f" (and {format_count(len(scenes) - 1, 'more scene')})" if len(scenes) > 1 else ""
    return f"{scenes[0].summary}{more}"


# --- all committers ---------------------------------------------------------------------------------------------------
_LEGEND = "* unless what --json names; ? so far: not all histories were explored; ! differs, see below"


def explore_and_print_committers(budget: Budget, out: Output) -> bool:
    """Explore all committers and print the table of their guarantees.

    Returns:
        Whether each answer is as declared, or differs for a known reason."""
    with out.progress() as advance:
        table = build_table(budget=budget, progress=lambda done, total: advance("worlds", done, total))
    return print_guarantee_table(table, out)


def print_guarantee_table(table: GuaranteeTable, out: Output) -> bool:
    """Print the table of committers and their guarantees, and its differences from declarations or papers 000 and 002.

    Returns:
        Whether each answer is as declared, or differs for a known reason."""
    out.document(table.to_json_value())
    columns = {
        name: [_format_cell_with_marks(table.cell(row.name, name)) for row in table.rows] for name in table.committers
    }
    out.print_split_table("guarantee", [row.title for row in table.rows], columns)
    out.say(_LEGEND)
    cells = list(table.cells.values())
    of_paper = [cell for cell in cells if cell.agrees_with_paper is not None]
    like_paper = sum(cell.agrees_with_paper is True for cell in of_paper)
    as_declared = sum(cell.agrees_with_declaration for cell in cells)
    out.say(f"\n{like_paper} of the {len(of_paper)} answers in the papers are confirmed")
    out.say(f"{as_declared} of {len(cells)} declarations (holdfast committers) are confirmed")
    for cell in table.differences():
        out.say("")
        for line in textwrap.wrap(f"{cell.committer.name}, {cell.row.title}: {_describe_answers(cell)}", out.width):
            out.say(line)
        for text in filter(None, (cell.because, cell.reason)):
            for line in textwrap.wrap(text, out.width, initial_indent="  ", subsequent_indent="  "):
                out.say(line)
    out.say(f"\n{table.states:,} states in {format_count(len(table.committers), 'committer')}, {table.seconds:.0f} s")
    return all(cell.agrees_with_declaration or cell.reason for cell in cells)


def _format_cell_with_marks(cell: GuaranteeCell) -> str:
    differs = cell.agrees_with_paper is False or not cell.agrees_with_declaration
    return _yes_or_no(cell.holds) + "*" * bool(cell.unless) + "?" * (not cell.complete) + "!" * differs


def _describe_answers(cell: GuaranteeCell) -> str:
    found = _yes_or_no(cell.holds) + "".join(f", unless {circumstance}" for circumstance in cell.unless)
    declared = _yes_or_no(cell.declared.holds) + (f", unless {cell.declared.unless}" if cell.declared.unless else "")
    paper = "" if cell.paper_answer is None else f"; the paper says {_yes_or_no(cell.paper_answer)}"
    return f"found {found}{paper}; declared {declared}"


def _yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"
