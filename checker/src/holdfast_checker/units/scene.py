"""Describe a world of computation units: jobs, who runs their tasks, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.records.values import Value
from holdfast_checker.framework import subject
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
        mortal: whether actors may crash, if the budgets allow it.
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
