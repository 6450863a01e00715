"""Build worlds of transactions: who runs what, on which kind of database, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.transactions.base import Record
from holdfast_checker.framework import subject
from holdfast_checker.framework.subject import GoalTracker, judged
from holdfast_checker.histories.history import HISTORY
from holdfast_checker.kernel.process import Actor
from holdfast_checker.kernel.world import World
from holdfast_checker.transactions.actors import AttemptRecorder, Work, group_of, one_after_the_other
from holdfast_checker.transactions.database import DATABASE, Database
from holdfast_checker.transactions.handles import SimulatedDatabase, SteppedDatabase
from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.row_locks import Table
from holdfast_checker.transactions.scripts import Content, Script, to_bytes
from holdfast_checker.transactions.server import server


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(subject.Scene):
    """A short description of a world.

    Attributes:
        works: by actor, its transactions, one after the other.
        groups: by actor, the scripts that it commits as a group.
        start: the records at the start.
        crashes: how often the database crashes, and loses any number of the newest commits; not with `stepped`.
        stepped: whether each statement inside of a commit is a step; if not, a commit is one step.
        mortal: whether actors may crash, if the budgets allow it.
    """

    works: Mapping[str, tuple[Work, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Script, ...]] = field(default_factory=dict)
    start: Mapping[str, Content] = field(default_factory=dict)
    crashes: int = 0
    stepped: bool = False
    mortal: bool = True


def build_world(scene: Scene, tracker: GoalTracker | None = None) -> World:
    """Build the world of a scene.

    Args:
        tracker: records the goals that histories reach.
    """
    handle = SteppedDatabase if scene.stepped else SimulatedDatabase
    records = {
        name.encode(): Record(number, to_bytes(value), amount)
        for number, (name, (value, amount)) in enumerate(sorted(scene.start.items()), start=1)
    }
    actors = [
        *(Actor(name, one_after_the_other(handle, works), scene.mortal) for name, works in scene.works.items()),
        *(Actor(name, group_of(handle, scripts), scene.mortal) for name, scripts in scene.groups.items()),
    ]
    if not scene.stepped:
        actors += server(scene.budgets, scene.crashes, marks=True)
    start = tuple(sorted(scene.start.items()))
    properties = tuple(make(start) for make in judged(scene, PROPERTIES))
    return World(
        name=f"transactions/{scene.name}",
        summary=scene.summary,
        actors=tuple(actors),
        resources={
            DATABASE: Table(records) if scene.stepped else Database(records, crashes=scene.crashes),
            HISTORY: AttemptRecorder(),
        },
        properties=properties if tracker is None else (*properties, tracker.watching()),
        budgets=scene.budgets,
        observed=lambda call: False,  # histories and ends are judged, and keep what was wrong with them
    )
