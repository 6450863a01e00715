"""Check that `verify` finds what is wrong, and only that, and that `read_history` returns the progress of each job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.commit import TWO_PHASE, Kind, SaveMode, read_history, recover, verify
from holdfast.stores.interceptors.faulty import Fault, FaultMode, SimulatedCrash
from holdfast.stores.interceptors.intercepted import Operation
from tests.simulation.world import HOME, TASKS, World, run_job, run_tasks, start


def first_file(world: World) -> str:
    return HOME + next(iter(world.listing()))


def truncate(world: World) -> None:
    world.store.put(first_file(world), b"")


def delete(world: World) -> None:
    world.store.delete(first_file(world))


def add(world: World) -> None:
    key = first_file(world)
    world.store.put(key.replace("-00000.txt", "-00009.txt"), b"x")


def forge(world: World) -> None:
    """Create a file of a job that never committed."""
    job = start(world.context())
    name = f"part-00000-{job.job}-0123456789ab-00000.txt"
    world.store.put(HOME + name, b"x")
    TWO_PHASE.abort_job(world.context(), job)


def drop_success(world: World) -> None:
    world.store.delete(f"{HOME}_SUCCESS")


def old_success(world: World) -> None:
    report = world.store.get(f"{HOME}_SUCCESS")
    run_job(world.context(), "later")
    world.store.put(f"{HOME}_SUCCESS", report)


DAMAGES: dict[Callable[[World], None], str] = {
    truncate: "should have 4 files",
    delete: "has 3 files",
    add: "has 5 files",
    forge: "did not commit them",
    drop_success: "_SUCCESS is missing",
    old_success: "but the last job is",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found(damage: Callable[[World], None]) -> None:
    world = World("upload")
    run_job(world.context(), "new")
    assert verify(world.context()).verified
    damage(world)
    problems = verify(world.context()).problems
    assert len(problems) == 1 and DAMAGES[damage] in problems[0]


def test_counts_follow_the_log() -> None:
    world = World("upload")
    run_job(world.context(), "a")
    run_job(world.context(), "b", SaveMode.OVERWRITE_PARTITIONS, tasks=1)
    run_job(world.context(), "c")
    report = verify(world.context())
    assert report.verified and report.jobs == 3 and report.totals.files == 6
    run_job(world.context(), "d", SaveMode.OVERWRITE)
    report = verify(world.context())
    assert report.verified and report.totals.files == 4


def test_foreign_files_and_reports_are_notes() -> None:
    world = World("upload")
    run_job(world.context(), "new")
    world.store.put(f"{HOME}data.csv", b"x")
    world.store.put(f"{HOME}_SUCCESS", b"")
    report = verify(world.context())
    assert report.verified and len(report.notes) == 2


def test_unfinished_job_is_a_problem_and_history_tells_its_state() -> None:
    world = World("upload")
    for operation, state in ((Operation.COMPLETE_UPLOAD, "decided"), (Operation.LIST_UPLOADS, "visible")):
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
