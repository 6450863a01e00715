"""Write a stream's batches and repeat them as Spark does, with a failure at every store call: each counts once (C8).

Only what Spark carries is passed from one phase to the next: the plan to the tasks, their messages to the commit. No
test runs recovery before it checks, because a stream cleans up after its own dead attempts.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobOutcome, JobRecord, SaveMode, StreamBatch, TaskCommit, recover
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch, roll_forward_decisions
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder, SimulatedCrash, crash_at
from tests.simulation.world import (
    HOME,
    PUBLICATIONS,
    STEPWISE,
    TASKS,
    At,
    World,
    assert_settled,
    expected,
    run_job,
    run_task,
    start,
)

MODES = [SaveMode.APPEND, SaveMode.OVERWRITE]


def batch_of(number: int, stream: str = "flights", checkpoint: str = "query-1") -> StreamBatch:
    return StreamBatch(stream=stream, checkpoint=checkpoint, batch=number)


class Reports:
    """What a batch's tasks have reported to the driver so far."""

    def __init__(self) -> None:
        self.job: JobRecord | None = None
        self.commits: list[TaskCommit | None] = []


def write_tasks(ctx: CommitContext, batch: StreamBatch, name: str, mode: SaveMode, reports: Reports) -> None:
    """Create the writer and run the tasks."""
    plan = plan_batch(ctx, mode, {"name": name})
    for task in range(TASKS):
        reports.job = announce_stream_batch(ctx, plan, batch)
        if reports.job is not None:
            reports.commits.append(run_task(ctx, reports.job, task, name))


def commit(ctx: CommitContext, reports: Reports) -> JobOutcome | None:
    if reports.job is None:
        roll_forward_decisions(ctx)
        return None
    return TWO_PHASE.commit_job(ctx, reports.job, reports.commits, TASKS)


def write_batch(
    ctx: CommitContext, batch: StreamBatch, name: str, mode: SaveMode = SaveMode.APPEND
) -> JobOutcome | None:
    """Run a batch from start to end; return None if it had been committed before."""
    reports = Reports()
    write_tasks(ctx, batch, name, mode, reports)
    return commit(ctx, reports)


def result(mode: SaveMode, *names: str) -> list[bytes]:
    """Return the destination's contents after these batches."""
    kept = names if mode is SaveMode.APPEND else names[-1:]
    return sorted(content for name in kept for content in expected(name))


# --- crashes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_the_driver_dies_at_every_call_and_spark_repeats_the_batch(publication: str, mode: SaveMode) -> None:
    """C8, C9: the rows of the attempt that was decided exist once, and nothing of the other is left."""
    winners = set()
    for after in (False, True):
        for nth in itertools.count(1):
            world = World(publication)
            write_batch(world.context(), batch_of(0), "zero", mode)
            try:
                write_batch(world.context(crash_at(nth, after=after)), batch_of(1), "died", mode)
            except SimulatedCrash:
                outcome = write_batch(world.context(), batch_of(1), "again", mode)
            else:
                assert nth > 20, "the whole batch was gone through"
                break
            winner = "died" if outcome is None else "again"
            winners.add(winner)
            assert_settled(world, result(mode, "zero", winner))
            write_batch(world.context(), batch_of(2), "two", mode)
            assert_settled(world, result(mode, "zero", winner, "two"))
    assert winners == {"died", "again"}, "both sides of the decision were seen"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_the_repetition_dies_too(publication: str) -> None:
    """C9, C10: two attempts at a batch die, at any call; the third one finishes it."""
    for nth in itertools.count(1, 2):
        for second_nth in itertools.count(1, 2):
            world = World(publication)
            try:
                write_batch(world.context(crash_at(nth)), batch_of(0), "first")
                return
            except SimulatedCrash:
                pass
            try:
                write_batch(world.context(crash_at(second_nth, after=True)), batch_of(0), "second")
            except SimulatedCrash:
                write_batch(world.context(), batch_of(0), "third")
                assert world.contents() in [expected(name) for name in ("first", "second", "third")]
                if publication == "transaction":  # there is nothing to roll forward: the next batch cleans up
                    write_batch(world.context(), batch_of(1), "next")
                assert_settled(world, world.contents())
            else:
                break


