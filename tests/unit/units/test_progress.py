"""The record of a task's progress: what it refuses, what it notices, and what it stops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    InputChangedError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.records.row_keys import Row
from holdfast.transactions.base import Commit, Record
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.job_input import JobInput
from holdfast.units.jobs import (
    MAP,
    REDUCE,
    WORK_LIST,
    begin_job,
    end_job,
    find_job,
    forget_job,
    read_task_progress,
    record_job_input,
    record_run_failure,
)
from holdfast.units.progress import Statistics, TaskProgress, progress_key
from holdfast.units.unit import Unit, UnitSettings
from holdfast.units.unit_loop import retry_while_unavailable
from holdfast.units.work_list import decode_claim
from tests.units_world import Death, Shaky, UnitWorld, change_at, replayed, units

_KEYS = ("a", "b", "c", "d", "e", "f")
_ONE_BY_ONE = UnitSettings(group=1)


def count(txn: Any, key: Row, value: object) -> None:
    txn.add("t", key)


def _dying(world: UnitWorld, after: int) -> Shaky:
    """Return a database that dies before the next commit when so many units are done."""

    def before(number: int, name: str) -> None:
        if name == "commit" and world.progress.done >= after:
            raise Death

    return Shaky(world.inner, before)


# --- a database that loses commits ------------------------------------------------------------------------------------
class _Forgetful(MemoryBackend):
    """A database that can crash, and come back with what was on its disk."""

    def save(self) -> None:
        self._saved = dict(self._records), list(self._keys)

    def make_durable(self) -> None:
        self.save()

    def crash(self) -> None:
        self._records, self._keys = dict(self._saved[0]), list(self._saved[1])


def hot(txn: Any, key: Row, value: object) -> None:
    """Read what others change if it is unit b, so that it is deferred."""
    if key == "b":
        txn.put("t", "seen", txn.get("t", "hot", default=0))
    txn.add("t", key)


@pytest.mark.parametrize("group", [1, 3, 32])
@pytest.mark.parametrize("conflicts", [0, 2])
@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_lost_commits_are_noticed(stride: int, conflicts: int, group: int) -> None:
    """Wherever the crash is, and whatever it loses, no unit is missing at the end, and none is done twice."""
    settings = UnitSettings(group=group)
    noticed = 0
    most = 30 if stride == 1 else 18
    for saved in range(1, most):
        for crashed in range(saved + 1, most, stride):
            inner = _Forgetful()
            world = UnitWorld(inner)
            inner.save()
            left = [conflicts]

            def before(
                number: int,
                name: str,
                saved: int = saved,
                crashed: int = crashed,
                inner: _Forgetful = inner,
                left: list[int] = left,
                world: UnitWorld = world,
            ) -> None:
                if number == saved:
                    inner.save()
                if number == crashed:
                    inner.crash()
                if name == "commit" and left[0]:
                    left[0] -= 1
                    world.db.add("t", "hot")

            shaky = Shaky(inner, before)
            try:
                world.task(hot, settings, database=shaky).run(units(_KEYS))
            except ConflictError:
                noticed += 1
                world.task(hot, settings).run(units(_KEYS))
            else:
                inner.crash()  # what the task has said is durable
            if len(shaky.calls) < saved:
                break
            assert all(world.cells[key, "value"] == 1 for key in _KEYS), (saved, crashed)
            assert world.progress.is_finished and not world.progress.deferred
    assert noticed


# --- a job that is forgotten ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("group", [1, 32])
def test_a_forgotten_job_stops_its_tasks(group: int, again: bool) -> None:
    settings = UnitSettings(group=group)
    world = UnitWorld()
    shaky = Shaky(world.inner)
    world.task(count, settings, database=shaky).run(units(_KEYS))
    for call in range(1, len(shaky.calls)):  # the last one makes durable what is done
        world = UnitWorld()

        def forget(world: UnitWorld = world) -> None:
            forget_job(world.inner, "job", world.environment)
            if again:
                world.begin("job")

        shaky = Shaky(world.inner, change_at(call, forget))
        with pytest.raises(FencedError, match=r"the job was forgotten meanwhile"):
            world.task(count, settings, database=shaky).run(units(_KEYS))
        assert all(one == 1 for one in world.cells.values())
        with pytest.raises(ConflictError, match="before you run it again"):
            end_job(world.inner, world.job, {}, world.environment)
        if not again:
            assert world.inner.get_many([progress_key(world.job.id, 0)]) == {}


@pytest.mark.parametrize("group", [1, 32])
def test_nothing_takes_effect_after_the_end_of_a_run(group: int) -> None:
    """Wherever the attempt is, and however often its run is ended; the next run does the rest."""
    settings = UnitSettings(group=group)
    shaky = Shaky(UnitWorld().inner)
    world = UnitWorld(shaky.inner)
    world.task(count, settings, database=shaky, run="first").run(units(_KEYS))
    for call in range(1, shaky.calls.index("make_durable") + 1):
        world = UnitWorld()
        seen: list[object] = []

        def end(world: UnitWorld = world, seen: list[object] = seen) -> None:
            for _ in range(2):
                record_run_failure(world.inner, world.job, "first", world.environment)
            seen.append(world.cells)

        shaky = Shaky(world.inner, change_at(call, end))
        with pytest.raises(FencedError, match="the run of the job has failed"):
            world.task(count, settings, database=shaky, run="first").run(units(_KEYS))
        assert seen == [world.cells]
        with pytest.raises(FencedError):
            world.task(count, settings, run="first").run(units(_KEYS))
        done = len(world.cells)
        assert world.task(count, settings, run="second").run(units(_KEYS)).skipped == done
        assert world.cells == replayed(count, _KEYS)
        assert world.progress.is_finished


def test_a_crash_of_the_database_does_not_undo_the_end_of_a_run() -> None:
    """It crashes once before it is asked to make that durable, and once afterwards."""
    inner = _Forgetful()
    world = UnitWorld(inner)
    inner.save()
    crashes = iter([inner.crash])

    def before(_number: int, name: str) -> None:
        if name == "make_durable":
            for crash in crashes:
                crash()

    record_run_failure(Shaky(inner, before), world.job, "first", world.environment)
    inner.crash()
    with pytest.raises(FencedError, match="the run of the job has failed"):
        world.task(count, run="first").run(units(_KEYS))


def test_the_end_of_a_run_leaves_nothing_of_a_finished_job() -> None:
    world = UnitWorld()
    world.run(count, _KEYS)
    ended = end_job(world.inner, world.job, {}, world.environment)
    record_run_failure(world.inner, world.job, "first", world.environment)
    assert find_job(world.inner, "job") == ended
    assert world.inner.get_many([progress_key(world.job.id, 0)]) == {}


def test_many_failed_runs_do_not_make_the_record_of_a_job_large() -> None:
    world = UnitWorld()
    for number in range(120):
        record_run_failure(world.inner, world.job, f"run {number}", world.environment)
    runs = find_job(world.inner, "job").ended_runs
    assert (len(runs), runs[-1]) == (100, "run 119")


def test_the_first_end_of_a_job_counts() -> None:
    """The progress is deleted by then, so the report of a second driver would be empty."""
    world = UnitWorld()
    world.run(count, _KEYS)
    first = end_job(world.inner, world.job, {"units": len(_KEYS)}, world.environment)
    assert end_job(world.inner, world.job, {"units": 0}, world.environment) == first
    assert find_job(world.inner, "job") == first


def test_a_job_that_is_begun_again_while_it_is_forgotten_keeps_its_records() -> None:
    """Another process has forgotten the job and begun it again, between the look at its name and the deletion."""
    world = UnitWorld()

    def begin_again() -> None:
        forget_job(world.inner, "job", world.environment)
        world.job = world.begin("job", 2)

    shaky = Shaky(world.inner)
    shaky.before = change_at(2, begin_again)
    forget_job(shaky, "job", world.environment)
    found = world.inner.scan(b"Sj", b"Sk", 10).records
    left = world.inner.scan(b"Sp", b"Sq", 10).records
    assert (len(found), len(left)) in ((0, 0), (1, 2)), "the job, or its progress, is left behind"


# --- next and deferred ------------------------------------------------------------------------------------------------
def test_the_record_names_units_that_are_put_off() -> None:
    world = UnitWorld()
    left = [1, 1]

    def before(number: int, name: str) -> None:
        if name == "commit" and left and "b" not in [key for key, _column in world.cells] and world.progress.done:
            left.pop()
            world.db.add("t", "hot")
        if name == "commit" and world.progress.done == 3:
            raise Death

    with pytest.raises(Death):
        world.task(hot, _ONE_BY_ONE, database=Shaky(world.inner, before)).run(units(_KEYS))
    progress = world.progress
    assert progress.done == 3
    assert list(progress.deferred) == [Unit.of("b", None).id]
    assert ("b", "value") not in world.cells
    statistics = world.run(hot, _KEYS)
    assert (statistics.units, statistics.skipped) == (3, 3)
    assert all(world.cells[key, "value"] == 1 for key in _KEYS)


def test_many_lost_replies_that_are_not_in_a_row() -> None:
    """Ten of eleven commits lose their replies and their effects: the database is not taken for one that loses all."""
    world = UnitWorld()
    keys = range(40)

    def before(number: int, name: str) -> None:
        if name == "commit" and shaky.calls.count("commit") % 11:
            lost.append(number)
            raise OutcomeUnknownError("the reply was lost")

    lost: list[int] = []
    shaky = Shaky(world.inner, before)
    statistics = world.task(count, _ONE_BY_ONE, database=shaky).run(units(keys))
    assert statistics.units == len(keys) and statistics.unknown == len(lost) >= 10 * len(keys)
    assert world.cells == replayed(count, keys)


@pytest.mark.parametrize("keys", [_KEYS, ()])
def test_a_database_that_loses_every_reply(keys: Sequence[str]) -> None:
    world = UnitWorld()

    def before(number: int, name: str) -> None:
        if name == "commit":
            raise OutcomeUnknownError("the reply was lost")

    with pytest.raises(UnavailableError, match=r"loses one reply after the other|cannot be recorded"):
        world.task(count, database=Shaky(world.inner, before)).run(units(keys))
    assert world.cells == {}


def test_a_database_that_stays_away_is_asked_less_and_less_often() -> None:
    world = UnitWorld()
    world.clock.step_s = 0.0
    waits, found = world.clock.waits, Statistics()
    for patience_s, error in ((60.0, StorageFullError), (0.0, UnavailableError), (60.0, UnavailableError)):
        assert not waits, "a full disk is not waited for"
        with pytest.raises(error):
            retry_while_unavailable(partial(_raise, error), patience_s, world.environment, found)
    for number, wait_s in enumerate(waits):
        longest_s = min(0.05 * 2**number, 2.0)
        assert 0 <= wait_s <= longest_s
    assert max(waits) > 1.8
    assert sum(waits[:-1]) < 60.0 <= sum(waits)
    assert found.unavailable == len(waits)


def _raise(error: type[Exception]) -> None:
    raise error("the database is away")


def test_statistics_of_several_attempts_add_up() -> None:
    world = UnitWorld()
    for done in (2, 4):
        with pytest.raises(Death):
            world.task(count, UnitSettings(group=2), database=_dying(world, done)).run(units(_KEYS))
    world.run(count, _KEYS, UnitSettings(group=2))
    total = read_task_progress(world.inner, world.job)[0].statistics
    assert (total.units, total.groups) == (6, 3)
    assert total.skipped >= 4


@pytest.mark.parametrize(
    "damage",
    [{"last": "YQ=!="}, {"last": "YQ"}, {"done": None}, {"deferred": ["!"]}, {"deferred": 3}, {"statistics": 1}],
)
def test_a_damaged_record_of_progress_is_told(damage: dict[str, object]) -> None:
    whole = json.loads(TaskProgress(last=b"a", statistics=Statistics()).to_bytes())
    assert TaskProgress.of(json.dumps(whole).encode()).last == b"a"
    with pytest.raises(CorruptDataError):
        TaskProgress.of(json.dumps({**whole, **damage}).encode())
    with pytest.raises(CorruptDataError, match="a claim of a work list"):
        decode_claim(b"key", Record(1, json.dumps([["YQ==", "YQ=!="]]).encode()))


# --- what a twin has recorded -----------------------------------------------------------------------------------------
def _record(world: UnitWorld, keys: Sequence[str], deferred: Sequence[str] = ()) -> None:
    """Record that another attempt has come to the last of some units, and has deferred some of them."""
    waiting = [unit.id for unit in units(deferred)]
    progress = TaskProgress(
        last=units(keys)[-1].id, done=len(keys) - len(waiting), deferred=waiting, statistics=Statistics()
    )
    world.inner.commit(Commit(puts={progress_key(world.job.id, 0): progress.to_bytes()}))


def test_what_a_twin_has_put_off_meanwhile_runs_at_the_end() -> None:
    """The twin has deferred one unit of the group that this attempt was about to commit, and then died."""
    world = UnitWorld()
    ran: list[object] = []

    def step(txn: Any, key: str, value: object) -> None:
        ran.append(key)
        count(txn, key, value)

    calls = iter([partial(_record, world, ("a", "b"), ("a",))])

    def before(_number: int, name: str) -> None:
        if name == "commit":
            for one in calls:
                one()

    world.task(step, database=Shaky(world.inner, before)).run(units(("a", "b", "c")))
    assert ran == ["a", "b", "c", "c", "a"]
    assert world.cells == replayed(count, ("a", "c"))
    assert world.progress.is_finished
    assert world.progress.done == 3


@pytest.mark.parametrize("again", ["a", "b"])
def test_a_unit_that_was_done_and_is_put_off_again_was_lost(again: str) -> None:
    """After a crash, a twin has put off what this attempt had done: it may even be the last unit that was."""
    world = UnitWorld()

    def before(_number: int, name: str) -> None:
        if name == "commit" and world.progress.done == 2:
            _record(world, ("a", "b"), (again,))

    with pytest.raises(ConflictError, match="has lost commits"):
        world.task(count, _ONE_BY_ONE, database=Shaky(world.inner, before)).run(units(("a", "b", "c")))


@pytest.mark.parametrize("kind", [REDUCE, WORK_LIST])
def test_a_job_of_another_kind_is_refused(kind: str) -> None:
    world = UnitWorld()
    record_job_input(world.inner, world.job, JobInput([]), world.environment)
    with pytest.raises(InputChangedError, match=r"of another kind: .*; choose another name only if.* kind='map'"):
        begin_job(world.inner, "job", kind=kind, shards=1, environment=world.environment)


def test_a_job_goes_on_with_its_key() -> None:
    world = UnitWorld()
    record_job_input(world.inner, world.job, JobInput([]), world.environment)
    with pytest.raises(InputChangedError, match=r"another key.*; choose another name only if"):
        begin_job(world.inner, "job", kind=MAP, shards=1, keys="pairs", environment=world.environment)


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize("changed", [{"kind": REDUCE}, {"keys": "pairs"}, {"shards": 2}])
def test_nobody_is_told_to_run_again_what_is_done(is_finished: bool, changed: dict[str, Any]) -> None:
    """Under another name, units that have taken effect would do so once more."""
    world = UnitWorld()
    record_job_input(world.inner, world.job, JobInput([]), world.environment)
    world.run(count, _KEYS)
    if is_finished:
        end_job(world.inner, world.job, {}, world.environment)
    given: dict[str, Any] = {"kind": MAP, "environment": world.environment, **changed}
    advice = "; choose another name only if this job does something else, since it would run again what is done"
    with pytest.raises(InputChangedError, match=advice):
        begin_job(world.inner, "job", **given)


def test_of_two_drivers_with_different_parallelism_the_second_one_goes_on() -> None:
    world = UnitWorld()
    job = record_job_input(world.inner, world.job, JobInput([]), world.environment)
    assert begin_job(world.inner, "job", kind=MAP, default=2, environment=world.environment) == job
    with pytest.raises(InputChangedError, match="another number of tasks: leave the number out"):
        begin_job(world.inner, "job", kind=MAP, shards=2, environment=world.environment)


def test_the_progress_of_many_tasks_is_read_page_by_page() -> None:
    world = UnitWorld(shards=1100)
    assert len(read_task_progress(world.inner, world.job)) == 1100


# --- the record at every moment ---------------------------------------------------------------------------------------
def warm(txn: Any, key: Row, value: object) -> None:
    """Read what others change."""
    txn.get("t", "hot")
    txn.add("t", key)


@pytest.mark.parametrize("conflicts", range(1, 7))
def test_the_record_says_at_every_moment_how_many_units_are_done(conflicts: int) -> None:
    """Units at the beginning, in the middle and at the end are deferred, and run at last."""
    for first in range(1, 16):
        world = UnitWorld()
        left = [conflicts]

        def before(
            number: int, name: str, first: int = first, left: list[int] = left, world: UnitWorld = world
        ) -> None:
            if name == "commit" and number >= first and left[0]:
                left[0] -= 1
                world.db.add("t", "hot")

        def after(_number: int, _name: str, world: UnitWorld = world) -> None:
            assert world.progress.done == len(world.cells.keys() - {("hot", "value")})

        world.task(warm, _ONE_BY_ONE, database=Shaky(world.inner, before, after)).run(units(_KEYS[:4]))
        assert world.progress.done == 4


def test_a_task_does_not_end_with_what_a_crash_has_taken() -> None:
    """The database crashes when all is recorded, before it is asked to make that durable."""
    inner = _Forgetful()
    world = UnitWorld(inner)
    inner.save()
    crashes = iter([inner.crash])

    def before(_number: int, name: str) -> None:
        if name == "make_durable":
            for crash in crashes:
                crash()

    with pytest.raises(ConflictError, match="has lost commits"):
        world.task(count, database=Shaky(inner, before)).run(units(_KEYS))


def test_what_another_attempt_has_done_again_after_a_crash_is_made_durable() -> None:
    """The crash comes before this attempt asks for durability; the other one has done everything again, and dies."""
    inner = _Forgetful()
    world = UnitWorld(inner)
    inner.save()

    def die(_number: int, name: str) -> None:
        if name == "make_durable":
            raise Death

    def do_again() -> None:
        with pytest.raises(Death):
            world.task(count, _ONE_BY_ONE, database=Shaky(inner, die)).run(units(_KEYS))

    crashes, others = iter([inner.crash]), iter([do_again])

    def before(_number: int, name: str) -> None:
        if name == "make_durable":
            for crash in crashes:
                crash()

    def after(_number: int, name: str) -> None:
        if name == "make_durable":
            for other in others:
                other()

    world.task(count, database=Shaky(inner, before, after)).run(units(_KEYS))
    inner.crash()
    assert world.cells == replayed(count, _KEYS)
    assert world.progress.is_finished


def test_a_group_that_writes_much_is_committed_before_its_end() -> None:
    def write(txn: Any, key: int, value: object) -> None:
        for number in range(500):
            txn.add("t", (key, number))

    statistics = UnitWorld().run(write, range(16), UnitSettings(group=16))
    assert (statistics.units, statistics.groups) == (16, 2)
