"""Repeat a write under its name and kill any process: only one job is committed (C8)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobOutcome, Kind, SaveMode, read_history, recover
from holdfast.commit.layout import WRITES
from holdfast.commit.records import Totals
from holdfast.commit.two_phase.decision import roll_forward_earlier_jobs
from holdfast.commit.two_phase.decision_log import KEPT_S, WRITE_ID, find_job_by_write_id, read_log
from holdfast.commit.writes import QUIET_S, refuse_running_write
from holdfast.errors import ConflictError, CorruptDataError, HoldfastError
from holdfast.stores.base import Overwrite, iter_objects
from holdfast.stores.interceptors import StoreOperation
from tests.clocks import SimulatedClock
from tests.interceptors import Fault, FaultMode, SimulatedCrash, crash_at
from tests.simulation.world import (
    HOME,
    PUBLICATIONS,
    TASKS,
    World,
    assert_settled,
    expected,
    interleavings,
    run_job,
    run_tasks,
)


def write(ctx: CommitContext, name: str, write_id: str = "nightly", mode: SaveMode = SaveMode.APPEND) -> JobOutcome:
    """Run a write from start to end, as `holdfast.write` does; `name` determines its content."""
    found = find_job_by_write_id(ctx, read_log(ctx), write_id)
    if found is not None:
        return JobOutcome(job=found.job, committed=False)  # type: ignore[arg-type]  # the id survives only as text
    job = TWO_PHASE.setup_job(ctx, mode, {WRITE_ID: write_id})
    assert job is not None
    return TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, name), TASKS)


def committed(world: World) -> list[str]:
    decisions = read_history(world.context()).decisions
    return [one.entry.job for one in decisions if one.entry.kind is Kind.COMMIT]


@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
def test_a_repeated_write_writes_nothing_and_returns_the_first(publication: str, mode: SaveMode) -> None:
    world = World(publication)
    first = write(world.context(), "one", mode=mode)
    again = write(world.context(), "two", mode=mode)
    assert (first.committed, again.committed, again.job) == (True, False, first.job)
    found = find_job_by_write_id(world.context(), read_log(world.context()), "nightly")
    assert found is not None
    assert (found.job, found.totals.files, found.finished) == (first.job, 2 * TASKS, True)
    assert_settled(world, expected("one"))
    other = write(world.context(), "three", "another")
    assert other.committed


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_write_that_dies_anywhere_is_repeated(publication: str) -> None:
    """C9 at every store call, before and after its effect: the caller simply retries, without recovery."""
    outcomes = set()
    for after in (False, True):
        for nth in itertools.count(1):
            world = World(publication)
            try:
                write(world.context(crash_at(nth, after=after)), "one")
            except SimulatedCrash:
                before = committed(world)
                outcomes.add(len(before))
                write(world.context(), "two")
                assert len(committed(world)) == 1, "one job a name"
                recover(world.context())
                assert_settled(world, expected("one") if before else expected("two"))
            else:
                assert nth > 10, "the process made no calls: nothing was tested"
                break
    assert outcomes == {0, 1}, "crashes on both sides of the commit point were seen"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_two_writes_at_one_time_commit_one_job(publication: str) -> None:
    """The second write runs completely before each store call of the first."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        return lambda ctx: write(ctx, "one"), lambda: write(world.context(), "two")

    seen = set()
    for world in interleavings(publication, prepare):
        jobs = committed(world)
        assert len(jobs) == 1, "one job a name"
        recover(world.context())
        contents = world.contents()
        seen.add(contents[0])
        assert contents in (expected("one"), expected("two"))
        assert_settled(world, contents)
    assert seen == {expected("one")[0], expected("two")[0]}, "each of the two came first somewhere"


def write_and_trim(world: World) -> tuple[CommitContext, JobOutcome]:
    """Write with a write id, then other jobs until the log has forgotten the decision."""
    ctx = world.context().with_settings(log_retention_entries=1)
    first = write(ctx, "one")
    for number in range(4):
        run_job(ctx, f"other {number}")
    assert read_log(ctx).oldest > 1, "the decision is trimmed"
    return ctx, first


def test_the_write_id_outlives_the_log() -> None:
    world = World("upload")
    ctx, first = write_and_trim(world)
    assert write(ctx, "two").job == first.job
    assert KEPT_S == 90 * 24 * 60 * 60, "documented: 90 days"
    world.clock.sleep(KEPT_S - 3600)
    assert write(ctx, "next to last", "other").committed
    assert write(ctx, "two").job == first.job
    world.clock.sleep(3600 + 60)
    assert write(ctx, "later", "fresh").committed
    assert write(ctx, "later", "fresher").committed, "a job with a write id sweeps what is too old"
    assert len(list(iter_objects(world.store, HOME + WRITES))) == 3, "the other and the fresh ones"
    assert write(ctx, "three").committed, "documented: names are forgotten in the end"


