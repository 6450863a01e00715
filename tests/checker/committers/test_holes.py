"""docs/explanation/holes.md is true: each hole is found as described.

The table of the document and its one story are generated: run this file with ``HOLDFAST_WRITE_DOCS=1`` to write them.
"""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.properties import RULES
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.shrink import shrink_counterexample
from holdfast_checker.narrative.story import Story, tell_story
from holdfast_checker.specimens import COMPARED

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "holes.md"
WRITE = "HOLDFAST_WRITE_DOCS"
STATES = 150_000
ALL = ("magic", "staging-directory", "staging-partitioned", "manifest", "file-v1")
STAGING = ("staging-directory", "staging-partitioned")


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A way in which a paper's protocol violates a property.

    Attributes:
        committers: those that have it.
        scene, property_name: where it is found.
    """

    name: str
    committers: tuple[str, ...]
    scene: str
    property_name: str

    @property
    def command(self) -> str:
        return f"holdfast check {self.committers[0]} --scene {self.scene} --property {self.property_name}"


HOLES = (
    Hole(name="last set wins", committers=ALL, scene="partition", property_name="C3"),
    Hole(
        name="displaced directory",
        committers=(*STAGING, "file-v1"),
        scene="speculation",
        property_name="C1",
    ),
    Hole(name="mixed merge", committers=("file-v1",), scene="partition", property_name="C2"),
    Hole(name="half-shown job", committers=ALL, scene="reader", property_name="whole-reads"),
    Hole(
        name="abort leaves a half",
        committers=("manifest", "file-v1"),
        scene="failure",
        property_name="C9",
    ),
    Hole(
        name="unsaid success",
        committers=ALL,
        scene="failure",
        property_name="C5",
    ),
    Hole(name="two drivers", committers=ALL, scene="second-driver", property_name="C8"),
    Hole(name="recovered alive", committers=("file-v1", "manifest"), scene="slow-driver", property_name="C6"),
    Hole(name="commit forgets", committers=ALL, scene="asking", property_name="C10"),
    Hole(
        name="shared _temporary",
        committers=("file-v1",),
        scene="asking",
        property_name="C7",
    ),
    Hole(
        name="overwrite empties first",
        committers=ALL,
        scene="overwrite",
        property_name="replaced-data",
    ),
    Hole(name="scratch left behind", committers=STAGING, scene="second-driver", property_name="no-leftovers"),
)


TOLD = next(hole for hole in HOLES if hole.name == "displaced directory")
"""The hole whose story the document tells."""


PLACES = [
    pytest.param(hole, name, id=f"{hole.name}-{name}", marks=[pytest.mark.slow] if number else [])
    for hole in HOLES
    for number, name in enumerate(hole.committers)
]
"""Each hole and its committers; all but the first run only in the slow tests."""


@cache
def found_in(name: str, committer: str) -> Exploration:
    """Return what the hole's scene shows about a committer."""
    hole = next(hole for hole in HOLES if hole.name == name)
    world = build_world(COMPARED[committer], replace(SCENES[hole.scene], properties=(hole.property_name,)))
    return explore_world(world, budget=Budget(states=STATES), until=lambda found: bool(found.findings))


def told(hole: Hole) -> Story:
    """Return the story of a hole, as `holdfast check` tells it."""
    committer, scene = COMPARED[hole.committers[0]], SCENES[hole.scene]
    found = found_in(hole.name, committer.name).findings[hole.property_name]
    world = build_world(committer, replace(scene, properties=(hole.property_name,)))
    return tell_story(world, shrink_counterexample(world, found), job_narrator(world))


# --- the holes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("hole", "name"), PLACES)
def test_it_is_found(hole: Hole, name: str) -> None:
    found = found_in(hole.name, name)
    assert set(found.findings) == {hole.property_name}


# --- the document -----------------------------------------------------------------------------------------------------
def table() -> str:
    """Return the table of holes."""
    lines = ["| hole | breaks | scene | committers |", "|---|---|---|---|"]
    for hole in HOLES:
        anchor = hole.name.replace(" ", "-")
        names = "all" if hole.committers == ALL else ", ".join(f"`{name}`" for name in hole.committers)
        lines.append(f"| [{hole.name}](#{anchor}) | {hole.property_name} | `{hole.scene}` | {names} |")
    return "\n".join(lines)


def example(hole: Hole) -> str:
    """Return a command and its output."""
    story = told(hole)
    lines = [f"$ {hole.command}"]
    for sentence in story.sentences:
        lines += textwrap.wrap(sentence.text, 116, initial_indent=f"{sentence.number:>2}. ", subsequent_indent="    ")
    lines += textwrap.wrap(f"Broken: {story.verdict}", 116, subsequent_indent="    ")
    return "\n".join(["```text", *lines, "```"])


def written(text: str) -> str:
    """Return the document with its generated parts."""
    parts = {"table": table(), TOLD.name: example(TOLD)}
    for name, part in parts.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        assert text.count(start) == text.count(end) == 1, f"docs/explanation/holes.md has no place for {name}"
        before, _, rest = text.partition(start)
        text = f"{before}{start}{part}\n{end}{rest.partition(end)[2]}"
    return text


def test_the_document_says_what_the_checker_finds() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    found = written(text)
    if os.environ.get(WRITE):
        DOCUMENT.write_text(found, encoding="utf-8")
    assert text == found, f"run this test with {WRITE}=1, look at what it wrote, and commit it"


def test_the_document_names_every_hole_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[1:] == [hole.name for hole in HOLES]


def test_the_words_are_known() -> None:
    for hole in HOLES:
        assert hole.scene in SCENES and hole.property_name in RULES and set(hole.committers) <= set(ALL)
