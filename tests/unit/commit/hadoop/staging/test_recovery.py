"""Test what dead `staging-*` jobs leave, and how recovery ends them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobOutcome, SaveMode
from holdfast.commit.context import StagingPlaces
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.recovery import UNKNOWN, find_leftovers
from holdfast.commit.success_file import read_success_file
from holdfast.stores.base import ObjectStore, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash, crash_at
from tests.unit.commit.attempts import HOME, Before, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket, with_shared

STAGING = ["staging-directory", "staging-partitioned"]
_each = pytest.mark.parametrize("committer", STAGING)


def dying_context(bucket: Bucket, fault: Fault) -> CommitContext:
    """Return the context of a process that dies at a call to any of its stores."""
    faulty = Faulty(fault)
    ctx = bucket.context(store=InterceptedStore(bucket.store, faulty))
    assert ctx.staging is not None

    def wrapped(store: ObjectStore) -> InterceptedStore:
        return InterceptedStore(store, faulty)

    return replace(
        ctx,
        staging=StagingPlaces(
            scratch=replace(ctx.staging.scratch, store=wrapped(ctx.staging.scratch.store)),
            shared=replace(ctx.staging.shared, store=wrapped(ctx.staging.shared.store)),
        ),
    )


def leftovers(bucket: Bucket, home: str = HOME) -> Iterator[Leftover]:
    return find_leftovers(bucket.context(home), [COMMITTERS[name] for name in STAGING])


def finish_all(bucket: Bucket) -> list[RecoveryAction]:
    actions = []
    for found in leftovers(bucket):
        found.recover()
        found.recover()
        actions.append(found.action)
    return actions


def run_dying(bucket: Bucket, ctx: CommitContext, mode: SaveMode = SaveMode.APPEND) -> JobOutcome:
    job = bucket.start(ctx, mode)
    return bucket.commit(ctx, job, [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)])


@pytest.mark.parametrize("after", [False, True])
@_each
def test_killed_at_every_call(committer: str, after: bool) -> None:
    """Driver and tasks in one process that dies at any call to any of its stores: all of the job or nothing."""
    nth, seen = 0, set[RecoveryAction]()
    while True:
        nth += 1
        bucket = Bucket(committer)
        bucket.run_job(bucket.context(), "old")
        try:
            run_dying(bucket, dying_context(bucket, crash_at(nth, after=after)))
        except SimulatedCrash:
            seen.update(finish_all(bucket))
            old, both = bucket.expected("old"), sorted(bucket.expected("old") + bucket.expected("new"))
            assert sorted(bucket.visible().values()) in (old, both), f"call {nth}"
            assert bucket.debris() == [], f"call {nth}"
            continue
        break
    assert nth > 60 and seen == {RecoveryAction.BACK, RecoveryAction.FORWARD, RecoveryAction.CLEAN}


@pytest.mark.parametrize(
    ("committer", "mode"),
    [("staging-directory", SaveMode.OVERWRITE), ("staging-partitioned", SaveMode.OVERWRITE_PARTITIONS)],
)
def test_an_overwrite_killed_at_every_call(committer: str, mode: SaveMode) -> None:
    """C9 does not hold: if deletions have started and no file is visible yet, old data is lost, as the reason says."""
    nth, lost = 0, list[str]()
    while True:
        nth += 1
        bucket = Bucket(committer)
        bucket.run_job(bucket.context(), "old")
        try:
            run_dying(bucket, dying_context(bucket, crash_at(nth)), mode)
        except SimulatedCrash:
            reasons = [found.reason for found in leftovers(bucket)]
            finish_all(bucket)
            contents = sorted(bucket.visible().values())
            if contents not in (bucket.expected("old"), bucket.expected("new")):
                assert set(contents) < set(bucket.expected("old")), f"call {nth}"
                lost += reasons
            assert bucket.debris() == [], f"call {nth}"
            continue
        break
    assert nth > 60 and lost and all("the data that it replaces may already be deleted" in reason for reason in lost)


@_each
def test_a_job_commit_that_was_under_way_goes_on(committer: str) -> None:
    """Paper 001: Outstanding == Commits - Written, and Written is not empty."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    commits = [bucket.run_task(bucket.context(), job, task, bucket.contents("new", task)) for task in range(2)]
    dying = faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD, nth=3))
    with pytest.raises(SimulatedCrash):
        bucket.commit(dying, job, commits)
    (found,) = leftovers(bucket)
    assert (found.action, found.job, found.committer) == (RecoveryAction.FORWARD, job.job, committer)
    assert (found.files, found.uploads) == (2, 2)
    assert 0 < bucket.clock.at_s - found.active_at_s < 1
    found.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    report = read_success_file(bucket.context())
    assert report is not None and report["jobId"] == job.job and report["committer"] == committer


