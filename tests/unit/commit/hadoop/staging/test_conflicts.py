"""Test the conflict modes of `staging-*`: each decides at its own moment, and changes only what it may change."""

from __future__ import annotations

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobRecord, SaveMode
from holdfast.errors import DestinationExistsError, InvalidRequestError, UnavailableError
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Recorder
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

OLD = {"day=1/old": b"old", "day=1/hour=2/old": b"old", "day=10/old": b"old", "day=2/old": b"old"}


def bucket_with_data(committer: str) -> Bucket:
    bucket = Bucket(committer)
    for path, content in OLD.items():
        bucket.store.put(HOME + path, content)
    return bucket


def looks(bucket: Bucket) -> tuple[CommitContext, Recorder]:
    """A context that records what is asked of the destination through it."""
    recorded = Recorder()
    return bucket.context(store=InterceptedStore(bucket.store, recorded)), recorded


def run_in(bucket: Bucket, ctx: CommitContext, mode: SaveMode, paths: list[str]) -> JobRecord:
    job = bucket.start(ctx, mode)
    commit = run_attempt(bucket, ctx, job, 0, dict.fromkeys(paths, b"new"))
    bucket.commit(ctx, job, [commit])
    return job


def uploads(bucket: Bucket) -> list[str]:
    return [upload.key for upload in iter_uploads(bucket.store, "")]


@pytest.mark.parametrize(
    ("committer", "mode"),
    [("staging-directory", SaveMode.OVERWRITE_PARTITIONS), ("staging-partitioned", SaveMode.OVERWRITE)],
)
def test_a_mode_that_a_committer_does_not_know(committer: str, mode: SaveMode) -> None:
    """Scenario 39: refused before anything is written."""
    bucket = Bucket(committer)
    with pytest.raises(InvalidRequestError, match="supports only the modes"):
        bucket.start(bucket.context(), mode)
    assert bucket.debris() == []


# --- whole directories ------------------------------------------------------------------------------------------------
def test_directory_fail_at_the_start() -> None:
    """Scenario 40, first half."""
    bucket = bucket_with_data("staging-directory")
    with pytest.raises(DestinationExistsError):
        bucket.start(bucket.context(), SaveMode.FAIL)
    assert COMMITTERS["staging-directory"].setup_job(bucket.context(), SaveMode.IGNORE) is None
    assert bucket.visible() == OLD and bucket.debris() == []


def test_directory_fail_at_the_job_commit() -> None:
    """Scenario 40, second half: data was added while the job ran. Nothing is completed, everything is aborted."""
    bucket = Bucket("staging-directory")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.FAIL)
    commit = run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})
    bucket.store.put(HOME + "late", b"late")
    with pytest.raises(DestinationExistsError):
        bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"late": b"late"} and bucket.debris() == []


@pytest.mark.parametrize("committer", ["staging-directory", "staging-partitioned"])
def test_append_never_looks(committer: str) -> None:
    """Scenarios 41 and 44: neither a listing nor, before the end, a HEAD below the destination."""
    bucket = bucket_with_data(committer)
    bucket.store.put(HOME + "_SUCCESS", b'{"name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"}')
    ctx, recorded = looks(bucket)
    run_in(bucket, ctx, SaveMode.APPEND, ["day=1/new", "top"])
    listed = [call.key for call in recorded.calls if call.operation is StoreOperation.LIST]
    assert listed == ["_holdfast/log/", "out put/_holdfast/log/"], "only for a destination that this one would lie in"
    heads = [call.key for call in recorded.calls if call.operation is StoreOperation.HEAD]
    assert heads == [HOME.rstrip("/"), f"{HOME}day=1/new"], "that it is no file; at the end, that it has not gone"
    assert bucket.visible() == {**OLD, "day=1/new": b"new", "top": b"new"}


def test_directory_overwrite_deletes_at_the_job_commit() -> None:
    """Scenario 42: the old data is visible until then, and stays if the job is aborted."""
    bucket = bucket_with_data("staging-directory")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.OVERWRITE)
    run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})
    assert bucket.visible() == OLD
    bucket.value.abort_job(ctx, job)
    assert bucket.visible() == OLD
    run_in(bucket, ctx, SaveMode.OVERWRITE, ["day=3/new", "top"])
    assert bucket.visible() == {"day=3/new": b"new", "top": b"new"} and bucket.debris() == []


