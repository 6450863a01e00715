"""C9: crash every store call of a small job once, before and after its effect, and then recover.

The crashes are enumerated, not sampled: each test runs the process repeatedly, one call further each time, until it
completes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    JobRecord,
    Kind,
    SaveMode,
    TaskCommit,
    read_history,
    read_snapshot,
    recover,
)
from holdfast.commit.two_phase.recovery import Decision
from tests.interceptors import SimulatedCrash, crash_at
from tests.simulation.world import (
    HOME,
    PUBLICATIONS,
    TASKS,
    World,
    assert_settled,
    expected,
    result,
    run_job,
    run_task,
    run_tasks,
    start,
)

MODES = [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS]


def crashes(
    publication: str, prepare: Callable[[World], Callable[[CommitContext], object]]
) -> Iterator[tuple[World, int]]:
    """Yield each world in which one process died at its nth call, for every n, before and after the effect."""
    for after in (False, True):
        for nth in itertools.count(1):
            world = World(publication)
            process = prepare(world)
            try:
                process(world.context(crash_at(nth, after=after)))
            except SimulatedCrash:
                yield world, nth
            else:
                assert nth > 3, "the process made no calls: nothing was tested"
                break


def was_committed(world: World) -> bool:
    """Return whether the log says that the newest job is committed."""
    return any(decision.entry.seq == 2 and decision.entry.kind is Kind.COMMIT for decision in history(world))


def history(world: World) -> list[Decision]:
    return read_history(world.context()).decisions


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_driver_dies_in_job_commit(publication: str, mode: SaveMode) -> None:
    """C1, C4, C8, C9 at every call of the job commit."""

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(world.context(), "old")
        job = start(world.context(), mode)
        messages = run_tasks(world.context(), job, "new")
        return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

    outcomes = set()
    for world, _ in crashes(publication, prepare):
        committed = was_committed(world)
        outcomes.add(committed)
        seen = world.contents()
        if not committed:
            assert seen == expected("old"), "C4: nothing of an undecided job is visible"
        missing_old = not set(expected("old")) <= set(seen)
        complete_new = set(expected("new")) <= set(seen)
        assert complete_new or not missing_old, "C9: what is replaced goes only when the replacement is complete"
        through_holdfast = [world.listing()[file.path] for file in read_snapshot(world.context()).files]
        assert sorted(through_holdfast) in (expected("old"), result(mode)), "C4: a reader sees all or nothing"

        recover(world.context())
        assert_settled(world, result(mode) if committed else expected("old"))
        recover(world.context())
        assert_settled(world, result(mode) if committed else expected("old"))  # C10
    assert outcomes == {True, False}, "crashes on both sides of the commit point were seen"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_next_job_rolls_a_dead_drivers_job_forward(publication: str) -> None:
    """The next job on the destination rolls a decided job forward. An undecided job stays invisible."""

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(world.context(), "old")
        job = start(world.context(), SaveMode.OVERWRITE)
        messages = run_tasks(world.context(), job, "new")
        return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

    for world, _ in crashes(publication, prepare):
        committed = was_committed(world)
        run_job(world.context(), "next")
        base = expected("new") if committed else expected("old")
        assert world.contents() == sorted(base + expected("next"))
        recover(world.context())
        assert_settled(world, sorted(base + expected("next")))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_task_attempt_dies_and_is_retried(publication: str) -> None:
    """C2, C3 at every call of a task attempt: the retry's files count, the dead attempt's files never do."""
    jobs = []

    def prepare(world: World) -> Callable[[CommitContext], object]:
        job = start(world.context())
        jobs.append(job)
        return lambda ctx: run_task(ctx, job, 0, "dead")

    for world, _ in crashes(publication, prepare):
        ctx, job = world.context(), jobs[-1]
        assert world.contents() == []
        outcome = TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "new"), TASKS)
        assert outcome.committed and outcome.finished
        assert_settled(world, expected("new"))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_driver_dies_while_starting(publication: str) -> None:
    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(world.context(), "old")
        return lambda ctx: start(ctx, SaveMode.OVERWRITE)

    for world, _ in crashes(publication, prepare):
        recover(world.context())
        assert_settled(world, expected("old"))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_driver_dies_in_abort(publication: str) -> None:
    """C5 at every call of the job abort."""

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(world.context(), "old")
        job = start(world.context(), SaveMode.OVERWRITE)
        run_tasks(world.context(), job, "new")
        return lambda ctx: TWO_PHASE.abort_job(ctx, job)

    for world, _ in crashes(publication, prepare):
        assert world.contents() == expected("old")
        recover(world.context())
        assert_settled(world, expected("old"))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_recovery_dies_too(publication: str) -> None:
    """C9, C10: the driver dies at every call, and then recovery dies at each of its calls."""
    for nth in itertools.count(1):
        for recovery_nth in itertools.count(1):
            world = World(publication)
            run_job(world.context(), "old")
            job = start(world.context(), SaveMode.OVERWRITE)
            messages = run_tasks(world.context(), job, "new")
            try:
                TWO_PHASE.commit_job(world.context(crash_at(nth)), job, messages, TASKS)
                return
            except SimulatedCrash:
                committed = was_committed(world)
            try:
                recover(world.context(crash_at(recovery_nth, after=True)))
            except SimulatedCrash:
                recover(world.context())
                assert_settled(world, expected("new") if committed else expected("old"))
            else:
                break


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_abort_after_a_commit_that_died(publication: str) -> None:
    """Spark calls abort in a fresh process after a commit died. A decided job is rolled forward (Iceberg 4686)."""
    jobs = []

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(world.context(), "old")
        job = start(world.context(), SaveMode.OVERWRITE)
        jobs.append(job)
        messages = run_tasks(world.context(), job, "new")
        return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

    for world, _ in crashes(publication, prepare):
        committed = was_committed(world)
        outcome = TWO_PHASE.abort_job(world.context(), jobs[-1])
        assert outcome.committed == committed, "C8"
        assert_settled(world, expected("new") if committed else expected("old"))


def test_folders_of_other_destinations_are_not_touched() -> None:
    """C7: a crash and recovery in ``dataset1`` leave a running job in ``dataset10`` alone."""
    neighbour = HOME.replace("dataset1", "dataset10")

    def prepare(world: World) -> Callable[[CommitContext], object]:
        other = start(world.context(home=neighbour))
        others.append((other, run_tasks(world.context(home=neighbour), other, "other")))
        job = start(world.context())
        messages = run_tasks(world.context(), job, "new")
        return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

    others: list[tuple[JobRecord, list[TaskCommit]]] = []
    for world, _ in crashes("upload", prepare):
        recover(world.context())
        job, messages = others[-1]
        TWO_PHASE.commit_job(world.context(home=neighbour), job, messages, TASKS)
        assert world.contents(neighbour) == expected("other")
        assert world.pending() == []
