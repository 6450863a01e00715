"""Test ``manifest`` in a task: scan, save, retry; attempts that die, are late or are repeated."""

from __future__ import annotations

import json

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobRecord, TaskCommit
from holdfast.commit.hadoop.manifest.format import (
    IntermediateManifest,
    attempt_dir,
    attempt_manifest_path,
    decode_intermediate_manifest,
    job_record_path,
    task_manifest_path,
)
from holdfast.commit.ids import FileOwner
from holdfast.errors import (
    ConflictError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.clocks import CountingIds
from tests.interceptors import FOR_EVER, Fault, FaultMode, Recorder
from tests.unit.commit.attempts import HOME, Before, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

MANIFEST = COMMITTERS["manifest"]


def manifest_of(bucket: Bucket, job: JobRecord, task: int = 0) -> IntermediateManifest:
    path = task_manifest_path(job, task)
    data = bucket.store.get(HOME + path)
    return decode_intermediate_manifest(path, data, url=bucket.context().url, job_id=job.job)


def started() -> tuple[Bucket, CommitContext, JobRecord]:
    bucket = Bucket("manifest")
    ctx = bucket.context()
    return bucket, ctx, bucket.start(ctx)


def owner_of(commit: TaskCommit) -> FileOwner:
    return FileOwner(commit.job, commit.task, commit.attempt)


# --- what a task commit does ------------------------------------------------------------------------------------------
def test_task_commit_shows_nothing_and_says_everything() -> None:
    """Scenario 1, scenario 2 and scenario 33.

    Sizes, etags and rows of all files, an empty one and odd names among them.
    """
    bucket, ctx, job = started()
    bucket.store.put(f"{HOME}day=1/old.txt", b"old")
    bucket.store.put(f"{HOME}a file", b"where a directory has to be")
    files = {"day=1/file3 with space": b"12345", "a file/b/c.txt": b"", "x=%20+/y=1/f": b"1", "top.bin": b"7"}
    with open_attempt(bucket, ctx, job, 0, files) as attempt:
        attempt.record_rows("top.bin", 3)
        commit = attempt.commit()
    assert set(bucket.visible()) == {"day=1/old.txt", "a file"}
    assert (commit.totals.files, commit.totals.size_bytes, commit.totals.rows) == (4, 7, 3)
    manifest = manifest_of(bucket, job)
    directory = attempt_dir(job, owner_of(commit))
    assert {file.dest: file.source for file in manifest.files} == {path: f"{directory}/{path}" for path in files}
    for file in manifest.files:
        found = bucket.store.head(HOME + file.source)
        assert (file.size_bytes, file.etag) == (len(files[file.dest]), found.etag)
    assert sum(file.rows for file in manifest.files) == 3
    assert {"task_stage_scan_directory", "task_stage_commit"} <= set(manifest.statistics.durations)


def test_request_cost_of_a_task_commit() -> None:
    """One listing of the attempt's directory, three calls to save."""
    bucket, _ctx, job = started()
    recorded = Recorder()
    ctx = bucket.context(store=InterceptedStore(bucket.store, recorded))
    attempt = open_attempt(bucket, ctx, job, 0, {f"day={day}/{n}": b"x" for day in range(2) for n in range(5)})
    recorded.calls.clear()
    attempt.commit()
    assert recorded.counts() == {
        StoreOperation.LIST: 1,
        StoreOperation.PUT: 1,
        StoreOperation.DELETE: 1,
        StoreOperation.RENAME: 1,
    }


def test_task_without_output_commits() -> None:
    """Scenario 3 and scenario 47: an attempt that wrote nothing reports nothing, unless its job is over."""
    bucket, ctx, job = started()
    commit = run_attempt(bucket, ctx, job, 0, {})
    assert manifest_of(bucket, job).files == ()
    assert bucket.commit(ctx, job, [commit]).totals.files == 0
    assert bucket.visible() == {} and bucket.debris() == []
    with pytest.raises(NotFoundError, match="over"):
        run_attempt(bucket, ctx, job, 0, {})
    assert bucket.debris() == []


def test_missing_directory_of_an_attempt() -> None:
    """Scenario 10 and scenario 47.

    A commit after the attempt's abort fails; the manifest of an earlier one is unchanged.
    """
    bucket, ctx, job = started()
    run_attempt(bucket, ctx, job, 0, {"a": b"first"})
    before = bucket.store.get(HOME + task_manifest_path(job, 0))
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"second"})
    MANIFEST.abort_task(bucket.context(), job, attempt.owner)
    with pytest.raises(NotFoundError):
        attempt.commit()
    assert bucket.store.get(HOME + task_manifest_path(job, 0)) == before


def test_second_task_commit_after_the_job_commit() -> None:
    """Scenario 6: the attempt's files do not exist, so its second commit fails and changes nothing."""
    bucket, ctx, job = started()
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"1"})
    bucket.commit(ctx, job, [attempt.commit()])
    with pytest.raises(NotFoundError):
        attempt.commit()
    assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


def test_last_attempt_to_commit_wins() -> None:
    """Scenario 7, HADOOP-17258: both commits succeed, only the later one's files appear."""
    bucket, ctx, job = started()
    run_attempt(bucket, ctx, job, 0, {"a": b"first", "only-first": b"1"})
    second = run_attempt(bucket, ctx, job, 0, {"a": b"second"})
    bucket.commit(ctx, job, [second])
    assert bucket.visible() == {"a": b"second"} and bucket.debris() == []


