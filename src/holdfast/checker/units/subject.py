"""Bundle what a check of computation units needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast.checker.transactions.check_run import Subject
from holdfast.checker.units.drawing import ANY, draw
from holdfast.checker.units.goals import GOALS
from holdfast.checker.units.names import find_property, find_scenes
from holdfast.checker.units.narration import narrator
from holdfast.checker.units.properties import PROPERTIES
from holdfast.checker.units.worlds import build_world

__all__ = ["UNITS"]

UNITS = Subject(
    build=build_world,
    narrator=narrator,
    properties=tuple(PROPERTIES),
    goals=GOALS,
    find_scenes=find_scenes,
    find_property=find_property,
    any=ANY,
    draw=draw,
)
