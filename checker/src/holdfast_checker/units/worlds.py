"""Build the simulated worlds in which computation units are checked: jobs, actors, faults and properties."""

from __future__ import annotations

from functools import partial

from holdfast.records.database import Database
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast.transactions.base import Commit
from holdfast.units.jobs import MAP, WORK_LIST, begin_job
from holdfast.units.work_list import create_work_list
from holdfast_checker.framework.subject import GoalTracker, Subject, properties_of_scene
from holdfast_checker.kernel.world import Actor, World
from holdfast_checker.simulated.database import DATABASE, DatabaseCopy, RecordMap
from holdfast_checker.simulated.server import server_actors
from holdfast_checker.simulated.time import CountingIds, ManualClock
from holdfast_checker.units.actors import (
    ActorContext,
    end_run_early,
    forget_job_records,
    make_job_input,
    recreate_table,
    run_actor,
)
from holdfast_checker.units.contents import ENDER, UnitsWorldContext
from holdfast_checker.units.database import UnitsDatabase
from holdfast_checker.units.narration import NARRATOR
from holdfast_checker.units.properties import GOALS, RULES
from holdfast_checker.units.scenes import LARGEST, LIST, SCENES, SMALL, UnitsScene
from holdfast_checker.units.scripts import CELLS, EFFECTS


def build_world(scene: UnitsScene, tracker: GoalTracker | None = None) -> World:
    """Build the simulated world of computation units that a scene declares.

    Args:
        tracker: records the coverage goals that executions reach.
    """
    around, start = _make_tables_and_jobs(scene, tracker)
    actors = [Actor(who, partial(run_actor, around, run), scene.mortal) for who, run in scene.runs.items()]
    if scene.drops:
        actors.append(Actor("administrator", partial(recreate_table, around), mortal=False))
    if scene.forgets:
        actors.append(Actor("operator", partial(forget_job_records, around, scene.forgets), mortal=False))
    if scene.ends:
        actors.append(Actor(ENDER, partial(end_run_early, around, scene.ends), mortal=False))
    actors += server_actors(scene.budgets, scene.crashes, marks=False)
    return World(
        name=f"units/{scene.name}",
        summary=scene.summary,
        actors=tuple(actors),
        resources={DATABASE: UnitsDatabase(start, tuple(actor.name for actor in actors), crashes=scene.crashes)},
        properties=properties_of_scene(scene, RULES, around.setting, tracker),
        budgets=scene.budgets,
        observed=lambda call: False,  # what a step is judged by, its own call has read or written
    )


def _make_tables_and_jobs(scene: UnitsScene, tracker: GoalTracker | None) -> tuple[ActorContext, RecordMap]:
    """Create the tables and jobs that precede every history; return the actors' context and the records."""
    database = DatabaseCopy(RecordMap())
    environment = Environment(clock=ManualClock(), ids=CountingIds(), runner=SerialRunner(), chance=SeededRandom(1))
    db = Database(database, "memory://", environment)
    db.create_table(CELLS)
    db.create_table(EFFECTS)
    for row, value in scene.start.items():
        db.put(CELLS, row, value)
    work = create_work_list(database, LIST, environment) if scene.work else None
    if work is not None:
        database.commit(Commit(puts=dict(work.encode_new_item(key, None, 0) for key in scene.items)))
    driven = {run.job for run in scene.runs.values()} - {run.job for run in scene.runs.values() if not run.drives}
    jobs = {
        name: begin_job(
            database, name, kind=MAP, shards=len(shards), environment=environment, job_input=make_job_input(shards)
        )
        for name, shards in scene.jobs.items()
        if name not in driven
    }
    slots = 1 + max((run.shard for run in scene.runs.values() if run.job == LIST), default=-1)
    if slots:
        jobs[LIST] = begin_job(database, LIST, kind=WORK_LIST, shards=slots, environment=environment)
    setting = UnitsWorldContext(scene=scene, table_id=db.table(CELLS).id, effects_id=db.table(EFFECTS).id)
    fixed = (EFFECTS,) if scene.drops else (CELLS, EFFECTS)
    records = database.records.as_dict()
    known = {key: records[key] for key in (db.table(name).key for name in fixed)}
    around = ActorContext(setting=setting, jobs=jobs, known=known, work=work, tracker=tracker)
    return around, database.records


UNITS = Subject(
    name="units",
    title="units: attempts at tasks, and workers of a work list, on a database whose calls are steps",
    build=build_world,
    narrate=lambda world: NARRATOR,
    rules=RULES,
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    others=LARGEST,
)