def test_late_attempt_replaces_the_one_that_counts() -> None:
    """C3 does not hold, as in the paper: what a partitioned attempt saves last is what the job commits."""
    bucket, ctx, job = started()
    late = open_attempt(bucket, ctx, job, 0, {"a": b"late"})
    counted = run_attempt(bucket, ctx, job, 0, {"a": b"counted"})
    late.commit()
    bucket.commit(ctx, job, [counted])
    assert bucket.visible() == {"a": b"late"}


def test_late_attempt_that_dies_takes_the_other_ones_manifest_along() -> None:
    """C1: the old manifest is deleted before the new one is renamed. The job commit fails, and shows nothing."""
    bucket, ctx, job = started()
    counted = run_attempt(bucket, ctx, job, 0, {"a": b"counted"})
    lost = Fault(FaultMode.FAIL, StoreOperation.RENAME, times=FOR_EVER)
    with pytest.raises(UnavailableError):
        run_attempt(bucket, faulty_context(bucket, lost), job, 0, {"a": b"late"})
    with pytest.raises(NotFoundError, match="manifests"):
        bucket.commit(ctx, job, [counted])
    assert bucket.visible() == {}


@pytest.mark.parametrize(("path", "error"), [("a", PreconditionError), ("b", ConflictError)])
def test_two_attempts_with_one_name(path: str, error: type[ConflictError]) -> None:
    """Scenario 32: attempts have random names; if two were equal, the second would not add its files to the first's."""
    bucket, ctx, job = started()
    open_attempt(bucket, ctx.with_environment(ids=CountingIds()), job, 0, {"a": b"1"})
    with pytest.raises(error):
        open_attempt(bucket, ctx.with_environment(ids=CountingIds()), job, 0, {path: b"2"}).commit()


def test_file_that_changed_before_the_commit() -> None:
    """C1: the directory does not contain what the attempt wrote."""
    bucket, ctx, job = started()
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"mine"})
    bucket.store.put(f"{HOME}{attempt_dir(job, attempt.owner)}/a", b"another's")
    with pytest.raises(ConflictError, match="another process"):
        attempt.commit()


# --- saving -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("operation", [StoreOperation.PUT, StoreOperation.DELETE, StoreOperation.RENAME])
def test_saving_fails(operation: StoreOperation) -> None:
    """Then the task has not committed, and its directory is deleted: Spark runs the task again."""
    bucket, _ctx, job = started()
    fault = Fault(FaultMode.FAIL, operation, "*-manifest.json*")
    with pytest.raises(UnavailableError, match="injected"):
        run_attempt(bucket, faulty_context(bucket, fault), job, 0, {"a": b"1"})
    assert [info.key for info in iter_objects(bucket.store, HOME)] == [HOME + job_record_path(job)]


@pytest.mark.parametrize("mode", [FaultMode.FAIL, FaultMode.LOST_REPLY])
@pytest.mark.parametrize("retried", [False, True])
def test_rename_whose_reply_is_lost(mode: FaultMode, retried: bool) -> None:
    """Scenario 49 and scenario 50: it had no effect, or one whose reply is lost; also over an older manifest."""
    bucket, ctx, job = started()
    if retried:
        run_attempt(bucket, ctx, job, 0, {"a": b"older", "b": b"older"})
    error = OutcomeUnknownError("injected fault: timed out, read first")
    fault = Fault(mode, StoreOperation.RENAME, "*-manifest.json*", error=error)
    commit = run_attempt(bucket, faulty_context(bucket, fault), job, 0, {"a": b"1"})
    assert [file.dest for file in manifest_of(bucket, job).files] == ["a"]
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


def test_store_that_repeats_a_rename_by_itself() -> None:
    """Scenario 50: the rename had its effect, its retry finds no source: the existing manifest is the attempt's own."""
    bucket, _ctx, job = started()
    error = NotFoundError("no such object: check the key")

    def rename_first() -> None:
        draft = next(info.key for info in iter_objects(bucket.store, HOME) if info.key.endswith(".json.tmp"))
        bucket.store.rename(draft, HOME + task_manifest_path(job, 0))

    once = Before(StoreOperation.RENAME, rename_first)
    ctx = bucket.context(store=InterceptedStore(bucket.store, once))
    run_attempt(bucket, ctx, job, 0, {"a": b"1"})
    assert once.fired and [file.dest for file in manifest_of(bucket, job).files] == ["a"]
    fault = Fault(FaultMode.FAIL, StoreOperation.RENAME, error=error)
    with pytest.raises(NotFoundError):
        run_attempt(bucket, faulty_context(bucket, fault), job, 1, {"b": b"1"})


# --- abort ------------------------------------------------------------------------------------------------------------
def test_abort_of_a_task() -> None:
    """Scenario 16, scenario 18 and scenario 22: with work, without, twice, and of an attempt that never existed."""
    bucket, ctx, job = started()
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"1", "d/b": b"2"})
    bucket.store.put(HOME + attempt_manifest_path(job, attempt.owner), b"{}")
    for _ in range(2):
        MANIFEST.abort_task(bucket.context(), job, attempt.owner)
    attempt.abort()
    with MANIFEST.setup_task(ctx, job, 1):
        pass
    assert [info.key for info in iter_objects(bucket.store, HOME)] == [HOME + job_record_path(job)]
    assert not MANIFEST.abort_job(ctx, job).committed
    assert bucket.debris() == [] and bucket.visible() == {}


def test_manifest_is_json_of_one_line() -> None:
    """A user can read it; the paths are absolute."""
    bucket, ctx, job = started()
    run_attempt(bucket, ctx, job, 7, {"a": b"1"})
    value = json.loads(bucket.store.get(HOME + task_manifest_path(job, 7)))
    assert value["taskID"] == f"task_{job.job}_m_000007" and value["files"][0]["d"].endswith("/out%20put/dataset1/a")