# --- partitions -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["day=1/new", "day=1/hour=2/new", "day=1/hour=2/new with space"])
def test_partitioned_fail_in_the_task_commit(path: str) -> None:
    """Scenario 43: before anything is uploaded; the job start makes no check at all."""
    bucket = bucket_with_data("staging-partitioned")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.FAIL)
    with pytest.raises(DestinationExistsError, match="partition"):
        run_attempt(bucket, ctx, job, 0, {"day=7/new": b"new", path: b"new"})
    assert uploads(bucket) == [] and bucket.visible() == OLD


def test_partitioned_fail_with_data_only_below() -> None:
    """Data in a sub-partition is data of the partition, as in Hadoop's check of the directory."""
    bucket = Bucket("staging-partitioned")
    bucket.store.put(HOME + "day=1/hour=2/old", b"old")
    bucket.store.put(HOME + "day=1/_temporary/x", b"hidden")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.FAIL)
    with pytest.raises(DestinationExistsError):
        run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})
    bucket.store.delete(HOME + "day=1/hour=2/old")
    run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})


def test_partitioned_fail_in_other_partitions() -> None:
    """Neither ``day=1`` nor ``day=10`` conflicts with ``day=100``; nor do partitions of the job's other tasks."""
    bucket = bucket_with_data("staging-partitioned")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.FAIL)
    commits = [run_attempt(bucket, ctx, job, task, {f"day=100/{task}": b"new"}) for task in range(2)]
    bucket.commit(ctx, job, commits)
    assert bucket.visible() == {**OLD, "day=100/0": b"new", "day=100/1": b"new"}


def test_partitioned_overwrite_replaces_only_what_it_writes() -> None:
    """Scenario 45: the union of all tasks' partitions and everything below them; no sibling, no parent."""
    bucket = bucket_with_data("staging-partitioned")
    bucket.store.put(HOME + "top", b"old")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.OVERWRITE_PARTITIONS)
    commits = [
        run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"}),
        run_attempt(bucket, ctx, job, 1, {"day=2/hour=1/new": b"new"}),
    ]
    assert bucket.visible() == {**OLD, "top": b"old"}, "nothing is deleted before the job commit"
    bucket.commit(ctx, job, commits)
    assert bucket.visible() == {
        "day=1/new": b"new",
        "day=10/old": b"old",
        "day=2/hour=1/new": b"new",
        "day=2/old": b"old",
        "top": b"old",
    }
    assert bucket.debris() == []


@pytest.mark.parametrize("mode", [SaveMode.FAIL, SaveMode.OVERWRITE_PARTITIONS])
def test_files_at_the_top_lie_in_no_partition(mode: SaveMode) -> None:
    """Hadoop would not check them, and would delete the whole table for them."""
    bucket = bucket_with_data("staging-partitioned")
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    with pytest.raises(InvalidRequestError, match="is in no partition"):
        run_attempt(bucket, ctx, job, 0, {"day=9/new": b"new", "top": b"new"})
    assert uploads(bucket) == []


@pytest.mark.parametrize(
    ("committer", "mode"),
    [("staging-directory", SaveMode.OVERWRITE), ("staging-partitioned", SaveMode.OVERWRITE_PARTITIONS)],
)
def test_a_deletion_that_fails_aborts_the_job(committer: str, mode: SaveMode) -> None:
    """Scenario 46: the error is raised, nothing of the job is visible or pending."""
    bucket = bucket_with_data(committer)
    broken = Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER)
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    commit = run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, broken), job, [commit])
    assert bucket.visible() == OLD and bucket.debris() == []


def test_what_a_dead_task_wrote_replaces_nothing() -> None:
    """Only partitions of committed tasks count."""
    bucket = bucket_with_data("staging-partitioned")
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.OVERWRITE_PARTITIONS)
    commit = run_attempt(bucket, ctx, job, 0, {"day=1/new": b"new"})
    open_attempt(bucket, ctx, job, 1, {"day=2/new": b"new"})
    bucket.commit(ctx, job, [commit])
    assert set(bucket.visible()) == {"day=1/new", "day=10/old", "day=2/old"}
