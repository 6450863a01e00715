"""Define the scenes (small worlds) that ``holdfast check units`` explores; most are declared in ``scenes.ini``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.records.values import Value
from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import (
    SceneFields,
    parse_field_list,
    parse_script,
    read_scenes,
    single_fault_scenes,
)
from holdfast_checker.framework.subject import index_by_name
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.units.scripts import Script, Shards

LIST = "list"
"""The name of the work list, and of the job whose tasks are its workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorSpec:
    """Specifies one actor of a scene: a task attempt, a worker of the work list, or a driver.

    Attributes:
        job: the job to which the actor belongs; `LIST` for a worker of the work list.
        shard: which task, or which worker.
        after: the attempt whose death or failure makes Spark start this one; empty to start at any time.
        drives: whether it begins the job, runs all its tasks and ends it: a driver.
        without: units that are missing in this driver's input, although other drivers have them.
        run: the run of the job to which the attempt belongs; only for scenes in which an attempt may outlive its run.
        group, rounds, most_deferred, is_locked: see `UnitSettings`; `is_locked` means buffering on the server.
        reads_ahead: whether a commit also reads the cells that the next units have declared to read.
    """

    job: str = "job"
    shard: int = 0
    after: str = ""
    drives: bool = False
    without: frozenset[str] = frozenset()
    run: str = ""
    group: int = 1
    rounds: int = 7
    most_deferred: int = 100
    is_locked: bool = False
    reads_ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsScene(subject.Scene):
    """The declaration of a simulated world of computation units: its jobs, actors, work list and faults.

    Attributes:
        start: the cells at the start.
        jobs: the units of each task, by job. A job is begun before the history, unless an actor is its driver.
        runs: what each actor runs, by its name.
        work: units of the work list; `items` are on the list at the start, others are emitted.
        fails: units whose function may fail.
        drops: whether an administrator drops the table of cells meanwhile, and creates it again.
        forgets: a job that an administrator forgets meanwhile; empty for none.
        ends: a run of the job ``job`` that its driver gives up meanwhile; empty for none.
        crashes: how often the database crashes; each time it loses any number of commits that are not durable.
        mortal: whether actors may crash, if the budgets allow it; False with locks, since a crash would release them.
        is_large: whether the scene has 100,000 states and more if a call fails or a reply is lost.
    """

    start: Mapping[str, Value] = field(default_factory=dict)
    jobs: Mapping[str, Shards] = field(default_factory=dict)
    runs: Mapping[str, ActorSpec] = field(default_factory=dict)
    work: Mapping[str, Script] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    fails: frozenset[str] = frozenset()
    drops: bool = False
    forgets: str = ""
    ends: str = ""
    crashes: int = 0
    mortal: bool = True
    is_large: bool = False


# --- scenes that are declared -----------------------------------------------------------------------------------------
def _make_scene(name: str, fields: SceneFields) -> UnitsScene:
    """Create a scene from the section of a scene file: fields of `UnitsScene`, and actors with their runs.

    ``units of job 1`` are those of the second task of a job, each with its key and its script; ``units of list`` those
    of the work list. A run names its job and, unless it is the first one, its task, then fields of `ActorSpec`.
    """
    start: dict[str, Value] = dict(fields.take_calls("start"))
    jobs: dict[str, Shards] = {}
    for key in [key for key in fields if key.startswith(_UNITS_OF)]:
        job = key.removeprefix(_UNITS_OF).split()[0]
        jobs[job] = (*jobs.get(job, ()), _parse_units(fields.pop(key)))
    [work] = jobs.pop(LIST, ({},))
    taken = fields.take_fields(UnitsScene)
    runs = {who: _parse_actor_spec(*text.partition(", ")[::2]) for who, text in fields.items()}
    return UnitsScene(name=name, start=start, jobs=jobs, work=work, runs=runs, **taken)


_UNITS_OF = "units of "


def _parse_units(text: str) -> dict[str, Script]:
    return {key: parse_script(script) for key, _colon, script in (one.partition(": ") for one in text.split(" | "))}


def _parse_actor_spec(job: str, options: str) -> ActorSpec:
    name, _space, shard = job.partition(" ")
    return ActorSpec(job=name, shard=int(shard or 0), **parse_field_list(options).take_fields(ActorSpec))


_DECLARED = read_scenes("holdfast_checker.units", _make_scene)

_ONLY_NAMED = ("early-drain-of-others",)
_LOST_CLAIMS = "faulty-lost-claims/emitted"

LARGEST: Mapping[str, UnitsScene] = {name: _DECLARED[name] for name in _ONLY_NAMED}
"""The largest scenes, only if they are named."""

SCENES: Mapping[str, UnitsScene] = {
    name: one for name, one in _DECLARED.items() if name not in (*_ONLY_NAMED, _LOST_CLAIMS)
}
"""The quick scenes."""


def _scenes_with_each_fault(scene: UnitsScene) -> Iterator[UnitsScene]:
    """Yield a scene once per kind of fault: a large one only with crashes, one in which no actor may die without."""
    for one in single_fault_scenes(scene):
        if scene.mortal if Fault.CRASH in one.budgets else not scene.is_large:
            yield one


SMALL: Mapping[str, UnitsScene] = index_by_name(
    _DECLARED[_LOST_CLAIMS],
    *(one for known in SCENES.values() if not known.budgets for one in _scenes_with_each_fault(known)),
)
"""Larger scenes: those without faults, with one fault of each kind; the largest ones only with a crash."""
