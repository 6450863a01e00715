"""Fail each store call of a job, or lose its reply, and then do what Spark would do."""

from __future__ import annotations

import itertools

import pytest

from holdfast.commit import TWO_PHASE, SaveMode, read_history, recover
from holdfast.errors import HoldfastError, OutcomeUnknownError, UnavailableError
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty
from tests.simulation.world import (
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


@pytest.mark.parametrize("times", [1, 3, FOR_EVER])
@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_failure_at_every_call_of_job_commit(publication: str, fault: FaultMode, times: int) -> None:
    """The result of commit is true (C1, C8). After an error, Spark calls abort, and one outcome is complete."""
    for nth in itertools.count(1):
        world = World(publication)
        run_job(world.context(), "old")
        job = start(world.context(), SaveMode.OVERWRITE)
        messages = run_tasks(world.context(), job, "new")
        faulty = Faulty(Fault(fault, nth=nth, times=times))
        store = InterceptedStore(world.store, faulty)
        try:
            outcome = TWO_PHASE.commit_job(world.context(store=store), job, messages, TASKS)
        except (UnavailableError, OutcomeUnknownError):
            outcome = TWO_PHASE.abort_job(world.context(), job)
            assert_settled(world, expected("new") if outcome.committed else expected("old"))
        else:
            assert outcome.committed, "commit returned"
            if outcome.finished:
                assert_settled(world, expected("new"))
            else:
                assert "recover" in outcome.pending_reason
                assert times == FOR_EVER, "trouble that passes is sat out"
                recover(world.context())
                assert_settled(world, expected("new"))
        if not faulty.fired:
            break


@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_failure_at_every_call_of_a_task(publication: str, fault: FaultMode) -> None:
    """A failing task cleans up what it knows of; the retry counts; no upload is left at the end."""
    for nth in itertools.count(1):
        world = World(publication)
        job = start(world.context())
        faulty = Faulty(Fault(fault, nth=nth))
        try:
            first = run_task(world.context(store=InterceptedStore(world.store, faulty)), job, 0, "new")
        except HoldfastError:
            first = run_task(world.context(), job, 0, "new")
        second = run_task(world.context(), job, 1, "new")
        TWO_PHASE.commit_job(world.context(), job, [first, second], TASKS)
        assert_settled(world, expected("new"))
        if not faulty.fired:
            break


def test_lost_reply_of_the_decision_is_recognized() -> None:
    """Scenario 80, LOST RESPONSE: a retried put-if-absent finds its own entry and recognizes it by its content."""
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    fault = Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, "*/_holdfast/log/*.json")
    outcome = TWO_PHASE.commit_job(world.context(fault), job, messages, TASKS)
    assert outcome.committed and outcome.finished
    assert [decision.entry.seq for decision in read_history(world.context()).decisions] == [1]
    assert_settled(world, expected("new"))


def test_lost_reply_of_a_completion_is_settled_by_head() -> None:
    """Fault 15: the retry returns "no such upload", which alone proves nothing."""
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    fault = Fault(FaultMode.LOST_REPLY, StoreOperation.COMPLETE_UPLOAD, times=3)
    outcome = TWO_PHASE.commit_job(world.context(fault), job, messages, TASKS)
    assert outcome.finished
    assert_settled(world, expected("new"))


def test_store_that_fails_after_the_decision() -> None:
    """Scenario 82: a failure after the commit point means "committed, cleanup pending"; the next job finishes it."""
    world = World("upload")
    job = start(world.context(), SaveMode.OVERWRITE)
    messages = run_tasks(world.context(), job, "new")
    fault = Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=2, times=FOR_EVER)
    outcome = TWO_PHASE.commit_job(world.context(fault), job, messages, TASKS)
    assert outcome.committed and not outcome.finished
    assert "committed, its publication or cleanup is pending" in outcome.pending_reason
    run_job(world.context(), "next")
    assert_settled(world, sorted(expected("new") + expected("next")))


@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.APPEND])
def test_abort_raises_only_what_it_must(publication: str, mode: SaveMode) -> None:
    """Fault 31: the store is unavailable during abort. Abort raises, and recovery ends the job later."""
    world = World(publication)
    run_job(world.context(), "old")
    job = start(world.context(), mode)
    run_tasks(world.context(), job, "new")
    with pytest.raises(UnavailableError):
        TWO_PHASE.abort_job(world.context(Fault(FaultMode.FAIL, times=FOR_EVER)), job)
    assert world.contents() == expected("old")
    recover(world.context())
    assert_settled(world, expected("old"))
    run_job(world.context(), "new", mode)
    assert_settled(world, result(mode))
