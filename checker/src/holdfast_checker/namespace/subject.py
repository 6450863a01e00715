"""Bundle what a check of the namespace needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast_checker.namespace.drawing import ANY, draw
from holdfast_checker.namespace.goals import GOALS
from holdfast_checker.namespace.names import find_property, find_scenes
from holdfast_checker.namespace.narration import narrator
from holdfast_checker.namespace.properties import PROPERTIES
from holdfast_checker.namespace.worlds import build_world
from holdfast_checker.transactions.check_run import Subject

NAMESPACE = Subject(
    build=build_world,
    narrator=narrator,
    properties=("N2", *(name for name in PROPERTIES if name != "N2")),
    goals=GOALS,
    find_scenes=find_scenes,
    find_property=find_property,
    any=ANY,
    draw=draw,
)
