"""Build worlds of computation units: jobs that were begun, who runs their tasks, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.records.database import Database
from holdfast.records.keys import cell_key
from holdfast.records.tables import Table
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast.transactions.base import Commit
from holdfast.units.jobs import MAP, WORK_LIST, begin_job
from holdfast.units.work_list import create_work_list
from holdfast_checker.framework.subject import GoalTracker, Subject, judged
from holdfast_checker.kernel.world import Actor, World
from holdfast_checker.simulated.database import DATABASE, Copy, Records
from holdfast_checker.simulated.server import server
from holdfast_checker.simulated.time import CountingIds, StillClock
from holdfast_checker.units.actors import Surroundings, attempt, dropper, ender, forgetter, input_of
from holdfast_checker.units.contents import Setting
from holdfast_checker.units.database import UnitsDatabase
from holdfast_checker.units.narration import NARRATOR
from holdfast_checker.units.properties import GOALS, PROPERTIES
from holdfast_checker.units.scenes import LARGEST, LIST, SCENES, SMALL, Scene, draw
from holdfast_checker.units.scripts import CELLS, EFFECTS, TIMES

_ENDER = "driver that gives up"


def build_world(scene: Scene, tracker: GoalTracker | None = None) -> World:
    """Build the world of a scene.

    Args:
        tracker: records the goals that histories reach.
    """
    around, start = _begin(scene, tracker)
    actors = [Actor(who, attempt(around, run), scene.mortal) for who, run in scene.runs.items()]
    if scene.drops:
        actors.append(Actor("administrator", dropper(around), mortal=False))
    if scene.forgets:
        actors.append(Actor("operator", forgetter(around, scene.forgets), mortal=False))
    if scene.ends:
        actors.append(Actor(_ENDER, ender(around, scene.ends), mortal=False))
    actors += server(scene.budgets, scene.crashes, marks=False)
    properties = tuple(make(around.setting) for make in judged(scene, PROPERTIES))
    return World(
        name=f"units/{scene.name}",
        summary=scene.summary,
        actors=tuple(actors),
        resources={DATABASE: UnitsDatabase(start, tuple(actor.name for actor in actors), crashes=scene.crashes)},
        properties=properties if tracker is None else (*properties, tracker.watching()),
        budgets=scene.budgets,
        observed=lambda call: False,  # what a step is judged by, its own call has read or written
    )


def _begin(scene: Scene, tracker: GoalTracker | None) -> tuple[Surroundings, Records]:
    """Make tables and jobs before the history; return what there is then."""
    database = Copy(Records())
    environment = Environment(clock=StillClock(), ids=CountingIds(), runner=SerialRunner(), chance=SeededRandom(1))
    db = Database(database, "memory://", environment)
    db.create_table(CELLS)
    db.create_table(EFFECTS)
    for row, value in scene.start.items():
        db.put(CELLS, row, value)
    work = create_work_list(database, LIST, environment) if scene.work else None
    if work is not None:
        database.commit(Commit(puts=dict(work.new_item(key, None, 0) for key in scene.items)))
    driven = {run.job for run in scene.runs.values()} - {run.job for run in scene.runs.values() if not run.drives}
    jobs = {
        name: begin_job(
            database, name, kind=MAP, shards=len(shards), environment=environment, job_input=input_of(shards)
        )
        for name, shards in scene.jobs.items()
        if name not in driven
    }
    slots = 1 + max((run.shard for run in scene.runs.values() if run.job == LIST), default=-1)
    if slots:
        jobs[LIST] = begin_job(database, LIST, kind=WORK_LIST, shards=slots, environment=environment)
    setting = _setting(scene, db.table(CELLS), db.table(EFFECTS))
    fixed = (EFFECTS,) if scene.drops else (CELLS, EFFECTS)
    records = database.records.as_dict()
    known = {key: records[key] for key in (db.table(name).key for name in fixed)}
    around = Surroundings(setting=setting, jobs=jobs, known=known, work=work, tracker=tracker, scripts=setting.scripts)
    return around, database.records


def _setting(scene: Scene, cells: Table, effects: Table) -> Setting:
    def wanted(who: str) -> Iterator[str]:
        run = scene.runs[who]
        if run.job != LIST:
            for shard, units in enumerate(scene.jobs[run.job]):
                yield from (unit for unit in units if unit not in run.without and (run.drives or shard == run.shard))

    def effects_of(units: Iterable[str]) -> tuple[bytes, ...]:
        return tuple(cell_key(effects.id, unit, TIMES.encode()) for unit in units)

    return Setting(
        start=tuple(sorted(scene.start.items())),
        jobs=scene.jobs,
        fails=scene.fails,
        forgets=bool(scene.forgets),
        loses=scene.crashes > 0,
        drops=scene.drops,
        table_id=cells.id,
        drivers=frozenset(who for who, run in scene.runs.items() if run.drives),
        work=scene.work,
        items=scene.items,
        workers=frozenset(who for who, run in scene.runs.items() if run.job == LIST),
        ends=bool(scene.ends),
        only={who: others - run.without for who, run in scene.runs.items() if (others := _left_out(scene, who))},
        wanted={
            **{who: effects_of(wanted(who)) for who in scene.runs},
            _ENDER: effects_of(unit for units in scene.jobs.get("job", ()) for unit in units),
        },
    )


def _left_out(scene: Scene, who: str) -> frozenset[str]:
    """Return the units that the inputs of all other drivers lack."""
    others = [run.without for name, run in scene.runs.items() if run.drives and name != who]
    return frozenset.intersection(*others) if scene.runs[who].drives and others else frozenset()


UNITS = Subject(
    name="units",
    title="units: attempts at tasks, and workers of a work list, on a database whose calls are steps",
    build=build_world,
    narrate=lambda world: NARRATOR,
    properties=tuple(PROPERTIES),
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    others=LARGEST,
    draw=draw,
)