def test_a_decision_that_is_trimmed_after_the_log_was_listed_is_found_by_its_record() -> None:
    world = World("upload")
    ctx, first = write_and_trim(world)
    listed = replace(read_log(ctx), oldest=1, done=frozenset())
    assert listed.unfinished[0] == 1
    found = find_job_by_write_id(ctx, listed, "nightly")
    assert found is not None and (found.job, found.finished) == (first.job, True)
    before = world.listing()
    assert roll_forward_earlier_jobs(ctx, listed) == []
    assert world.listing() == before


def test_a_driver_whose_clock_is_ahead_forgets_no_write_id() -> None:
    """Defect: it took all records for old, and a write that came again was committed twice."""
    world = World("upload")
    ctx, first = write_and_trim(world)
    ahead = SimulatedClock(world.clock.now_s() + KEPT_S + 1000)
    wrong = replace(ctx, environment=replace(ctx.environment, clock=ahead))
    assert write(wrong, "of the wrong clock", "other").committed
    run_job(ctx, "next")
    assert write(ctx, "two").job == first.job


def test_a_write_that_failed_leaves_its_write_id_free() -> None:
    world = World("upload")
    ctx = world.context()
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {WRITE_ID: "nightly"})
    assert job is not None
    with pytest.raises(ConflictError, match=r"is running.*five minutes"):
        refuse_running_write(ctx, "nightly")
    refuse_running_write(ctx, "another")
    TWO_PHASE.abort_job(ctx, job)
    refuse_running_write(ctx, "nightly")
    assert write(ctx, "one").committed


def test_an_abort_that_died_halfway_leaves_its_write_id_free() -> None:
    """The abort is in the log and not done yet: only a commit takes the name."""
    undone = 0
    for nth in itertools.count(1):
        world = World("upload")
        job = TWO_PHASE.setup_job(world.context(), SaveMode.APPEND, {WRITE_ID: "nightly"})
        assert job is not None
        try:
            TWO_PHASE.abort_job(world.context(crash_at(nth, after=True)), job)
        except SimulatedCrash:
            view = read_log(world.context())
            undone += len(view.unfinished)
            assert find_job_by_write_id(world.context(), view, "nightly") is None
        else:
            break
    assert undone, "an abort that was decided and not done was seen"


def test_a_quiet_job_blocks_no_other_write() -> None:
    world = World("upload")
    assert TWO_PHASE.setup_job(world.context(), SaveMode.APPEND, {WRITE_ID: "nightly"}) is not None
    world.clock.sleep(QUIET_S + 1)
    refuse_running_write(world.context(), "nightly")


def test_a_slow_writer_returns_the_outcome_of_the_faster_one() -> None:
    """It discards its own work, and nothing of it becomes visible."""
    world = World("rename")
    ctx = world.context()
    slow = TWO_PHASE.setup_job(ctx, SaveMode.OVERWRITE, {WRITE_ID: "nightly"})
    assert slow is not None
    messages = run_tasks(ctx, slow, "slow")
    fast = write(ctx, "fast")
    outcome = TWO_PHASE.commit_job(ctx, slow, messages, TASKS)
    assert (fast.committed, outcome.committed) == (True, False)
    assert_settled(world, expected("fast"))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format": "holdfast-write/1", "write_id": "other", "job": "x"}'])
def test_a_record_that_cannot_be_read_stops_the_write(data: bytes) -> None:
    """Data from a store is not trusted: it never means "free", and never "done"."""
    world = World("upload")
    write(world.context(), "one")
    key = next(iter_objects(world.store, HOME + WRITES)).key
    world.store.put(key, data, Overwrite())
    with pytest.raises(CorruptDataError) as error:
        write(world.context(), "two")
    assert isinstance(error.value, HoldfastError)
    assert world.contents() == expected("one")


def test_totals_are_those_of_the_first() -> None:
    world = World("upload")
    write(world.context(), "one")
    found = find_job_by_write_id(world.context(), read_log(world.context()), "nightly")
    assert found is not None
    assert found.totals == Totals(files=4, size_bytes=sum(map(len, expected("one"))), rows=4)


def test_a_write_whose_decision_is_not_carried_out_yet_is_found_unfinished() -> None:
    world = World("upload")
    dying = world.context(Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD))
    with pytest.raises(SimulatedCrash):
        write(dying, "one")
    found = find_job_by_write_id(world.context(), read_log(world.context()), "nightly")
    assert found is not None and (found.committed, found.finished) == (True, False)
    recover(world.context())
    found = find_job_by_write_id(world.context(), read_log(world.context()), "nightly")
    assert found is not None and (found.committed, found.finished) == (True, True)