# --- failures ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("times", [1, FOR_EVER])
@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_commit_raises_spark_aborts_and_repeats(publication: str, fault: FaultMode, times: int) -> None:
    """C8: an abort neither undoes a committed batch nor blocks its number: the batch counts exactly once."""
    for nth in itertools.count(1):
        world = World(publication)
        reports = Reports()
        write_tasks(world.context(), batch_of(0), "first", SaveMode.APPEND, reports)
        faulty = Faulty(Fault(fault, nth=nth, times=times))
        raised = False
        try:
            commit(world.context(store=InterceptedStore(world.store, faulty)), reports)
        except HoldfastError:
            raised = True
            assert reports.job is not None
            TWO_PHASE.abort_job(world.context(), reports.job)
        outcome = write_batch(world.context(), batch_of(0), "second")
        assert_settled(world, expected("first" if outcome is None else "second"))
        assert raised or outcome is None, "commit returned, so the batch was decided"
        if not faulty.fired:
            break


@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_failure_while_tasks_write(publication: str, fault: FaultMode) -> None:
    """A failing task stops the query (there are no retries here). The batch is written again and counts once."""
    for nth in itertools.count(1):
        world = World(publication)
        reports, failed = Reports(), False
        faulty = Faulty(Fault(fault, nth=nth))
        try:
            ctx = world.context(store=InterceptedStore(world.store, faulty))
            write_tasks(ctx, batch_of(0), "first", SaveMode.APPEND, reports)
            commit(world.context(), reports)
        except HoldfastError:
            failed = True
            if reports.job is not None and reports.commits:
                TWO_PHASE.abort_job(world.context(), reports.job)
        assert (write_batch(world.context(), batch_of(0), "second") is not None) == failed
        assert_settled(world, expected("second" if failed else "first"))
        if not faulty.fired:
            break


# --- two drivers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_an_old_driver_continues_next_to_its_replacement(publication: str) -> None:
    """C6, C8: of two drivers with one checkpoint, the old one stops before call n and the new one continues."""
    winners = set()
    for nth in itertools.count(1):
        world = World(publication)
        write_batch(world.context(), batch_of(0), "zero")

        def take_over(world: World = world) -> None:
            write_batch(world.context(), batch_of(1), "new")
            write_batch(world.context(), batch_of(2), "two")

        stop = At(nth, take_over)
        reports = Reports()
        ctx = world.intercepted(stop)
        try:
            write_tasks(ctx, batch_of(1), "old", SaveMode.APPEND, reports)
            commit(ctx, reports)
        except HoldfastError:
            if reports.job is not None:
                TWO_PHASE.abort_job(world.context(), reports.job)
        if not stop.fired:
            break
        write_batch(world.context(), batch_of(3), "three")
        winner = "old" if set(expected("old")) <= set(world.contents()) else "new"
        winners.add(winner)
        assert_settled(world, result(SaveMode.APPEND, "zero", winner, "two", "three"))
    assert winners == {"old", "new"}, "both drivers won"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_task_of_a_dead_driver_starts_late(publication: str) -> None:
    """C2: the task announces a job that has ended; the stream's next batch cleans it up."""
    world = World(publication)
    late = plan_batch(world.context(), SaveMode.APPEND, {})
    write_batch(world.context(), batch_of(0), "zero")
    job = announce_stream_batch(world.context(), late, batch_of(0))
    assert job is not None, "its plan is of before"
    run_task(world.context(), job, 0, "zombie")
    assert world.leftovers() != []
    write_batch(world.context(), batch_of(1), "one")
    assert_settled(world, result(SaveMode.APPEND, "zero", "one"))


# --- neighbours -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_what_is_alive_is_spared(publication: str) -> None:
    """C7: a later batch, another stream, another checkpoint of the same name and a batch job can all still commit."""
    world = World(publication)
    ctx = world.context()
    alive = [batch_of(5), batch_of(0, stream="other"), batch_of(1, stream="gates", checkpoint="query-2")]
    write_batch(ctx, batch_of(0, stream="gates", checkpoint="query-2"), "gates")
    waiting = []
    for number, batch in enumerate(alive):
        reports = Reports()
        write_tasks(ctx, batch, f"alive {number}", SaveMode.APPEND, reports)
        waiting.append(reports)
    job = start(ctx)
    messages = [run_task(ctx, job, task, "job") for task in range(TASKS)]
    write_batch(ctx, batch_of(0), "zero")
    write_batch(ctx, batch_of(1), "one")
    for reports in [*waiting[1:], waiting[0]]:
        outcome = commit(ctx, reports)
        assert outcome is not None and outcome.committed
    assert TWO_PHASE.commit_job(ctx, job, messages, TASKS).committed
    for batch in (batch_of(5), batch_of(0, stream="other"), batch_of(0, stream="gates", checkpoint="query-2")):
        assert write_batch(ctx, batch, "again") is None, "one mark a stream"
    names = ("gates", "zero", "one", "job", *(f"alive {number}" for number in range(3)))
    assert_settled(world, result(SaveMode.APPEND, *names))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_others_clean_up_while_a_batch_waits_to_be_published(publication: str) -> None:
    """C7, C9: the driver dies between decision and publication. Aborts and recovery by others remove nothing."""
    for nth in itertools.count(1):
        world = World(publication)
        write_batch(world.context(), batch_of(0), "zero")
        other = start(world.context())
        run_task(world.context(), other, 0, "other")
        reports = Reports()
        write_tasks(world.context(), batch_of(1), "one", SaveMode.APPEND, reports)
        try:
            commit(world.context(crash_at(nth)), reports)
            return
        except SimulatedCrash:
            pass
        TWO_PHASE.abort_job(world.context(), other)
        outcome = write_batch(world.context(), batch_of(1), "again")
        assert_settled(world, result(SaveMode.APPEND, "zero", "one" if outcome is None else "again"))


