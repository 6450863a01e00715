"""Test what dead jobs of ``file-v1`` and ``file-v2`` leave, and how recovery ends them."""

from __future__ import annotations

import pytest

from holdfast.commit import COMMITTERS, JobOutcome, JobRecord
from holdfast.commit.leftovers import RecoveryAction
from holdfast.errors import ConflictError
from holdfast.stores.interceptors import StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, SimulatedCrash, crash_at
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

V1 = COMMITTERS["file-v1"]


def run_with(bucket: Bucket, *faults: Fault) -> JobOutcome:
    """Return a job of two tasks whose first attempt at each task died before its commit, on a store with `faults`."""
    job = bucket.start(bucket.context())
    for task in range(2):
        open_attempt(bucket, bucket.context(), job, task, {f"day=1/{part(job, task)}": b"dead"})
    ctx = faulty_context(bucket, *faults)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
    return bucket.commit(ctx, job, commits)


def part(job: JobRecord, task: int) -> str:
    return f"part-{task:05d}-{job.job}-c000.txt"


def finish_all(bucket: Bucket) -> list[RecoveryAction]:
    """Recover as a user does with ``holdfast recover``."""
    actions = []
    for name in ("file-v1", "file-v2"):
        find = COMMITTERS[name].find_leftovers
        assert find is not None
        for found in list(find(bucket.context())):
            found.recover()
            found.recover()
            actions.append(found.action)
    return actions


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_call(after: bool) -> None:
    """Task, job commit or clean-up dies: recovery leaves all of the job or nothing, and the old data as they were.

    Here the attempts that never committed keep something below ``_temporary`` to the end.
    """
    nth, seen = 0, set[RecoveryAction]()
    while True:
        nth += 1
        bucket = Bucket("file-v1")
        bucket.run_job(bucket.context(), "old")
        try:
            run_with(bucket, crash_at(nth, after=after))
        except SimulatedCrash:
            seen.update(finish_all(bucket))
            contents = sorted(bucket.visible().values())
            old, both = bucket.expected("old"), sorted(bucket.expected("old") + bucket.expected("new"))
            assert contents in (old, both), f"call {nth}"
            assert bucket.debris() == [], f"call {nth}"
            continue
        break
    assert nth > 40 and seen == {RecoveryAction.BACK, RecoveryAction.CLEAN}


@pytest.mark.parametrize("operation", [StoreOperation.RENAME, StoreOperation.RENAME_DIR])
def test_every_rename_whose_reply_is_lost_is_settled(operation: StoreOperation) -> None:
    for nth in range(1, 20):
        bucket = Bucket("file-v1")
        assert run_with(bucket, Fault(FaultMode.LOST_REPLY, operation, nth=nth)).committed
        assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_a_job_that_died_before_success_with_nothing_left_below_temporary() -> None:
    """The last rename is done: all files are visible, and only the job's record is left to delete."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    with pytest.raises(SimulatedCrash):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, StoreOperation.PUT)), job, commits)
    assert finish_all(bucket) == [RecoveryAction.CLEAN]
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1) and bucket.debris() == []


@pytest.mark.parametrize("after", [False, True])
def test_file_v2_killed_at_every_call(after: bool) -> None:
    """Recovery deletes what the dead job had shown, as long as anything of it is left below ``_temporary``."""
    nth, seen = 0, set[RecoveryAction]()
    while True:
        nth += 1
        bucket = Bucket("file-v2")
        bucket.run_job(bucket.context(), "old")
        try:
            run_with(bucket, crash_at(nth, after=after))
        except SimulatedCrash:
            seen.update(finish_all(bucket))
            old, both = bucket.expected("old"), sorted(bucket.expected("old") + bucket.expected("new"))
            assert sorted(bucket.visible().values()) in (old, both), f"call {nth}"
            assert bucket.debris() == [], f"call {nth}"
            continue
        break
    assert nth > 35 and seen == {RecoveryAction.BACK, RecoveryAction.CLEAN}


def test_leftovers_say_what_was_found() -> None:
    """A job that died before its commit: nothing visible, one task could be recovered; live or dead, it has an age."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.run_task(ctx, job, 0, bucket.contents("new", 0))
    assert V1.leaves_records
    (found,) = V1.find_leftovers(ctx)
    assert (found.action, found.job, found.files, found.committer) == (RecoveryAction.BACK, job.job, 0, "file-v1")
    assert "could recover its 1 committed tasks" in found.reason
    assert 0 < bucket.clock.at_s - found.active_at_s < 1


def test_files_of_chosen_names_are_kept() -> None:
    """It is unknown which of them are visible: recovery touches nothing."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"images/1.png": b"1"})
    before = [info.key for info in bucket.store.list_page("").objects]
    assert finish_all(bucket) == [RecoveryAction.KEEP]
    assert [info.key for info in bucket.store.list_page("").objects] == before


def test_recovery_spares_other_jobs() -> None:
    """C7: unlike the committer itself, recovery deletes only the directories of one job, and never Hadoop's."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    one, two = bucket.start(ctx), bucket.start(ctx)
    for job in (one, two):
        bucket.run_task(ctx, job, 0, bucket.contents(job.job, 0))
    foreign = HOME + "_temporary/0/task_202611210938_0001_m_000000/part-00000"
    manifest = HOME + f"_temporary/manifest_{one.job}/00/manifests/x.json"
    for key in (foreign, manifest):
        bucket.store.put(key, b"")
    assert V1.leaves_records
    {found.job: found for found in V1.find_leftovers(ctx)}[one.job].recover()
    left = [info.key for info in bucket.store.list_page("").objects]
    assert {foreign, manifest} < set(left)
    assert not any(one.job in key for key in left if key != manifest) and any(two.job in key for key in left)


@pytest.mark.parametrize("committer", ["file-v1", "manifest"])
def test_a_job_that_commits_between_look_and_act_keeps_its_files(committer: str) -> None:
    """Recovery inspects every job before it acts on the first."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    find = COMMITTERS[committer].find_leftovers
    assert find is not None
    (found,) = find(bucket.context())
    assert found.action is RecoveryAction.BACK
    bucket.commit(ctx, job, commits)
    found.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


@pytest.mark.parametrize("committer", ["file-v1", "manifest"])
def test_a_job_that_has_gone_on_between_look_and_act_is_left_alone(committer: str) -> None:
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    find = COMMITTERS[committer].find_leftovers
    assert find is not None
    (found,) = find(bucket.context())
    with pytest.raises(SimulatedCrash):  # all files are visible, _SUCCESS is not
        bucket.commit(faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, StoreOperation.PUT)), job, commits)
    with pytest.raises(ConflictError, match="made progress"):
        found.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


@pytest.mark.parametrize("committer", ["file-v1", "file-v2"])
def test_a_committed_job_is_over_although_its_directory_could_not_be_deleted(committer: str) -> None:
    """Its record goes first: once another job has replaced _SUCCESS, nothing else says that the job is committed."""
    bucket = Bucket(committer)
    outcome = run_with(bucket, Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER))
    assert outcome.committed and not outcome.finished
    bucket.store.delete(f"{HOME}_SUCCESS")  # or another tool replaces it
    finish_all(bucket)
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