@_each
def test_an_attempt_that_dies_displacing_another_takes_the_output_away(committer: str) -> None:
    """C1 does not hold: the accepted attempt's pending set is deleted, and the job commits without it."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [run_attempt(bucket, ctx, job, task, {f"day=1/{task}": b"right"}) for task in range(2)]
    assert ctx.staging is not None
    dying = InterceptedStore(bucket.shared, Faulty(Fault(FaultMode.CRASH_BEFORE, StoreOperation.RENAME_DIR)))
    with pytest.raises(SimulatedCrash):
        run_attempt(bucket, with_shared(ctx, dying), job, 0, {"day=1/0": b"twin"})
    assert bucket.commit(ctx, job, commits).committed
    assert bucket.visible() == {"day=1/1": b"right"}


@_each
def test_jobs_are_found_from_above_and_only_below(committer: str) -> None:
    """C7: recovery of a parent directory finds the job, that of a neighbor does not; live jobs look like dead ones."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    run_attempt(bucket, bucket.context(), job, 0, {"day=1/a": b"0"})
    assert list(leftovers(bucket, "out put/dataset10/")) == list(leftovers(bucket, "out put/data/")) == []
    (found,) = leftovers(bucket, "out put/")
    assert (found.action, found.job, found.uploads) == (RecoveryAction.BACK, job.job, 1)
    found.recover()
    assert bucket.debris() == []


@_each
def test_a_job_that_has_not_committed_a_task_goes_back(committer: str) -> None:
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    open_attempt(bucket, bucket.context(), job, 0, {"day=1/a": b"0"})
    bucket.store.create_upload(f"{HOME}day=1/part-00001-{job.job}-c000.txt")  # of a task that died on another machine
    (found,) = leftovers(bucket)
    assert (found.action, found.uploads) == (RecoveryAction.BACK, 1) and "no task" in found.reason
    found.recover()
    assert bucket.debris() == []


@_each
def test_without_the_shared_directory_only_uploads_are_found(committer: str) -> None:
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))
    bare = replace(bucket.context(), staging=None)
    for name in STAGING:
        value = COMMITTERS[name]
        assert value.leaves_records
    (found,) = find_leftovers(bare)
    assert found.committer == UNKNOWN
    assert (found.job, found.uploads) == (job.job, 2)


@_each
def test_a_record_that_cannot_be_read_is_kept(committer: str) -> None:
    """Neither the job's own record nor a pending set: nothing is done, nothing is lost."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))
    pendingset = next(info.key for info in bucket.shared.list_page("").objects if info.key.endswith(".pendingset"))
    bucket.shared.put(pendingset, b"{broken")
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.KEEP and "cannot be parsed" in found.reason
    found.recover()
    assert bucket.shared.get(pendingset) == b"{broken" and len(list(iter_uploads(bucket.store, ""))) == 2
    bucket.shared.put(f"holdfast-staging/{job.job}/job.json", b"{broken")
    assert list(leftovers(bucket)) == [], "the uploads are known to be a staged job's"


@_each
def test_what_an_attempt_saves_after_the_end_of_its_job_goes(committer: str) -> None:
    """The job's record is already deleted. Without the pending set, an upload with a chosen name would not be found."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    race = Before(StoreOperation.UPLOAD_PART, lambda: bucket.value.abort_job(ctx, job))
    late = bucket.context(store=InterceptedStore(bucket.store, race))
    run_attempt(bucket, late, job, 0, {"day=1/chosen": b"late"})
    assert bucket.debris() != []
    assert list(leftovers(bucket, "out put/dataset2/")) == [], "the set names another destination"
    assert set(finish_all(bucket)) == {RecoveryAction.CLEAN}
    assert bucket.debris() == [] and bucket.visible() == {}


@_each
def test_uploads_of_a_job_that_is_over_are_counted(committer: str) -> None:
    """Over all sets that its attempts have saved."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    for task in range(2):
        run_attempt(bucket, ctx, job, task, {f"day={number}/{task}": b"0" for number in range(task + 1)})
    bucket.shared.delete(f"holdfast-staging/{job.job}/job.json")
    assert {(found.action, found.uploads) for found in leftovers(bucket)} == {(RecoveryAction.CLEAN, 3)}
    finish_all(bucket)
    assert bucket.debris() == []
