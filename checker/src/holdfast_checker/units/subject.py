"""Bundle what a check of computation units needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast_checker.framework.subject import Subject
from holdfast_checker.units.drawing import draw
from holdfast_checker.units.goals import GOALS
from holdfast_checker.units.narration import narrator
from holdfast_checker.units.properties import PROPERTIES
from holdfast_checker.units.scenes import LARGEST, SCENES, SMALL
from holdfast_checker.units.worlds import build_world

UNITS = Subject(
    name="units",
    title="units: attempts at tasks, and workers of a work list, on a database whose calls are steps",
    build=build_world,
    narrate=lambda world: narrator(),
    properties=tuple(PROPERTIES),
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    others=LARGEST,
    draw=draw,
)
