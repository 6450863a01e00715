"""Bundle what a check of transactions needs: their worlds, words, properties and goals."""

from __future__ import annotations

from holdfast_checker.framework.subject import Subject
from holdfast_checker.transactions.drawing import draw
from holdfast_checker.transactions.goals import GOALS
from holdfast_checker.transactions.narration import narrator
from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.scenes import MANY, SCENES, SMALL
from holdfast_checker.transactions.worlds import build_world

TRANSACTIONS = Subject(
    name="transactions",
    title="transactions: what their callers run, and the steps inside of a commit",
    build=build_world,
    narrate=lambda world: narrator(),
    properties=tuple(PROPERTIES),
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    draw=draw,
    many=MANY,
)
