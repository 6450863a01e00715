"""Signs of life of workers: a claim without them is dissolved, and none of the dead is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.errors import FencedError, HoldfastError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.records.batches import iter_records
from holdfast.transactions.base import Commit
from holdfast.units.jobs import read_task_progress
from holdfast.units.work_list import ExpiredClaimDetector
from tests.clocks import SuspendedClock
from tests.unit.units.work_worlds import LEASE_S, WorkWorld, grow
from tests.units_world import Death, Shaky, fail_at


# --- leases -----------------------------------------------------------------------------------------------------------
class Watched(WorkWorld):
    """A claim of a worker, and somebody who watches it."""

    def __init__(self) -> None:
        super().__init__()
        self.claim = self.take(1, "a")
        self.time = SuspendedClock()
        environment = type(self.environment)(clock=self.time, ids=self.environment.ids, chance=self.environment.chance)
        self.watch = ExpiredClaimDetector(self.inner, self.list, environment, lease_s=10)

    def after(self, seconds: float) -> int:
        self.time.at_s += seconds
        return self.watch.release_expired_claims(self.list.claim_key(0, "own"))

    def beat(self, claim: bytes) -> None:
        self.inner.commit(Commit(adds={self.list.heartbeat_key(claim): 1}))


def test_a_claim_without_a_sign_of_life_is_dissolved_after_a_lease() -> None:
    world = Watched()
    assert [world.after(100), world.after(9.9), world.after(0.1)] == [0, 0, 1]
    assert world.items.counts() == (1, 0)


def test_a_lease_does_not_depend_on_the_wall_clock() -> None:
    """Set forward, it would take the claims of the living; set back, it would keep those of the dead."""
    world = Watched()
    assert world.after(0) == 0
    for set_s in (1_000_000, -3_000_000):
        world.time.suspend(set_s)
        assert world.after(4) == 0
    assert [world.after(1.9), world.after(0.1)] == [0, 1]


@pytest.mark.parametrize("beats", [1, 3])
def test_a_heartbeat_restarts_the_lease(beats: int) -> None:
    world = Watched()
    world.after(0)
    for _ in range(beats):
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
    assert world.watch.release_expired_claims(world.claim.key) == 0


@pytest.mark.parametrize("error", [UnavailableError, OutcomeUnknownError])
def test_a_heartbeat_that_fails_is_not_the_last_one(error: type[HoldfastError]) -> None:
    """An error would end the thread that beats: after a lease, the worker would lose all its claims."""
    world = WorkWorld()
    shaky = Shaky(world.inner)

    def fail(_number: int, _name: str) -> None:
        raise error("the database is away")

    @contextmanager
    def beats_once(work: Callable[[], object], interval_s: float) -> Iterator[None]:
        assert interval_s < LEASE_S / 2
        usual, shaky.before = shaky.before, fail
        before = len(shaky.calls)
        work()
        assert shaky.calls[before:] == ["commit"]
        shaky.before = usual
        yield

    world.worker(database=shaky, repeat=beats_once).run()
    world.judge()


# --- heartbeats -------------------------------------------------------------------------------------------------------
@contextmanager
def _beats_first(work: Callable[[], object], interval_s: float) -> Iterator[None]:
    """Beat once before the worker does anything else."""
    work()
    yield


def _beats(world: WorkWorld) -> list[bytes]:
    return [key for key, _record in iter_records(world.inner, *world.list.heartbeats_range)]


def _beating_calls() -> int:
    world = WorkWorld()
    shaky = Shaky(world.inner)
    world.worker(0, 3, shaky, repeat=_beats_first).run()
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
            world.worker(0, 3, shaky, repeat=_beats_first).run()
        left += len(_beats(world))
        world.worker(slot, 3, repeat=_beats_first).run()
        world.judge()
        assert not _beats(world), f"call {call}"
    assert left


def test_no_lost_reply_fails_a_worker_that_beats() -> None:
    for call in range(1, _beating_calls() + 1):
        world = WorkWorld()
        shaky = Shaky(world.inner)
        fail_at(shaky, call, "lost with effect")
        world.worker(0, 3, shaky, repeat=_beats_first).run()
        world.judge()


def test_a_worker_that_fails_leaves_no_heartbeat() -> None:
    world = WorkWorld()

    def fails(_txn: Any, key: int, _value: object) -> None:
        assert _beats(world)
        raise KeyError(key)

    with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
        world.worker(function=fails, repeat=_beats_first).run()
    assert not _beats(world)


def test_a_worker_that_fails_says_why_also_without_a_database() -> None:
    world = WorkWorld()
    shaky = Shaky(world.inner)

    def fails(_txn: Any, key: int, _value: object) -> None:
        shaky.calls.clear()
        fail_at(shaky, 2, "unavailable")  # the first call commits the units before this one
        raise KeyError(key)

    with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
        world.worker(database=shaky, function=fails).run()
    assert shaky.calls == ["commit", "commit"]


@pytest.mark.slow
def test_nobody_beats_for_a_dropped_list() -> None:
    world = WorkWorld()
    dropped = world.list

    @contextmanager
    def drops_first(work: Callable[[], object], interval_s: float) -> Iterator[None]:
        world.items.drop()
        work()
        yield

    with pytest.raises(FencedError, match="the work list was dropped"):
        world.worker(repeat=drops_first).run()
    assert not list(iter_records(world.inner, *dropped.heartbeats_range))


def test_a_worker_that_goes_on_is_not_finished() -> None:
    world = WorkWorld()
    seen: list[bool] = []

    def is_finished() -> list[bool]:
        return [one.is_finished for one in read_task_progress(world.inner, world.job)]

    def slow(txn: Any, key: int, value: object) -> None:
        world.environment.clock.sleep(LEASE_S)
        seen.extend(is_finished())
        grow(txn, key, value)

    world.worker(group=1, function=slow).run()
    assert seen and not any(seen), "it has written its progress several times"
    assert is_finished() == [True]
