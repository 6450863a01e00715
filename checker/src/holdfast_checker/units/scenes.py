"""Make the scenes that ``holdfast check units`` explores: ``scenes.ini`` has one for each way to collide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.records.values import Value
from holdfast.runtime import SeededRandom
from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import FAULTY, Fields, by_name, calls_of, read_scenes, with_one_fault
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.units.contents import Shards
from holdfast_checker.units.scripts import Script

LIST = "list"
"""The name of the work list, and of its job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An attempt.

    Attributes:
        job: `LIST` for a worker of the work list.
        shard: which task, or which worker.
        after: the attempt whose death or failure makes Spark start this one; empty to start at any time.
        drives: whether it begins the job, runs all its tasks and ends it: a driver.
        without: units that are not in the input that a driver is given, although others' inputs have them.
        run: the run of the job to which the attempt belongs, if a run may end before its attempts.
        group, rounds, most_deferred, is_locked: see `UnitSettings`; the last is buffering on the server.
        reads_ahead: whether a commit reads the cells of the units that follow, which they name beforehand.
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
class Scene(subject.Scene):
    """A short description of a world.

    Attributes:
        start: the cells at the start.
        jobs: the units of each task, by job. A job is begun before the history, unless a run drives it.
        runs: by actor.
        work: units of the work list; `items` are on the list at the start, others are emitted.
        fails: units whose function may fail.
        drops: whether an administrator drops the table of cells meanwhile, and creates it again.
        forgets: a job that an administrator forgets meanwhile; empty for none.
        ends: a run of the job ``job`` that its driver gives up meanwhile; empty for none.
        crashes: how often the database crashes; each time it loses any number of commits that are not durable.
        mortal: whether actors may crash, if the budgets allow it: the locks of the dead would be released.
        is_large: whether the scene has 100,000 states and more if a call fails or a reply is lost.
    """

    start: Mapping[str, Value] = field(default_factory=dict)
    jobs: Mapping[str, Shards] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
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
def _make(name: str, fields: Fields) -> Scene:
    """Make a scene of its section: fields with the names of attributes, and actors with their runs.

    ``units of job 1`` are those of the second task of a job, each with its key and its script; ``units of list`` those
    of the work list. A run names its job and, unless it is the first one, its task, then fields of `Run`.
    """
    common, start, items = fields.common(name), fields.calls("start"), fields.names("items")
    jobs: dict[str, Shards] = {}
    for key in [key for key in fields if key.startswith(_UNITS_OF)]:
        job = key.removeprefix(_UNITS_OF).split()[0]
        jobs[job] = (*jobs.get(job, ()), _units(fields.pop(key)))
    [work] = jobs.pop(LIST, ({},))
    return Scene(
        **common,
        start=dict(start),
        jobs=jobs,
        work=work,
        items=items,
        fails=frozenset(fields.names("fails")),
        drops=fields.flag("drops"),
        forgets=fields.pop("forgets", ""),
        ends=fields.pop("ends", ""),
        crashes=fields.number("crashes"),
        mortal=not fields.flag("immortal"),
        is_large=bool(fields.pop("large", "")),
        runs={who: _run(text) for who, text in fields.items()},
    )


_UNITS_OF = "units of "


def _units(text: str) -> dict[str, Script]:
    return {key: calls_of(script) for key, _colon, script in (one.partition(": ") for one in text.split(" | "))}


def _run(text: str) -> Run:
    job, *options = text.split(", ")
    name, _space, shard = job.partition(" ")
    given = dict(option.partition("=")[::2] for option in options)
    return Run(
        job=name,
        shard=int(shard or 0),
        after=given.get("after", ""),
        drives="drives" in given,
        without=frozenset(given.get("without", "").split()),
        run=given.get("run", ""),
        group=int(given.get("group", 1)),
        rounds=int(given.get("rounds", 7)),
        most_deferred=int(given.get("most_deferred", 100)),
        is_locked="locks" in given,
        reads_ahead="ahead" in given,
    )


_DECLARED = read_scenes("holdfast_checker.units", _make)

