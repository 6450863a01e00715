"""Workers of a list: each item runs once, wherever one dies, loses a reply, or meets another; claims change hands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from holdfast.errors import FencedError, HoldfastError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.records.paging import read_records
from holdfast.runtime import NeverPeriodic, NoAlarm, Periodic
from holdfast.runtime.simulated import StillClock
from holdfast.transactions.base import Commit, Database, Outcome, ScanPage
from holdfast.units.claims import Claim, ClaimWatch, decode_claim, dissolve, dissolve_slot, take_items
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job, end_job, forget_job, job_key, read_progress
from holdfast.units.open_work_list import open_work_list
from holdfast.units.progress import counter_range
from holdfast.units.settings import UnitSettings
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import UnitFunction
from holdfast.units.work_list import WorkList, find_work_list
from holdfast.units.work_task import WorkTask
from tests.units_world import FAULTS, Death, Shaky, UnitWorld, fail_at, interleaved, units

_ITEMS = 7
_MOST_CALLS = 3000
_LEASE_S = 1.0


def grow(txn: Any, key: int, value: object) -> None:
    """Count a key, and emit its two children."""
    txn.put("t", ("seen", key), txn.get("t", ("seen", key), default=0) + 1)
    txn.add("t", "count")
    for child in (2 * key + 1, 2 * key + 2):
        if child < _ITEMS:
            txn.emit(child, priority=-child)


class WorkWorld(UnitWorld):
    """A store with a work list that has one item, and a job with workers."""

    def __init__(self, workers: int = 1) -> None:
        super().__init__()
        self.job = begin_job(self.inner, "work", kind=WORK_LIST, shards=workers, environment=self.environment)
        self.items = open_work_list(self.store, "list", create=True)
        self.items.add(0)

    @property
    def list(self) -> WorkList:
        return find_work_list(self.inner, "list")

    def worker(
        self,
        slot: int = 0,
        group: int = 3,
        database: Database | None = None,
        *,
        function: UnitFunction = grow,
        periodic: Periodic | None = None,
    ) -> WorkTask:
        """Return an attempt at a worker."""
        settings = UnitSettings(group=group, lease_s=_LEASE_S)
        database = database or self.inner
        execution = UnitExecution(function, database, settings, self.environment, emit_to=self.list, alarm=NoAlarm())
        return WorkTask(execution, database, self.job, slot, self.list, periodic=periodic or NeverPeriodic())

    def take(self, slot: int, token: str, most: int = 1) -> Claim:
        """Claim some of the items that wait."""
        waiting = list(read_records(self.inner, *self.list.waiting))[:most]
        claim = take_items(self.inner, self.list, self.list.claim_key(slot, token), waiting, {})
        assert claim is not None
        return claim

    def judge(self) -> None:
        """Check that each item has run once, and that nothing is left."""
        assert self.cells == {(("seen", key), "value"): 1 for key in range(_ITEMS)} | {("count", "value"): _ITEMS}
        assert not list(read_records(self.inner, *self.list.range)), "no item waits, and no claim is left"
        progress = read_progress(self.inner, self.job)
        assert sum(one.done for one in progress) == _ITEMS


def _limited(shaky: Shaky) -> Shaky:
    """Let a worker that never ends fail."""
    before = shaky.before

    def count(number: int, name: str) -> None:
        assert number < _MOST_CALLS, "the worker does not end"
        before(number, name)

    shaky.before = count
    return shaky


def _calls(group: int) -> int:
    world = WorkWorld()
    shaky = _limited(Shaky(world.inner))
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
            attempts.append(world.worker(0, group, _limited(shaky)).run())
        except Death:
            assert fault.startswith("dies")
        attempts.append(world.worker(0, group, _limited(Shaky(world.inner))).run())
        world.judge()
        assert sum(world.clock.waits) < _LEASE_S, "nobody has waited for a lease"
        [progress] = read_progress(world.inner, world.job)
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
        claimed = list(read_records(world.inner, *world.list.claims))
        world.worker(1, 3, _limited(Shaky(world.inner))).run()
        world.judge()
        assert not claimed or sum(world.clock.waits) >= _LEASE_S / 2


@pytest.mark.parametrize("slot", [0, 1], ids=["same worker", "another worker"])
def test_two_at_once(slot: int) -> None:
    """Two attempts, interleaved at pairs of calls: whoever pauses too long has lost its claim."""
    calls = _calls(1)
    for first in range(1, calls + 1, 3):
        for second in range(1 + first % 5, calls + 1, 5):
            world = WorkWorld(workers=2)

            def attempt(number: int, call: int, at_point: Callable[[], None], world: WorkWorld = world) -> None:
                shaky = Shaky(world.inner, lambda now, _name: at_point() if now == call else None)
                world.worker(number, 1, _limited(shaky)).run()

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
    world.worker(0, 1, _limited(_Late(world.inner))).run()
    world.judge()


def test_a_worker_writes_nothing_after_it_has_made_its_end_durable() -> None:
    world = WorkWorld()
    shaky = _limited(Shaky(world.inner))
    world.worker(0, 3, shaky).run()
    assert shaky.calls[shaky.calls.index("make_durable") :] == ["make_durable", "scan"]


def test_the_record_of_a_worker_has_its_running_time() -> None:
    world = WorkWorld()
    found = world.worker().run()
    [progress] = read_progress(world.inner, world.job)
    assert progress.statistics.run_s == pytest.approx(found.run_s, abs=1e-6) != 0


def test_claims_of_others_do_not_hide_what_waits() -> None:
    world = WorkWorld(workers=1)
    world.items.add_many((key, None, -5) for key in range(100, 103))
    for slot in range(1, 4):
        world.take(slot, "token")
    shaky = Shaky(world.inner, after=lambda _number, _name: _die_when(world.items.counts()[0] == 0))
    with pytest.raises(Death):
        world.worker(0, 1, _limited(shaky)).run()
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
    assert not list(read_records(world.inner, *dropped.range))


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
        world.clock.at_s += _LEASE_S / 10

    world.worker(0, 1, function=work).run()
    assert sorted(ran) == list(range(50))
    assert ran.index(0) < 30


# --- claims -----------------------------------------------------------------------------------------------------------
def test_all_claims_of_a_worker_are_dissolved_when_it_starts_again() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in (100, 101))
    claims = [world.take(3, token) for token in ("a", "b", "c")]
    assert world.items.counts() == (0, 3)
    world.inner.commit(Commit(adds={world.list.beat_key(one.key): 1 for one in claims}))
    dissolve_slot(world.inner, world.list, 2)
    assert world.items.counts() == (0, 3)
    dissolve_slot(world.inner, world.list, 3)
    assert world.items.counts() == (3, 0)
    assert not list(read_records(world.inner, *world.list.beats))


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
    dissolve_slot(shaky, world.list, 3)
    assert world.items.counts() == (3, 0)


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect"])
def test_a_claim_is_dissolved_although_the_reply_is_lost(fault: str) -> None:
    """A worker that is started again waits for no lease."""
    world = WorkWorld()
    world.take(0, "dead")
    shaky = Shaky(world.inner)
    fail_at(shaky, 2, fault)
    dissolve_slot(shaky, world.list, 0)
    assert shaky.calls[1] == "commit"
    assert world.items.counts() == (1, 0)
    assert not list(read_records(world.inner, *world.list.claims))


def _waiting(world: WorkWorld) -> list[tuple[Any, Any]]:
    """Return keys and values of all items that wait."""
    found = [world.list.item_of(key, record) for key, record in read_records(world.inner, *world.list.waiting)]
    return [(item.key, item.value) for item in found if item is not None]


def test_what_was_added_again_meanwhile_with_the_same_value_waits_once() -> None:
    world = WorkWorld()
    claim = world.take(0, "a")
    world.items.add(0)
    assert dissolve(world.inner, world.list, claim)
    assert _waiting(world) == [(0, None)]


def test_what_waits_beside_another_value_of_its_key_is_claimed_and_put_back_again() -> None:
    world = WorkWorld()
    world.items.add("x" * 992, "old")
    world.items.add(0)
    for _ in range(3):
        claim = world.take(0, "a", most=5)
        world.items.add("x" * 992, "new")
        assert dissolve(world.inner, world.list, claim)
        assert _waiting(world) == [("x" * 992, "new"), ("x" * 992, "old"), (0, None)]
    assert world.items.counts() == (3, 0)


def test_only_what_waits_unchanged_is_claimed() -> None:
    world = WorkWorld()
    waiting = list(read_records(world.inner, *world.list.waiting))
    key = world.list.claim_key(0, "a")
    job = world.inner.get_many([job_key("work")])[job_key("work")].version
    take = partial(take_items, world.inner, world.list, key)
    world.items.add(0)
    assert take(waiting, {}) is None
    waiting = list(read_records(world.inner, *world.list.waiting))
    assert take(waiting, {job_key("work"): job + 1}) is None
    taken = take(waiting, {job_key("work"): job})
    assert taken is not None
    world.items.add(1)
    assert take(list(read_records(world.inner, *world.list.waiting)), {}) is None, "one claim at a time"
    found = world.inner.get_many([key])[key]
    assert decode_claim(key, found) == taken


def test_nobody_claims_from_a_dropped_list() -> None:
    world = WorkWorld()
    waiting, dropped = list(read_records(world.inner, *world.list.waiting)), world.list
    world.inner.commit(Commit(deletes=[dropped.definition_key]))
    assert take_items(world.inner, dropped, dropped.claim_key(0, "a"), waiting, {}) is None


@pytest.mark.parametrize("is_whole", [True, False], ids=["dropped", "being dropped"])
@pytest.mark.parametrize("keys", [(0,), (100,), (0, 100, 101)], ids=["emits", "only writes", "a group"])
def test_a_worker_stops_when_its_list_is_dropped(keys: tuple[int, ...], *, is_whole: bool) -> None:
    world = WorkWorld()
    world.items.drop()
    world.items = open_work_list(world.store, "list", create=True)
    world.items.add_many((key, None) for key in keys)
    definition = world.list.definition_key
    drops = iter([world.items.drop if is_whole else lambda: world.inner.commit(Commit(deletes=[definition]))])

    def drop(_number: int, _name: str) -> None:
        if world.inner.get_many([definition]) and world.items.counts()[1]:  # it has a claim
            for one in drops:
                one()

    with pytest.raises(FencedError, match="the work list was dropped meanwhile: create it"):
        world.worker(0, 3, _limited(Shaky(world.inner, after=drop))).run()
    assert not world.cells


def test_a_list_that_is_dropped_between_two_claims_is_not_at_its_end() -> None:
    world = WorkWorld()
    world.items.add_many((key, None) for key in (100, 101))
    drops = iter([world.items.drop])

    def drop(_number: int, _name: str) -> None:
        if world.cells and not world.items.counts()[1]:  # the first one has run
            for one in drops:
                one()

    with pytest.raises(FencedError, match="the work list was dropped meanwhile: create it"):
        world.worker(0, 1, _limited(Shaky(world.inner, after=drop))).run()
    assert not read_progress(world.inner, world.job)[0].is_finished


@pytest.mark.parametrize("name", ["list", "another"], ids=["and made again", "only dropped"])
def test_nobody_emits_to_a_dropped_list(name: str) -> None:
    """A unit of another job adds to the list, which is dropped before the commit."""
    world = WorkWorld()
    job, dropped = world.begin("map"), world.list
    drops = iter([world.items.drop, lambda: open_work_list(world.store, name, create=True)])

    def drop(_number: int, call: str) -> None:
        if call == "commit":
            for one in drops:
                one()

    shaky = Shaky(world.inner, drop)
    execution = UnitExecution(grow, shaky, UnitSettings(), world.environment, emit_to=dropped, alarm=NoAlarm())
    with pytest.raises(FencedError, match="the work list was dropped meanwhile: create it"):
        ShardTask(execution, shaky, job, 0).run(units([0]))
    assert not list(read_records(world.inner, *dropped.range))
    assert not world.cells


def test_an_item_that_always_conflicts_locks_what_it_reads_at_last() -> None:
    world = WorkWorld()

    def count(txn: Any, key: int, value: object) -> None:
        before = txn.get("t", "hot", default=0)
        if "read" not in shaky.calls:
            world.store.add("t", "hot")
        txn.put("t", "mine", before)

    shaky = _limited(Shaky(world.inner))
    found = world.worker(database=shaky, function=count).run()
    assert (found.units, found.locked) == (1, 1)
    assert world.store.get("t", "mine") == world.store.get("t", "hot") > 5


def test_the_figures_of_a_worker_are_recorded_while_it_works() -> None:
    world = WorkWorld()
    seen: list[int] = []

    def work(txn: Any, key: int, value: object) -> None:
        [progress] = read_progress(world.inner, world.job)
        seen.append(progress.statistics.units)
        world.clock.sleep(_LEASE_S / 2)
        if key < 3:
            txn.emit(key + 1)

    world.worker(function=work).run()
    assert seen == [0, 1, 2, 3]


# --- leases -----------------------------------------------------------------------------------------------------------
class Watched(WorkWorld):
    """A claim of a worker, and somebody who watches it."""

    def __init__(self) -> None:
        super().__init__()
        self.claim = self.take(1, "a")
        self.time = StillClock()
        environment = type(self.environment)(clock=self.time, ids=self.environment.ids, chance=self.environment.chance)
        self.watch = ClaimWatch(self.inner, self.list, environment, lease_s=10)

    def after(self, seconds: float) -> int:
        self.time.at_s += seconds
        return self.watch.dissolve_expired(self.list.claim_key(0, "own"))

    def beat(self, claim: bytes) -> None:
        self.inner.commit(Commit(adds={self.list.beat_key(claim): 1}))


def test_a_claim_without_a_sign_of_life_is_dissolved_after_a_lease() -> None:
    world = Watched()
    assert [world.after(100), world.after(9.9), world.after(0.1)] == [0, 0, 1]
    assert world.items.counts() == (1, 0)


def test_a_heartbeat_restarts_the_lease() -> None:
    world = Watched()
    world.after(0)
    for _ in range(3):
        world.beat(world.claim.key)
        assert world.after(9) == 0
    assert [world.after(9.9), world.after(0.1)] == [0, 1]


def test_a_commit_with_the_claim_restarts_the_lease() -> None:
    world = Watched()
    for _ in range(3):
        record = world.inner.get_many([world.claim.key])[world.claim.key]
        world.inner.commit(Commit(puts={world.claim.key: record.value}))
        assert world.after(9) == 0
    assert [world.after(9.9), world.after(0.1)] == [0, 1]


def test_the_heartbeat_of_another_attempt_at_the_worker_does_not_count() -> None:
    world = Watched()
    world.after(0)
    world.beat(world.list.claim_key(1, "b"))
    assert world.after(10) == 1


def test_ones_own_claim_is_kept() -> None:
    world = Watched()
    world.after(0)
    world.time.at_s += 100
    assert world.watch.dissolve_expired(world.claim.key) == 0


@pytest.mark.parametrize("error", [UnavailableError, OutcomeUnknownError])
def test_a_heartbeat_that_fails_is_not_the_last_one(error: type[HoldfastError]) -> None:
    """An error would end the thread that beats: after a lease, the worker would lose all its claims."""
    world = WorkWorld()
    shaky = Shaky(world.inner)

    def fail(_number: int, _name: str) -> None:
        raise error("the database is away")

    class BeatsOnce:
        @contextmanager
        def repeat(self, work: Callable[[], object], interval_s: float) -> Iterator[None]:
            assert interval_s < _LEASE_S / 2
            usual, shaky.before = shaky.before, fail
            before = len(shaky.calls)
            work()
            assert shaky.calls[before:] == ["commit"]
            shaky.before = usual
            yield

    world.worker(database=shaky, periodic=BeatsOnce()).run()
    world.judge()


# --- the end of the job -----------------------------------------------------------------------------------------------
def _end(world: WorkWorld, end: str) -> None:
    if end == "end":
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

    with pytest.raises(FencedError, match="finished, or was forgotten"):
        world.worker(0, 1, _limited(Shaky(world.inner, before))).run()
    assert world.items.counts() == (1, 0)
    assert not world.cells


@pytest.mark.parametrize("end", ["end", "forget"])
def test_nothing_of_a_job_is_left(end: str) -> None:
    world = WorkWorld()
    world.worker().run()
    start, stop = counter_range(world.job.id)
    assert list(read_records(world.inner, start, stop))
    _end(world, end)
    assert not list(read_records(world.inner, start, stop))
    assert not list(read_records(world.inner, b"Sp" + start[2:], b"Sp" + stop[2:]))


# --- heartbeats -------------------------------------------------------------------------------------------------------
class _BeatsFirst:
    """Beats once before the worker does anything else."""

    @contextmanager
    def repeat(self, work: Callable[[], object], interval_s: float) -> Iterator[None]:
        work()
        yield


def _beats(world: WorkWorld) -> list[bytes]:
    return [key for key, _record in read_records(world.inner, *world.list.beats)]


def _beating_calls() -> int:
    world = WorkWorld()
    shaky = Shaky(world.inner)
    world.worker(0, 3, shaky, periodic=_BeatsFirst()).run()
    assert not _beats(world)
    return len(shaky.calls)


@pytest.mark.parametrize("slot", [0, 1], ids=["same worker", "another worker"])
def test_no_heartbeat_of_the_dead_is_left_at_the_end_of_a_list(slot: int) -> None:
    left = 0
    for call in range(1, _beating_calls() + 1):
        world = WorkWorld(workers=2)
        shaky = Shaky(world.inner)
        fail_at(shaky, call, "dies later")
        with pytest.raises(Death):
            world.worker(0, 3, shaky, periodic=_BeatsFirst()).run()
        left += len(_beats(world))
        world.worker(slot, 3, periodic=_BeatsFirst()).run()
        world.judge()
        assert not _beats(world), f"call {call}"
    assert left


def test_a_worker_that_fails_leaves_no_heartbeat() -> None:
    world = WorkWorld()

    def fails(_txn: Any, key: int, _value: object) -> None:
        assert _beats(world)
        raise KeyError(key)

    with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
        world.worker(function=fails, periodic=_BeatsFirst()).run()
    assert not _beats(world)


def test_nobody_beats_for_a_dropped_list() -> None:
    world = WorkWorld()
    dropped = world.list

    class DropsFirst:
        @contextmanager
        def repeat(self, work: Callable[[], object], interval_s: float) -> Iterator[None]:
            world.items.drop()
            work()
            yield

    with pytest.raises(FencedError, match="the work list was dropped"):
        world.worker(periodic=DropsFirst()).run()
    assert not list(read_records(world.inner, *dropped.beats))
