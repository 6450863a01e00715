"""Bundle what a check of the namespace needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast.checker.namespace.drawing import ANY, draw
from holdfast.checker.namespace.goals import GOALS
from holdfast.checker.namespace.names import find_property, find_scenes
from holdfast.checker.namespace.narration import narrator
from holdfast.checker.namespace.properties import PROPERTIES
from holdfast.checker.namespace.worlds import build_world
from holdfast.checker.transactions.check_run import Subject

__all__ = ["NAMESPACE"]

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
