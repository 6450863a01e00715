"""Jobs begin, end and are forgotten once, whatever replies are lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from holdfast.errors import ConflictError, NotFoundError, UnavailableError
from holdfast.records.batches import iter_records
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.jobs import MAP, WORK_LIST, begin_job, end_job, forget_job, list_jobs
from holdfast.units.progress import progress_range
from holdfast.units.unit import UnitSettings
from holdfast.units.work_list import find_work_list, open_work_list
from tests.clocks import CountingIds, StillClock
from tests.forgetful_database import ForgetfulDatabase
from tests.unit.records.databases import FAST, SERVERS, open_dbs
from tests.units_world import Shaky, UnitWorld, change_at, fail_at, finish


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect"])
def test_a_job_is_forgotten_although_the_reply_is_lost(fault: str) -> None:
    environment = Environment(clock=StillClock(), ids=CountingIds())
    inner = MemoryBackend(CountingIds())
    job = begin_job(inner, "job", kind=MAP, shards=2, environment=environment)
    shaky = Shaky(inner)
    fail_at(shaky, 2, fault)
    forget_job(shaky, "job", environment)
    assert shaky.calls[1] == "commit"
    assert list_jobs(inner) == []
    assert inner.scan(*progress_range(job.id), 10).records == []
    with pytest.raises(NotFoundError):
        forget_job(inner, "job", environment)


def test_another_job_with_the_name_is_not_forgotten() -> None:
    """It was begun after the old one was forgotten, by a call that has not heard of it yet."""
    environment = Environment(clock=StillClock(), ids=CountingIds())
    inner = MemoryBackend(CountingIds())
    begin_job(inner, "job", kind=MAP, shards=1, environment=environment)
    shaky = Shaky(inner)
    fail_at(shaky, 2, "lost with effect")
    lose = shaky.after

    def after(number: int, name: str) -> None:
        if number == 2:
            begin_job(inner, "job", kind=MAP, shards=3, environment=environment)
        lose(number, name)

    shaky.after = after
    forget_job(shaky, "job", environment)
    assert [one.shards for one in list_jobs(inner)] == [3]


def test_a_job_that_is_forgotten_as_soon_as_it_has_ended_is_not_reported_as_ended() -> None:
    """It looks like one that a failover has lost, with all its units."""
    environment = Environment(clock=StillClock(), ids=CountingIds())
    inner = MemoryBackend(CountingIds())
    job = begin_job(inner, "job", kind=MAP, shards=1, environment=environment)
    finish(inner, job)
    shaky = Shaky(inner)

    def before(_number: int, name: str) -> None:
        if name == "make_durable":
            forget_job(inner, "job", environment)

    shaky.before = before
    with pytest.raises(ConflictError, match=r"forgotten meanwhile, or .* lost it.*: look at what its units"):
        end_job(shaky, job, {"units": 3}, environment)
    assert shaky.calls.count("make_durable") == 1
    assert list_jobs(inner) == []


@pytest.mark.parametrize("driver", ["its own", "another"])
@pytest.mark.parametrize("lost", range(1, 6))
def test_a_job_that_a_failover_has_lost_as_a_whole_is_not_reported_as_finished(lost: int, driver: str) -> None:
    """Its begin, its units and its end are lost before the last look at it."""
    database = ForgetfulDatabase(keeps=False)
    world = UnitWorld(database, name="earlier")
    database.forget_nothing_before()
    world.job = world.begin("job")
    world.run(lambda txn, key, value: txn.add("t", key), "ab", UnitSettings(group=1))
    losses = [lost]

    def lose(_number: int, name: str) -> None:
        if name == "make_durable" and losses:
            database.forget(losses.pop())

    shaky = Shaky(database, lose)
    if driver == "another":
        end_job(database, world.job, {}, world.environment)
        is_finished = begin_job(shaky, "job", kind=MAP, shards=1, environment=world.environment).is_finished
    else:
        is_finished = False
        with suppress(ConflictError):
            is_finished = end_job(shaky, world.job, {}, world.environment).is_finished
    assert not losses
    found = list_jobs(database)[-1]
    assert not is_finished or (found.name == "job" and found.is_finished and len(world.cells) == 2)


@pytest.mark.parametrize("keeps", [True, False], ids=["late flush", "failover"])
def test_a_job_is_forgotten_for_good(keeps: bool) -> None:
    """Whatever is lost before each call; and a late flush loses nothing afterwards."""
    for call in range(1, 5):
        for lost in (1, 2):
            database = ForgetfulDatabase(keeps=keeps)
            world = UnitWorld(database)
            world.run(lambda txn, key, value: None, [1])
            end_job(database, world.job, {}, world.environment)
            database.forget_nothing_before()
            losing = change_at(call, lambda: database.forget(min(lost, database.newest)))  # noqa: B023 # called at once
            forget_job(Shaky(database, losing), "job", world.environment)
            database.forget(database.newest if keeps else 0)
            assert list_jobs(database) == []


def test_a_database_that_loses_each_deletion_of_a_job_is_given_up() -> None:
    database = ForgetfulDatabase(keeps=False)
    world = UnitWorld(database)
    database.forget_nothing_before()
    shaky = Shaky(database, lambda _number, name: name == "make_durable" and database.forget(1))
    with pytest.raises(UnavailableError, match="repeat later"):
        forget_job(shaky, "job", world.environment)
    assert list_jobs(database) == [world.job]


def test_a_number_of_tasks_may_come_from_numpy() -> None:
    """As from a column of a frame; it is recorded as any other integer, and the job goes on with either."""
    environment = Environment(clock=StillClock(), ids=CountingIds())
    db = MemoryBackend(CountingIds())
    two: Any = np.int64(2)
    job = begin_job(db, "job", kind=MAP, shards=two, environment=environment)
    assert begin_job(db, "job", kind=MAP, shards=2, environment=environment) == job
    assert list_jobs(db) == [job]


def test_the_number_of_tasks_is_that_of_the_job_or_the_default() -> None:
    world = UnitWorld(name="old", shards=4)
    for name, shards, expected in (("new", None, 7), ("other", 3, 3), ("old", None, 4), ("old", 4, 4)):
        job = begin_job(world.inner, name, kind=MAP, shards=shards, default=7, environment=world.environment)
        assert job.shards == expected


@pytest.mark.parametrize("unfinished", range(3))
def test_a_job_with_an_unfinished_task_is_not_ended(unfinished: int) -> None:
    world = UnitWorld(shards=3)
    for shard in range(3):
        if shard != unfinished:
            world.task(lambda txn, key, value: None, shard=shard).run([])
    with pytest.raises(ConflictError):
        end_job(world.inner, world.job, {}, world.environment)
    world.task(lambda txn, key, value: None, shard=unfinished).run([])
    assert end_job(world.inner, world.job, {}, world.environment).is_finished


def test_a_job_whose_units_a_failover_has_lost_is_not_ended_but_goes_on() -> None:
    database = ForgetfulDatabase(keeps=False)
    world = UnitWorld(database)
    database.forget_nothing_before()
    keys = list(range(5))

    def step(txn: Any, key: Any, _value: Any) -> None:
        txn.add("t", key, 1)

    world.run(step, keys)
    database.forget(database.newest)
    with pytest.raises(ConflictError, match="run the job again"):
        end_job(database, world.job, {}, world.environment)
    world.run(step, keys)
    assert end_job(database, world.job, {}, world.environment).is_finished
    assert {row: value for (row, _), value in world.cells.items()} == dict.fromkeys(keys, 1)


@pytest.mark.parametrize("backend", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def test_a_job_of_many_tasks_ends_when_its_list_is_empty(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as dbs:
        db, database, environment = dbs.db, dbs.db.backend, dbs.db.environment
        job = begin_job(database, "job", kind=WORK_LIST, shards=3000, environment=environment)
        items = open_work_list(db, "list", create=True)
        work = find_work_list(database, "list")
        items.add(1)
        with pytest.raises(ConflictError, match="the database has lost units"):
            end_job(database, job, {}, environment, work)
        finish(database, job)
        with pytest.raises(ConflictError, match="the work list is not empty"):
            end_job(database, job, {}, environment, work)
        database.commit(Commit(deletes=[key for key, _record in iter_records(database, *work.range)]))
        assert end_job(database, job, {}, environment, work).is_finished
        assert not list(iter_records(database, *progress_range(job.id)))
