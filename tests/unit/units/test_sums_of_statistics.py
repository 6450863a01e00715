"""Test the arithmetic of statistics, and that the record of a task has the figures of all its attempts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from holdfast.errors import FencedError, InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.jobs import WORK_LIST, begin_job, read_task_progress
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ProgressRecord, TaskLedger
from holdfast.units.unit import Unit, UnitSettings
from tests.units_world import Shaky, UnitWorld, units


def filled(factor: int) -> Statistics:
    """Return figures that all differ."""
    found = Statistics()
    for number, one in enumerate(fields(found), 1):
        setattr(found, one.name, type(getattr(found, one.name))(factor * number))
    return found


def test_sums_and_differences() -> None:
    first, second = filled(1), filled(2)
    total = first.plus(second)
    assert total.units == first.units + second.units
    assert total.commit_s == first.commit_s + second.commit_s
    assert total.since(second) == first
    assert filled(1).since(Statistics()) == filled(1)
    assert Statistics.total([first, second]) == total
    assert first == filled(1), "a sum changes no summand"


def test_figures_read_back() -> None:
    found = filled(3)
    assert Statistics.of(found.to_json()) == found
    assert list(found.to_json()) == [one.name for one in fields(found)]
    assert Statistics.of({**found.to_json(), "added_later": 1}) == found


def test_a_record_has_the_figures_of_all_attempts() -> None:
    environment = Environment()
    db = MemoryBackend(environment.ids)
    job = begin_job(db, "sums", kind="map", shards=1, environment=environment)
    twins = [Statistics(), Statistics()]
    first, second = (TaskLedger(db, job, 0, own) for own in twins)
    first.load()
    second.load()
    twins[0].conflicts = 5
    twins[1].conflicts = 100
    assert commit(db, first)
    assert not commit(db, second)
    second.load()
    twins[1].conflicts = 101
    assert commit(db, second)
    assert second.progress.statistics.conflicts == 106
    first.load()
    twins[0].conflicts = 6
    assert commit(db, first)
    assert first.progress.statistics.conflicts == 107
    first.load()
    assert first.progress.statistics.conflicts == 107


def commit(db: MemoryBackend, ledger: TaskLedger) -> bool:
    """Commit what a ledger records about a unit; return whether it took effect."""
    change = ledger.change([Unit.of(1, None)], ())
    outcome = db.commit(Commit(reads=change.reads, puts=change.puts))
    if isinstance(outcome, Committed):
        ledger.committed(outcome.version)
    return isinstance(outcome, Committed)


def test_the_record_of_a_worker_has_the_figures_of_all_attempts() -> None:
    environment = Environment()
    db = MemoryBackend(environment.ids)
    job = begin_job(db, "work", kind=WORK_LIST, shards=1, environment=environment)
    twins = [Statistics(), Statistics()]
    first, second = (ProgressRecord(db, job, 0, own) for own in twins)
    first.load()
    second.load()

    def recorded() -> tuple[int, bool]:
        [found] = read_task_progress(db, job)
        return found.statistics.conflicts, found.is_finished

    twins[0].conflicts = 5
    first.write(is_finished=False)
    twins[0].conflicts = 7
    first.write(is_finished=False)
    assert recorded() == (7, False)
    twins[1].conflicts = 100
    second.write(is_finished=False)
    assert recorded() == (7, False), "the other attempt has written meanwhile, so it reads first"
    second.finish()
    assert recorded() == (107, True)
    twins[0].conflicts = 8
    first.load()
    first.write(is_finished=False)
    assert recorded() == (108, True), "an attempt that goes on does not open again what is finished"


def test_a_worker_is_finished_only_by_its_own_record_of_the_end() -> None:
    environment = Environment()
    db = MemoryBackend(environment.ids)
    job = begin_job(db, "work", kind=WORK_LIST, shards=1, environment=environment)
    progress = ProgressRecord(db, job, 0, Statistics())
    progress.load()
    assert not progress.update_is_finished(db.get_many([progress.key])[progress.key])
    progress.finish()
    own = db.get_many([progress.key])[progress.key]
    assert progress.update_is_finished(own)
    db.commit(Commit(puts={progress.key: own.value}))
    of_twin = db.get_many([progress.key])[progress.key]
    assert not progress.update_is_finished(of_twin)
    assert progress.update_is_finished(of_twin), "it goes on with this one"
    with pytest.raises(FencedError):
        progress.update_is_finished(None)


@pytest.mark.parametrize("conflicts", [1, 2, 5])
def test_runs_of_functions_are_those_of_units_and_their_repetitions(conflicts: int) -> None:
    world = UnitWorld()
    runs: list[Row] = []

    def step(txn: Any, key: Row, value: object) -> None:
        runs.append(key)
        txn.put("t", key, txn.get("t", "hot", default=0))

    def disturb(_number: int, name: str) -> None:
        if name == "commit" and shaky.calls.count("commit") <= conflicts:
            world.db.add("t", "hot")

    shaky = Shaky(world.inner, disturb)
    found = world.task(step, UnitSettings(group=3), database=shaky).run(units(range(7)))
    assert (found.units, found.conflicts) == (7, conflicts)
    assert len(runs) == found.units + found.reruns


def test_a_failure_on_what_is_true_is_not_stale() -> None:
    world = UnitWorld()

    def fail(txn: Any, key: Row, value: object) -> None:
        before = txn.get("t", "hot")
        if len(runs) == 0:
            world.db.put("t", "hot", 1)
        runs.append(before)
        raise ValueError(before)

    runs: list[object] = []
    task = world.task(fail)
    with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
        task.run(units([1]))
    assert runs == [None, 1]
    assert task._execution.statistics.stale == 1, "the first run, which has read what was no longer true"
