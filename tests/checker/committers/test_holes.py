"""docs/explanation/holes.md is true: each hole is found as described, and each variant closes the hole it claims to.

The table of the document and its one story are generated: run this file with ``HOLDFAST_WRITE_DOCS=1`` to write them.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from holdfast.commit import Committer
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.properties import PROPERTIES
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.subject import CHECKED
from holdfast_checker.committers.variants import VARIANTS
from holdfast_checker.committers.worlds import Scene, build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.shrink import shrink
from holdfast_checker.narrative.story import Story, tell
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
        variant: what closes it, as in ``magic+messages``; empty if no small change does.
        narrow: changes of the scene in which the variant is tested, to keep out other holes.
    """

    name: str
    committers: tuple[str, ...]
    scene: str
    property_name: str
    variant: str = ""
    narrow: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        return f"holdfast check {self.committers[0]} --scene {self.scene} --property {self.property_name}"


HOLES = (
    Hole(name="last set wins", committers=ALL, scene="partition", property_name="C3", variant="messages"),
    Hole(
        name="displaced directory",
        committers=(*STAGING, "file-v1"),
        scene="speculation",
        property_name="C1",
        variant="messages",
    ),
    Hole(name="mixed merge", committers=("file-v1",), scene="partition", property_name="C2", variant="messages"),
    Hole(name="half-shown job", committers=ALL, scene="reader", property_name="whole-reads"),
    Hole(
        name="abort leaves a half",
        committers=("manifest", "file-v1"),
        scene="failure",
        property_name="C9",
        variant="takes-back",
        narrow={"attempts": 1},
    ),
    Hole(
        name="unsaid success",
        committers=ALL,
        scene="failure",
        property_name="C5",
        variant="takes-back",
        narrow={"attempts": 1},
    ),
    Hole(name="two drivers", committers=ALL, scene="second-driver", property_name="C8", variant="claim"),
    Hole(name="recovered alive", committers=("file-v1", "manifest"), scene="slow-driver", property_name="C6"),
    Hole(name="commit forgets", committers=ALL, scene="asking", property_name="C10", variant="remembers"),
    Hole(
        name="shared _temporary",
        committers=("file-v1",),
        scene="asking",
        property_name="C7",
        variant="own-directory",
    ),
    Hole(
        name="overwrite empties first",
        committers=ALL,
        scene="overwrite",
        property_name="replaced-data",
        variant="replaces-last",
    ),
    Hole(name="scratch left behind", committers=STAGING, scene="second-driver", property_name="no-leftovers"),
)


TOLD = next(hole for hole in HOLES if hole.name == "displaced directory")
"""The hole whose story the document tells."""


def _cases(hole: Hole, suffix: str) -> list[Any]:
    """Return the hole's committers with a suffix; all but the first run only in the slow tests."""
    return [
        pytest.param(hole, f"{name}{suffix}", id=f"{hole.name}-{name}{suffix}", marks=[pytest.mark.slow] if at else [])
        for at, name in enumerate(hole.committers)
    ]


PLACES = [case for hole in HOLES for case in _cases(hole, "")]
CLOSED = [case for hole in HOLES if hole.variant for case in _cases(hole, f"+{hole.variant}")]


def look(committer: Committer, hole: Hole, scene: Scene, *, whole: bool = False) -> Exploration:
    """Explore a scene for the hole's property: completely, or until it breaks."""
    world = build_world(committer, replace(scene, properties=(hole.property_name,)))
    until = (lambda found: False) if whole else (lambda found: bool(found.findings))
    return explore(world, budget=Budget(states=STATES), until=until)


@cache
def found_in(name: str, committer: str) -> Exploration:
    """Return what the hole's scene shows about a committer."""
    hole = next(hole for hole in HOLES if hole.name == name)
    return look(COMPARED[committer], hole, SCENES[hole.scene])


def told(hole: Hole) -> Story:
    """Return the story of a hole, as `holdfast check` tells it."""
    committer, scene = COMPARED[hole.committers[0]], SCENES[hole.scene]
    found = found_in(hole.name, committer.name).findings[hole.property_name]
    world = build_world(committer, replace(scene, properties=(hole.property_name,)))
    counterexample = Counterexample(world.name, found.property, found.broke, found.choices)
    return tell(world, shrink(world, counterexample), job_narrator(world))


# --- the holes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("hole", "name"), PLACES)
def test_it_is_found(hole: Hole, name: str) -> None:
    found = found_in(hole.name, name)
    assert set(found.findings) == {hole.property_name}


@pytest.mark.slow
@pytest.mark.parametrize(("hole", "name"), CLOSED)
def test_the_variant_closes_it(hole: Hole, name: str) -> None:
    """Explores every history of a scene in which the committer itself violates the property."""
    scene = replace(SCENES[hole.scene], **hole.narrow)
    assert look(COMPARED[name.partition("+")[0]], hole, scene).findings
    closed = look(VARIANTS[name], hole, scene, whole=True)
    assert closed.complete and not closed.findings, closed.findings


@pytest.mark.slow
@pytest.mark.parametrize(("hole", "name"), CLOSED)
def test_the_variant_opens_no_other(hole: Hole, name: str) -> None:
    """In the same scene it violates no property that its committer holds; claims remain, as the document says."""
    scene = replace(SCENES[hole.scene], **hole.narrow)
    base, variant = (explore(build_world(CHECKED[one], scene)) for one in (name.partition("+")[0], name))
    assert base.complete and variant.complete
    costs = {"no-leftovers"} if hole.variant == "claim" else set()
    assert variant.findings.keys() - costs <= base.findings.keys() - {hole.property_name}


def test_every_variant_closes_something() -> None:
    assert {f"{name}+{hole.variant}" for hole in HOLES for name in hole.committers if hole.variant} == set(VARIANTS)


# --- the document -----------------------------------------------------------------------------------------------------
def table() -> str:
    """Return the table of holes."""
    lines = ["| hole | breaks | scene | committers | closed by |", "|---|---|---|---|---|"]
    for hole in HOLES:
        anchor = hole.name.replace(" ", "-")
        names = "all" if hole.committers == ALL else ", ".join(f"`{name}`" for name in hole.committers)
        closed = f"`+{hole.variant}`" if hole.variant else "no small change"
        lines.append(f"| [{hole.name}](#{anchor}) | {hole.property_name} | `{hole.scene}` | {names} | {closed} |")
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


def test_the_document_names_every_variant_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"`\+([a-z-]+)`", text)) == {hole.variant for hole in HOLES if hole.variant}


def test_the_words_are_known() -> None:
    for hole in HOLES:
        assert hole.scene in SCENES and hole.property_name in PROPERTIES and set(hole.committers) <= set(ALL)
