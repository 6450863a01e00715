"""Build the simulated worlds in which transactions are checked: actors, databases, faults and properties."""

from __future__ import annotations

from functools import partial

from holdfast.transactions.base import Record
from holdfast_checker.framework.subject import GoalTracker, Subject, properties_of_scene
from holdfast_checker.histories.history import HISTORY
from holdfast_checker.kernel.world import Actor, World
from holdfast_checker.simulated.database import DATABASE, DatabaseResource, SimulatedDatabase
from holdfast_checker.simulated.server import server_actors
from holdfast_checker.transactions.actors import AttemptRecorder, run_group_commits, run_transactions
from holdfast_checker.transactions.narration import NARRATOR
from holdfast_checker.transactions.properties import GOALS, RULES, TransactionPropertyContext
from holdfast_checker.transactions.row_locks import RowLockingTable, StatementSteppedDatabase
from holdfast_checker.transactions.scenes import SCENES, SMALL, TransactionScene
from holdfast_checker.transactions.scripts import encode_text


def build_world(scene: TransactionScene, tracker: GoalTracker | None = None) -> World:
    """Build the simulated world of transactions that a scene declares.

    Args:
        tracker: records the coverage goals that executions reach.
    """
    handle = StatementSteppedDatabase if scene.stepped else SimulatedDatabase
    records = {
        name.encode(): Record(number, encode_text(value), amount)
        for number, (name, (value, amount)) in enumerate(sorted(scene.start.items()), start=1)
    }
    actors = [
        *(Actor(name, partial(run_transactions, handle, works)) for name, works in scene.works.items()),
        *(Actor(name, partial(run_group_commits, handle, scripts)) for name, scripts in scene.groups.items()),
    ]
    if not scene.stepped:
        actors += server_actors(scene.budgets, scene.crashes, marks=True)
    setting = TransactionPropertyContext(tuple(sorted(scene.start.items())))
    return World(
        name=f"transactions/{scene.name}",
        summary=scene.summary,
        actors=tuple(actors),
        resources={
            DATABASE: RowLockingTable(records) if scene.stepped else DatabaseResource(records, crashes=scene.crashes),
            HISTORY: AttemptRecorder(),
        },
        properties=properties_of_scene(scene, RULES, setting, tracker),
        budgets=scene.budgets,
        observed=lambda call: False,  # histories and ends are judged, and keep what was wrong with them
    )


TRANSACTIONS = Subject(
    name="transactions",
    title="transactions: what their callers run, and the steps inside of a commit",
    build=build_world,
    narrate=lambda world: NARRATOR,
    rules=RULES,
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
)
