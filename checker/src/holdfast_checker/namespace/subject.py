"""Bundle what a check of the namespace needs: its worlds, words, properties and goals."""

from __future__ import annotations

from holdfast_checker.framework.subject import Subject
from holdfast_checker.namespace.drawing import draw
from holdfast_checker.namespace.goals import GOALS
from holdfast_checker.namespace.narration import narrator
from holdfast_checker.namespace.properties import PROPERTIES
from holdfast_checker.namespace.scenes.catalog import LARGEST, SCENES, SMALL
from holdfast_checker.namespace.worlds import build_world

NAMESPACE = Subject(
    name="namespace",
    title="namespace: its operations, writers, leaders and collectors, on a database whose calls are steps",
    build=build_world,
    narrate=lambda world: narrator(),
    properties=("N2", *(name for name in PROPERTIES if name != "N2")),
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    others=LARGEST,
    draw=draw,
)