_ONLY_NAMED = ("early-drain-of-others",)
_LOST_CLAIMS = "faulty-lost-claims/emitted"

LARGEST: Mapping[str, Scene] = {name: _DECLARED[name] for name in _ONLY_NAMED}
"""The largest scenes, only if they are named."""

SCENES: Mapping[str, Scene] = {
    name: scene for name, scene in _DECLARED.items() if name not in (*_ONLY_NAMED, _LOST_CLAIMS)
}
"""The quick scenes."""


def _with_faults(scene: Scene) -> Iterator[Scene]:
    """Yield a scene with each kind of fault: large ones only with a crash, and immortal ones without."""
    for one in with_one_fault(scene):
        if scene.mortal if Fault.CRASH in one.budgets else not scene.is_large:
            yield one


SMALL: Mapping[str, Scene] = by_name(
    [_DECLARED[_LOST_CLAIMS]], *(_with_faults(known) for known in SCENES.values() if not known.budgets)
)
"""Larger scenes: those without faults, with one fault of each kind; the largest ones only with a crash."""


# --- random scenes ----------------------------------------------------------------------------------------------------
_ROWS = ("w1", "w2", "x", "y")


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed: what jobs do, who runs their tasks, and what can go wrong."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    locks = chance.happens(0.25)
    jobs: dict[str, Shards] = {
        "job": tuple(_random_units(chance, letter) for letter in "ab"[: chance.pick((1, 1, 2))]),
        "other": (_random_units(chance, "p"),),
    }
    runs = {f"task {shard}": _random_run(chance, "job", shard, locks) for shard in range(len(jobs["job"]))}
    runs["other"] = _random_run(chance, "other", 0, locks)
    if chance.happens(0.6):
        runs["twin"] = _random_run(chance, "job", 0, locks)
    work: dict[str, Script] = {}
    if chance.happens(0.4):
        work = {key: _random_script(chance) for key in ("u", "v", "z")}
        work["u"] = (*work["u"], ("emit", "z"))
        for slot in range(chance.pick((0, 1, 2))):
            runs[f"worker {slot}"] = _random_run(chance, LIST, slot, locks)
        if "worker 0" not in runs:  # whoever adds when workers are done is too late
            jobs["other"] = ({**jobs["other"][0], "q": (("emit", "v"),)},)
    budgets = {
        fault: chance.pick((1, 2)) for fault in FAULTY if not (locks and fault is Fault.CRASH) and chance.happens(0.5)
    }
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random units",
        start={row: chance.pick((0, 5)) for row in _ROWS if chance.happens(0.5)},
        jobs=jobs,
        runs=runs,
        work=work,
        items=("u",) if work else (),
        mortal=not locks,
        budgets={**budgets, **({Fault.CLOCK: 2} if work else {})},
        reached=(),
    )


def _random_run(chance: SeededRandom, job: str, shard: int, locks: bool) -> Run:
    return Run(
        job=job,
        shard=shard,
        group=chance.pick((1, 2, 3)),
        rounds=chance.pick((1, 2)) if locks else 7,
        most_deferred=chance.pick((1, 2, 100)),
        is_locked=locks and chance.happens(0.5),
        reads_ahead=chance.happens(0.3),
    )


def _random_units(chance: SeededRandom, letter: str) -> dict[str, Script]:
    return {f"{letter}{at}": _random_script(chance) for at in range(chance.pick((1, 2, 2, 3, 4)))}


def _random_script(chance: SeededRandom) -> Script:
    steps: list[tuple[Any, ...]] = []
    for _ in range(chance.pick((1, 1, 2, 3))):
        row, other = chance.shuffled(_ROWS)[:2]
        steps.append(
            chance.pick(
                (
                    *((kind, row) for kind in ("read", "increment", "increment", "delete")),
                    *(("put", row, 7), ("add", row, chance.pick((1, 2))), ("create", row, 3)),
                    *(("move", row, other), ("count", "w", other)),
                )
            )
        )
    return tuple(steps)
