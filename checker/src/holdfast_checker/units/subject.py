"""Bundle what a check of computation units needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast_checker.transactions.check_run import Subject
from holdfast_checker.units.drawing import ANY, draw
from holdfast_checker.units.goals import GOALS
from holdfast_checker.units.names import find_property, find_scenes
from holdfast_checker.units.narration import narrator
from holdfast_checker.units.properties import PROPERTIES
from holdfast_checker.units.worlds import build_world

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