def test_the_end_of_a_batch_lists_no_more_than_that_of_a_job() -> None:
    """Cleanup finds what dead attempts left in the listings that it makes in any case."""

    def listings(write: Callable[[CommitContext], object]) -> int:
        world = World("upload")
        write_batch(world.context(), batch_of(0), "zero")
        seen = Recorder()
        write(world.context(store=InterceptedStore(world.store, seen)))
        return seen.count(StoreOperation.LIST) + seen.count(StoreOperation.LIST_UPLOADS)

    def job(ctx: CommitContext) -> None:
        run_job(ctx, "job")

    def batch(ctx: CommitContext) -> None:
        write_batch(ctx, batch_of(1), "one")

    assert listings(batch) == listings(job)


# --- no growth --------------------------------------------------------------------------------------------------------
def test_four_hundred_batches_leave_a_bounded_log() -> None:
    """A stream runs indefinitely: what it leaves besides its output does not grow, and its mark survives trimming."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=5)
    sizes = []
    for number in range(400):
        write_batch(ctx, batch_of(number), "batch")
        if number % 40 == 7:
            aborted = start(ctx)
            TWO_PHASE.abort_job(ctx, aborted)
            run_job(ctx, "other", tasks=1)
        sizes.append(sum(1 for _ in iter_objects(world.store, HOME + "_holdfast/")))
    assert max(sizes) <= 3 * 6 and sizes[-1] <= 3 * 5
    for _ in range(12):
        run_job(ctx, "other", tasks=1)
    before = world.contents()
    assert len(before) == 400 * 4 + 22 * 2
    assert write_batch(ctx, batch_of(399), "again") is None
    assert write_batch(ctx, batch_of(17), "again") is None
    with pytest.raises(InvalidRequestError, match="another checkpoint"):
        write_batch(ctx, batch_of(0, checkpoint="query-2"), "again")
    assert_settled(world, before)


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_another_checkpoint_is_refused_also_at_the_last_moment(publication: str) -> None:
    """Its batch numbers start again: if they counted as the old ones, data would be silently lost."""
    world = World(publication)
    reports = Reports()
    write_tasks(world.context(), batch_of(0, checkpoint="query-2"), "mine", SaveMode.APPEND, reports)
    write_batch(world.context(), batch_of(0), "theirs")
    with pytest.raises(InvalidRequestError, match="continue with that checkpoint; with another streamId"):
        commit(world.context(), reports)
    assert reports.job is not None
    with contextlib.suppress(HoldfastError):
        TWO_PHASE.abort_job(world.context(), reports.job)
    assert_settled(world, expected("theirs"))


@pytest.mark.parametrize("publication", STEPWISE)
def test_a_batch_without_data_does_not_trim_a_decision_that_is_stuck(publication: str) -> None:
    """C9: settling rolls forward what it can; what fails again keeps its entry, however short the log."""
    world = World(publication)
    publishes = StoreOperation.COMPLETE_UPLOAD if publication == "upload" else StoreOperation.RENAME
    broken = world.context(Fault(FaultMode.FAIL, publishes, times=FOR_EVER)).with_settings(log_retention_entries=1)
    assert not run_job(broken, "stuck").finished
    for _ in range(3):
        TWO_PHASE.abort_job(broken, start(broken))
    roll_forward_decisions(broken)
    assert read_log(world.context()).unfinished == [1]
    recover(world.context())
    assert_settled(world, expected("stuck"))
