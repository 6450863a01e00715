"""Workers of a list: each item runs once, wherever one dies, loses a reply, or meets another; claims change hands."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest

from holdfast.errors import ConflictError, FencedError, NotFoundError, OutcomeUnknownError
from holdfast.records.batches import iter_records
from holdfast.runtime import Alarm
from holdfast.transactions.base import Commit, Outcome, ScanPage
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import end_job, forget_job, job_key, read_task_progress
from holdfast.units.progress import LIST_DROPPED, worker_unit_counts_range
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import UnitSettings
from holdfast.units.work_list import (
    claim_items,
    decode_claim,
    encode_claim,
    open_work_list,
    release_all_claims,
    release_claim,
    release_worker_claims,
)
from tests.forgetful_database import ForgetfulDatabase
from tests.unit.units.work_worlds import ITEMS, LEASE_S, WorkWorld, grow, limited
from tests.units_world import (
    FAULTS,
    Death,
    Shaky,
    change_at,
    fail_at,
    finish,
    interleaved,
    units,
)


def _calls(group: int) -> int:
    world = WorkWorld()
    shaky = limited(Shaky(world.inner))
    world.worker(0, group, shaky).run()
    world.judge()
    return len(shaky.calls)


# --- faults -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_anywhere(fault: str, group: int) -> None:
    for call in range(1, _calls(group) + 1):
        world = WorkWorld()
        shaky = Shaky(world.inner)
        fail_at(shaky, call, fault)
        attempts = []
        try:
            attempts.append(world.worker(0, group, limited(shaky)).run())
        except Death:
            assert fault.startswith("dies")
        attempts.append(world.worker(0, group, limited(Shaky(world.inner))).run())
        world.judge()
        assert sum(world.clock.waits) < LEASE_S, "nobody has waited for a lease"
        [progress] = read_task_progress(world.inner, world.job)
        assert progress.is_finished
        if not fault.startswith("dies"):
            recorded = progress.statistics
            assert recorded.conflicts == sum(one.conflicts for one in attempts)
            assert recorded.groups == sum(one.groups for one in attempts)


def test_the_items_of_a_dead_worker_come_back_after_a_lease() -> None:
    for call in range(1, _calls(3) + 1):
        world = WorkWorld(workers=2)
        shaky = Shaky(world.inner)
        fail_at(shaky, call, "dies later")
        with pytest.raises(Death):
            world.worker(0, 3, shaky).run()
        claimed = list(iter_records(world.inner, *world.list.claims_range))
        world.worker(1, 3, limited(Shaky(world.inner))).run()
        world.judge()
        assert not claimed or sum(world.clock.waits) >= LEASE_S / 2


@pytest.mark.parametrize("slot", [0, 1], ids=["same worker", "another worker"])
def test_two_at_once(slot: int) -> None:
    """Two attempts, interleaved at pairs of calls: whoever pauses too long has lost its claim."""
    calls = _calls(1)
    for first in range(1, calls + 1, 3):
        for second in range(1 + first % 5, calls + 1, 5):
            world = WorkWorld(workers=2)

            def attempt(number: int, call: int, at_point: Callable[[], None], world: WorkWorld = world) -> None:
                shaky = Shaky(world.inner, lambda now, _name: at_point() if now == call else None)
                world.worker(number, 1, limited(shaky)).run()

            interleaved(partial(attempt, 0, first), partial(attempt, slot, second))
            world.judge()


class _Late(Shaky):
    """A database whose first commit takes effect only after the reply was taken for lost, at the second look."""

    waiting: Commit | None = None

    def commit(self, commit: Commit) -> Outcome:
        if self.waiting is None:
            self.waiting = commit
            raise OutcomeUnknownError("the reply was lost")
        return super().commit(commit)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        if self.waiting is not None:
            self.inner.commit(self.waiting)
        return super().scan(start, end, limit, guards)


def test_a_claim_that_takes_effect_late_is_found() -> None:
    world = WorkWorld()
    world.worker(0, 1, limited(_Late(world.inner))).run()
    world.judge()


def test_a_worker_writes_nothing_after_it_has_made_its_end_durable() -> None:
    world = WorkWorld()
    shaky = limited(Shaky(world.inner))
    world.worker(0, 3, shaky).run()
    assert shaky.calls[shaky.calls.index("make_durable") :] == ["make_durable", "scan"]


def test_the_record_of_a_worker_has_its_running_time() -> None:
    world = WorkWorld()
    found = world.worker().run()
    [progress] = read_task_progress(world.inner, world.job)
    assert progress.statistics.run_s == pytest.approx(found.run_s, abs=1e-6) != 0


def test_claims_of_others_do_not_hide_what_waits() -> None:
    world = WorkWorld(workers=1)
    world.items.add_many((key, None, -5) for key in range(100, 103))
    for slot in range(1, 4):
        world.take(slot, "token")
    shaky = Shaky(world.inner, after=lambda _number, _name: _die_when(world.items.counts()[0] == 0))
    with pytest.raises(Death):
        world.worker(0, 1, limited(shaky)).run()
    assert not world.clock.waits


def _die_when(condition: bool) -> None:
    if condition:
        raise Death


# --- what is taken ----------------------------------------------------------------------------------------------------
def test_many_items_are_added_and_dropped() -> None:
    world = WorkWorld()
    dropped = world.list
    assert world.items.add_many((key, [key]) for key in range(1, 1201)) == 1200
    assert world.items.counts() == (1201, 0)
    world.items.drop()
    assert not list(iter_records(world.inner, *dropped.range))


def test_items_with_smaller_priorities_are_taken_first() -> None:
    world = WorkWorld()
    world.items.add_many((key, None, key * 7 % 31 - 15) for key in range(1, 31))
    ran: list[int] = []
    world.worker(0, 1, function=lambda _txn, key, _value: ran.append(key)).run()
    assert ran == sorted(range(31), key=lambda key: key and key * 7 % 31 - 15)


def test_a_worker_takes_its_share() -> None:
    world = WorkWorld(workers=3)
    world.items.add_many((key, None) for key in range(100, 105))
    shaky = Shaky(world.inner, after=lambda _number, _name: _die_when(world.items.counts()[1] > 0))
    with pytest.raises(Death):
        world.worker(0, 32, shaky).run()
    assert world.items.counts() == (4, 2)


def test_a_claim_has_few_large_values() -> None:
    world = WorkWorld()
    world.items.add_many((key, b"x" * 1_000_000) for key in range(1, 5))
    assert len(world.take(0, "a", most=5).items) == 3
    world.items.add(0, b"x" * 3_000_000, priority=-1)
    assert len(world.take(1, "a", most=5).items) == 1


def test_claims_of_the_dead_are_found_while_there_is_work() -> None:
    world = WorkWorld(workers=2)
    world.take(1, "dead")
    world.items.add_many((key, None) for key in range(1, 50))
    ran: list[int] = []

    def work(_txn: Any, key: int, _value: object) -> None:
        ran.append(key)
        world.clock.at_s += LEASE_S / 10

    world.worker(0, 1, function=work).run()
    assert sorted(ran) == list(range(50))
    assert ran.index(0) < 30


# --- claims -----------------------------------------------------------------------------------------------------------
def test_all_claims_of_a_worker_are_dissolved_when_it_starts_again() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in (100, 101))
    claims = [world.take(3, token) for token in ("a", "b", "c")]
    assert world.items.counts() == (0, 3)
    world.inner.commit(Commit(adds={world.list.heartbeat_key(one.key): 1 for one in claims}))
    release_worker_claims(world.inner, world.list, 2)
    assert world.items.counts() == (0, 3)
    release_worker_claims(world.inner, world.list, 3)
    assert world.items.counts() == (3, 0)
    assert not list(iter_records(world.inner, *world.list.heartbeats_range))


def test_all_claims_of_a_worker_are_dissolved_though_one_is_in_use() -> None:
    """The commit of a zombie comes between, and its claim is dissolved with what is left of it."""
    world = WorkWorld()
    world.items.add_many((key, None) for key in (100, 101))
    claims = [world.take(3, token) for token in ("a", "b", "c")]
    used = claims[1].key

    def use(number: int, _name: str) -> None:
        if number == 1:
            record = world.inner.get_many([used])[used]
            world.inner.commit(Commit(puts={used: record.value}))

    shaky = Shaky(world.inner, after=use)
    release_worker_claims(shaky, world.list, 3)
    assert world.items.counts() == (3, 0)


def test_all_claims_of_a_list_are_dissolved_though_a_worker_is_faster_each_time() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in range(1, 102))
    world.take(1, "dead", 2)
    left = list(world.take(0, "busy", 50).items.values())

    def work(_number: int, name: str) -> None:
        if name == "scan" and left:
            left.pop()
            world.inner.commit(Commit(puts={world.list.claim_key(0, "busy"): encode_claim(left)}))

    release_all_claims(Shaky(world.inner, after=work), world.list)
    assert not left
    assert world.items.counts() == (52, 0)


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect"])
def test_a_claim_is_dissolved_although_the_reply_is_lost(fault: str) -> None:
    """A worker that is started again waits for no lease."""
    world = WorkWorld()
    world.take(0, "dead")
    shaky = Shaky(world.inner)
    fail_at(shaky, 2, fault)
    release_worker_claims(shaky, world.list, 0)
    assert shaky.calls[1] == "commit"
    assert world.items.counts() == (1, 0)
    assert not list(iter_records(world.inner, *world.list.claims_range))


def _waiting(world: WorkWorld) -> list[tuple[Any, Any]]:
    """Return keys and values of all items that wait."""
    found = [world.list.decode_item(key, record) for key, record in iter_records(world.inner, *world.list.waiting)]
    return [(item.key, item.value) for item in found if item is not None]


def test_what_was_added_again_meanwhile_with_the_same_value_waits_once() -> None:
    world = WorkWorld()
    claim = world.take(0, "a")
    world.items.add(0)
    assert release_claim(world.inner, world.list, claim)
    assert _waiting(world) == [(0, None)]


def test_what_waits_beside_another_value_of_its_key_is_claimed_and_put_back_again() -> None:
    world = WorkWorld()
    world.items.add("x" * 992, "old")
    world.items.add(0)
    for _ in range(3):
        claim = world.take(0, "a", most=5)
        world.items.add("x" * 992, "new")
        assert release_claim(world.inner, world.list, claim)
        assert _waiting(world) == [("x" * 992, "new"), ("x" * 992, "old"), (0, None)]
    assert world.items.counts() == (3, 0)


def test_only_what_waits_unchanged_is_claimed() -> None:
    world = WorkWorld()
    waiting = list(iter_records(world.inner, *world.list.waiting))
    key = world.list.claim_key(0, "a")
    job = world.inner.get_many([job_key("work")])[job_key("work")].version
    take = partial(claim_items, world.inner, world.list, key)
    world.items.add(0)
    assert take(waiting, {}) is None
    waiting = list(iter_records(world.inner, *world.list.waiting))
    assert take(waiting, {job_key("work"): job + 1}) is None
    taken = take(waiting, {job_key("work"): job})
    assert taken is not None
    world.items.add(1)
    assert take(list(iter_records(world.inner, *world.list.waiting)), {}) is None, "one claim at a time"
    found = world.inner.get_many([key])[key]
    assert decode_claim(key, found) == taken


def test_nobody_claims_from_a_dropped_list() -> None:
    world = WorkWorld()
    waiting, dropped = list(iter_records(world.inner, *world.list.waiting)), world.list
    world.inner.commit(Commit(deletes=[dropped.definition_key]))
    assert claim_items(world.inner, dropped, dropped.claim_key(0, "a"), waiting, {}) is None


@pytest.mark.parametrize("is_whole", [True, False], ids=["dropped", "being dropped"])
@pytest.mark.parametrize("keys", [(0,), (100,), (0, 100, 101)], ids=["emits", "only writes", "a group"])
def test_a_worker_stops_when_its_list_is_dropped(keys: tuple[int, ...], *, is_whole: bool) -> None:
    world = WorkWorld()
    world.items.drop()
    world.items = open_work_list(world.db, "list", create=True)
    world.items.add_many((key, None) for key in keys)
    definition = world.list.definition_key
    drops = iter([world.items.drop if is_whole else lambda: world.inner.commit(Commit(deletes=[definition]))])

    def drop(_number: int, _name: str) -> None:
        if world.inner.get_many([definition]) and world.items.counts()[1]:  # it has a claim
            for one in drops:
                one()

    with pytest.raises(FencedError, match=LIST_DROPPED):
        world.worker(0, 3, limited(Shaky(world.inner, after=drop))).run()
    assert not world.cells


def test_a_list_that_is_dropped_between_two_claims_is_not_at_its_end() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in (100, 101))
    drops = iter([world.items.drop])

    def drop(_number: int, _name: str) -> None:
        if world.cells and not world.items.counts()[1]:  # the first one has run
            for one in drops:
                one()

    with pytest.raises(FencedError, match=LIST_DROPPED):
        world.worker(0, 1, limited(Shaky(world.inner, after=drop))).run()
    assert not read_task_progress(world.inner, world.job)[0].is_finished


@pytest.mark.parametrize("name", ["list", "another"], ids=["and made again", "only dropped"])
def test_nobody_emits_to_a_dropped_list(name: str) -> None:
    """A unit of another job adds to the list, which is dropped before the commit."""
    world = WorkWorld()
    job, dropped = world.begin("map"), world.list
    drops = iter([world.items.drop, lambda: open_work_list(world.db, name, create=True)])

    def drop(_number: int, call: str) -> None:
        if call == "commit":
            for one in drops:
                one()

    shaky = Shaky(world.inner, drop)
    execution = UnitExecution(grow, shaky, UnitSettings(), world.environment, emit_to=dropped, alarm=Alarm(is_on=False))
    with pytest.raises(FencedError, match=LIST_DROPPED):
        ShardTask(execution, shaky, job, 0).run(units([0]))
    assert not list(iter_records(world.inner, *dropped.range))
    assert not world.cells


def test_what_the_error_of_a_dropped_list_advises_neither_loses_nor_doubles() -> None:
    """Units that are done do not add again what is lost, and under another name they would write again."""
    world = WorkWorld()
    job, drops = world.begin("map"), iter([world.items.drop])

    def write(txn: Any, key: int, value: object) -> None:
        txn.add("t", key)
        txn.emit(key)
        for drop in drops if key == 1 else ():
            drop()

    def attempt() -> None:
        settings = UnitSettings(group=1)
        execution = UnitExecution(
            write, world.inner, settings, world.environment, emit_to=world.list, alarm=Alarm(is_on=False)
        )
        ShardTask(execution, world.inner, job, 0).run(units([0, 1, 2]))

    with pytest.raises(FencedError) as told:
        attempt()
    for advice in ("create it", "add what is lost", "run the job again with its name"):
        assert advice in str(told.value)
    world.items = open_work_list(world.db, "list", create=True)
    world.items.add(0)
    attempt()
    assert world.cells == {(key, "value"): 1 for key in range(3)}
    assert world.items.counts() == (3, 0)


@pytest.mark.parametrize("again", [False, True])
def test_nobody_adds_to_a_dropped_list(*, again: bool) -> None:
    world = WorkWorld()
    dropped = world.items
    dropped.drop()
    if again:
        world.items = open_work_list(world.db, "list", create=True)
    with pytest.raises(NotFoundError, match="the work list was dropped: open it again with create=True"):
        dropped.add(1, 5)
    assert not again or world.items.counts() == (0, 0)
    open_work_list(world.db, "list", create=True).add(1, 5)


def test_after_a_conflict_the_items_of_a_claim_take_effect_one_by_one() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in range(1, 4))

    def work(txn: Any, key: int, value: object) -> None:
        txn.put("t", key, txn.get("t", "hot", default=0))
        if key == 0 and world.db.get("t", "hot") is None:
            world.db.add("t", "hot")

    found = world.worker(0, 3, function=work).run()
    assert (found.units, found.conflicts, found.reruns, found.groups) == (4, 1, 3, 4)


def test_an_item_that_always_conflicts_locks_what_it_reads_at_last() -> None:
    world = WorkWorld()

    def count(txn: Any, key: int, value: object) -> None:
        before = txn.get("t", "hot", default=0)
        if "read" not in shaky.calls:
            world.db.add("t", "hot")
        txn.put("t", "mine", before)

    shaky = limited(Shaky(world.inner))
    found = world.worker(database=shaky, function=count).run()
    assert (found.units, found.locked) == (1, 1)
    assert world.db.get("t", "mine") == world.db.get("t", "hot") > 5


def test_the_figures_of_a_worker_are_recorded_while_it_works() -> None:
    world = WorkWorld()
    seen: list[int] = []

    def work(txn: Any, key: int, value: object) -> None:
        [progress] = read_task_progress(world.inner, world.job)
        seen.append(progress.statistics.units)
        world.clock.sleep(LEASE_S / 8)
        if key < 3:
            txn.emit(key + 1)

    world.worker(function=work).run()
    assert seen == [0, 0, 2, 2], "they are written in a quarter of a lease"


# --- the end of the job -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", ["before the end", "in the middle of the end"])
@pytest.mark.parametrize("runs", [1, 2])
def test_a_job_whose_last_units_a_failover_has_lost_is_not_ended_but_goes_on(runs: int, at: str) -> None:
    """In the second run, each worker has a record that it is finished: that of the first one."""
    database = ForgetfulDatabase(keeps=False)
    world = WorkWorld(inner=database)
    for number in range(runs):
        if number:
            world.items.add(0)
        database.forget_nothing_before()
        world.worker().run()
    wait = {"before the end": 1, "in the middle of the end": 4}[at]
    shaky = Shaky(database, change_at(wait, lambda: database.forget(database.newest)))
    with pytest.raises(ConflictError, match=r"run the job again with its name.*job='work'"):
        end_job(shaky, world.job, {}, world.environment, world.list)
    assert len(shaky.calls) >= wait and world.items.counts() == (1, 0)
    world.worker().run()
    assert end_job(shaky, world.job, {}, world.environment, world.list).is_finished
    assert world.cells[("count", "value")] == runs * ITEMS


def test_a_job_is_not_ended_while_a_worker_has_a_claim() -> None:
    """As after a failover that has undone the last commits of a worker."""
    world = WorkWorld()
    world.take(0, "t")
    assert world.items.counts() == (0, 1)
    finish(world.inner, world.job)
    with pytest.raises(ConflictError, match=r"the work list is not empty.*list='list'"):
        end_job(world.inner, world.job, {}, world.environment, world.list)


def _end(world: WorkWorld, end: str) -> None:
    if end == "end":
        finish(world.inner, world.job)
        end_job(world.inner, world.job, {}, world.environment)
    else:
        forget_job(world.inner, "work", world.environment)


@pytest.mark.parametrize("end", ["end", "forget"])
def test_a_zombie_takes_nothing_from_the_next_job(end: str) -> None:
    """It has looked at the list, and claims what it saw after its job has ended."""
    world = WorkWorld()
    ends = iter([partial(_end, world, end)])

    def before(_number: int, name: str) -> None:
        if name == "commit":  # the first one is that of the claim
            for one in ends:
                one()

    told = "the job is finished" if end == "end" else "was forgotten .*: run the work list again, under any name"
    with pytest.raises(FencedError, match=told):
        world.worker(0, 1, limited(Shaky(world.inner, before))).run()
    assert world.items.counts() == (1, 0)
    assert not world.cells


@pytest.mark.parametrize("end", ["end", "forget"])
def test_nothing_of_a_job_is_left(end: str) -> None:
    world = WorkWorld()
    world.worker().run()
    start, stop = worker_unit_counts_range(world.job.id)
    assert list(iter_records(world.inner, start, stop))
    _end(world, end)
    assert not list(iter_records(world.inner, start, stop))
    assert not list(iter_records(world.inner, b"Sp" + start[2:], b"Sp" + stop[2:]))
