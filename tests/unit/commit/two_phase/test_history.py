"""Check that `read_history` returns the progress of each job, and that `verify` reports those that are unfinished."""

from __future__ import annotations

import pytest

from holdfast.commit import TWO_PHASE, Kind, read_history, recover, verify
from holdfast.stores.interceptors import StoreOperation
from tests.interceptors import Fault, FaultMode, SimulatedCrash
from tests.simulation.world import TASKS, World, run_tasks, start


def test_unfinished_job_is_a_problem_and_history_tells_its_state() -> None:
    world = World("upload")
    for operation, state in ((StoreOperation.COMPLETE_UPLOAD, "decided"), (StoreOperation.LIST_UPLOADS, "visible")):
        job = start(world.context())
        messages = run_tasks(world.context(), job, "new")
        with pytest.raises(SimulatedCrash):
            TWO_PHASE.commit_job(world.context(Fault(FaultMode.CRASH_BEFORE, operation)), job, messages, TASKS)
        assert read_history(world.context()).decisions[-1].state == state
        assert any("holdfast recover" in problem for problem in verify(world.context()).problems)
        recover(world.context())
        assert read_history(world.context()).decisions[-1].state == "done"
        assert verify(world.context()).verified


def test_history_shows_open_and_aborted_jobs() -> None:
    world = World("upload")
    job = start(world.context())
    run_tasks(world.context(), job, "new")
    history = read_history(world.context())
    assert [(found.job, found.manifests) for found in history.open_jobs] == [(job.job, 2)]
    assert any("undecided" in note for note in verify(world.context()).notes)
    TWO_PHASE.abort_job(world.context(), job)
    history = read_history(world.context())
    assert not history.open_jobs and history.decisions[0].entry.kind is Kind.ABORT
