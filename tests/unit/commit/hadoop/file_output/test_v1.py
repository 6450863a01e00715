"""Test ``file-v1``: what holds, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.commit import COMMITTERS, CommitContext, CommitSettings, SaveMode
from holdfast.commit.hadoop.file_output.directories import committed_task_dir
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.errors import (
    DestinationExistsError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock
from tests.interceptors import FOR_EVER, Fault, FaultMode, SimulatedCrash
from tests.unit.commit.attempts import HOME, Before, bucket_on_disk, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

T = TypeVar("T")

V1 = COMMITTERS["file-v1"]


# --- life of a job ----------------------------------------------------------------------------------------------------
def test_life_of_a_job() -> None:
    """Scenario 1: task commits show nothing, the job commit shows the exact bytes and leaves nothing hidden."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
    assert bucket.visible() == {}
    outcome = bucket.commit(ctx, job, commits)
    assert outcome.committed and outcome.finished
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    report = read_success_file(ctx)
    assert report is not None and report["jobId"] == job.job and report["committer"] == "file-v1"
    assert sorted(report["filenames"]) == sorted(f"/{HOME}{path}" for path in bucket.visible())


def test_life_of_a_job_on_a_real_file_system(tmp_path: Path) -> None:
    """Scenarios 1 and 33 on a disk: nothing stays but the files and ``_SUCCESS``."""
    ctx = CommitContext(
        store=LocalStore(str(tmp_path)),
        prefix="out put/",
        url=f"file://{tmp_path}/out put/",
        environment=Environment(clock=SimulatedClock(), ids=CountingIds(), runner=SerialRunner()),
    )
    job = V1.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    commits = []
    for task in range(2):
        with V1.setup_task(ctx, job, task) as attempt:
            for path in ("day=1/" + attempt.file_name(".txt"), attempt.file_name(".txt")):
                sink = attempt.open(path)
                sink.write(path.encode())
                sink.close()
            commits.append(attempt.commit())
    V1.commit_job(ctx, job, commits, 2)
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    part = [f"part-0000{task}-{job.job}-c000.txt" for task in range(2)]
    other = [f"part-0000{task}-{job.job}-c001.txt" for task in range(2)]
    assert sorted(files) == sorted(
        ["out put/_SUCCESS", *(f"out put/day=1/{name}" for name in part), *(f"out put/{name}" for name in other)]
    )
    assert not (tmp_path / "out put" / "_temporary").exists()


def test_trees_are_merged_and_never_nested() -> None:
    """Scenario 4: two tasks in the same directories; the directory of one does not end up in that of the other."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    bucket.store.put(HOME + "a/b/old", b"old")
    job = bucket.start(ctx)
    commits = [
        run_attempt(bucket, ctx, job, 0, {"a/b/0": b"0", "c/0": b"0", "top0": b"0"}),
        run_attempt(bucket, ctx, job, 1, {"a/b/1": b"1", "c/1": b"1", "c/d/e/1": b"1"}),
    ]
    bucket.commit(ctx, job, commits)
    assert set(bucket.visible()) == {"a/b/old", "a/b/0", "a/b/1", "c/0", "c/1", "c/d/e/1", "top0"}


@pytest.mark.parametrize("disk", [False, True])
def test_what_stands_in_the_way_goes(disk: bool, tmp_path: Path) -> None:
    """Paper 000, mergePathsV1: a file replaces a file or a directory, a directory replaces a file."""
    bucket = bucket_on_disk("file-v1", tmp_path) if disk else Bucket("file-v1")
    ctx = bucket.context()
    for path in ("file", "dir/below/x", "dir/y", "was-a-file"):
        bucket.store.put(HOME + path, b"old")
    job = bucket.start(ctx)
    new = {"file": b"new", "dir/below": b"new", "was-a-file/z": b"new"}
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, new)])
    assert bucket.visible() == {**new, "dir/y": b"old"}


def test_the_last_attempt_to_commit_wins() -> None:
    """Scenario 7, HADOOP-17258: both task commits succeed, the first one's files are absent."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    first = open_attempt(bucket, ctx, job, 0, {"a": b"first", "only-first": b"first"})
    second = open_attempt(bucket, ctx, job, 0, {"a": b"second"})
    first.commit()
    commit = second.commit()
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"a": b"second"}


def test_an_uncommitted_attempt_is_no_output() -> None:
    """Scenario 9: the job commit shows nothing of it and deletes its files."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commit = run_attempt(bucket, ctx, job, 0, {"a": b"0"})
    open_attempt(bucket, ctx, job, 0, {"b": b"never committed"})
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"a": b"0"} and bucket.debris() == []


def test_a_task_commit_after_the_job_fails() -> None:
    """Scenario 6: the attempt's files do not exist, and it raises an error."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commit = run_attempt(bucket, ctx, job, 0, {"a": b"0"})
    late = open_attempt(bucket, ctx, job, 0, {"a": b"late"})
    bucket.commit(ctx, job, [commit])
    with pytest.raises(NotFoundError):
        late.commit()
    assert bucket.visible() == {"a": b"0"}


def test_a_job_commit_can_be_tried_again_before_it_has_moved_anything() -> None:
    """Scenario 8: an injected failure, then success; the third one finds no output of the job."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.LIST)), job, commits)
    assert bucket.visible() == {}
    assert bucket.commit(ctx, job, commits).committed
    with pytest.raises(NotFoundError):
        bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


# --- aborts -----------------------------------------------------------------------------------------------------------
def test_aborts_without_work() -> None:
    """Scenarios 16, 17, 20 and 22: nothing to abort is not an error, and neither is aborting twice."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = V1.setup_task(ctx, job, 0)
    attempt.abort()
    V1.abort_task(ctx, job, attempt.owner)
    for _ in range(2):
        assert not V1.abort_job(ctx, job).committed


def test_aborts_take_everything_away() -> None:
    """Scenarios 18, 19 and 21: an attempt aborted by another process, then the job with an attempt still open."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"a": b"0"})
    aborted = open_attempt(bucket, ctx, job, 1, {"b": b"1"})
    V1.abort_task(bucket.context(), job, aborted.owner)
    assert not any(aborted.owner.attempt in info.key for info in bucket.store.list_page("").objects)
    open_attempt(bucket, ctx, job, 2, {"c": b"2"})
    V1.abort_job(bucket.context(), job)
    assert bucket.visible() == {} and bucket.debris() == []


def test_what_a_killed_attempt_was_writing_goes_with_the_job(tmp_path: Path) -> None:
    """On a file system an unfinished file is hidden from listings, and still deleted with its job (C9)."""
    bucket = bucket_on_disk("file-v1", tmp_path)
    ctx = bucket.context()
    job = bucket.start(ctx)
    unfinished = V1.setup_task(ctx, job, 0)
    unfinished.open("day=1/x").write(b"half of it")
    assert list(tmp_path.rglob(".holdfast-*"))
    (found,) = COMMITTERS["file-v1"].find_leftovers(ctx)
    assert (found.action, found.uploads, found.files) == (RecoveryAction.BACK, 1, 0)
    found.recover()
    assert list(tmp_path.rglob("*")) == [], "nothing is left, nor any empty directory"
    unfinished.abort()


def test_an_abort_after_the_commit_says_that_it_is_committed() -> None:
    """Spark aborts in a new process after a commit whose reply was lost: nothing is deleted."""
    bucket = Bucket("file-v1")
    job = bucket.start(bucket.context())
    commits = [bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))]
    lossy = Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, "*_SUCCESS")
    with pytest.raises(OutcomeUnknownError):
        bucket.commit(faulty_context(bucket, lossy), job, commits)
    assert V1.abort_job(bucket.context(), job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1) and bucket.debris() == []


def test_trouble_in_clean_up_is_no_failed_commit() -> None:
    """Scenario 82: the output is visible, so the job is committed; the next clean-up does the rest."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    open_attempt(bucket, ctx, job, 0, {"left": b"over"})
    broken = Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER)
    outcome = bucket.commit(faulty_context(bucket, broken), job, commits)
    assert outcome.committed and not outcome.finished and "cleanup is incomplete" in outcome.pending_reason
    bucket.run_job(ctx, "next")
    assert bucket.debris() == []


# --- modes and refusals -----------------------------------------------------------------------------------------------
def test_modes() -> None:
    """Scenario 73 too: the old ``_SUCCESS`` is deleted when a job starts."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    with pytest.raises(DestinationExistsError):
        V1.setup_job(ctx, SaveMode.FAIL)
    assert V1.setup_job(ctx, SaveMode.IGNORE) is None
    with pytest.raises(InvalidRequestError):
        V1.setup_job(ctx, SaveMode.OVERWRITE_PARTITIONS)
    assert read_success_file(ctx) is not None
    bucket.start(ctx)
    assert read_success_file(ctx) is None
    job = bucket.start(ctx, SaveMode.OVERWRITE)
    assert bucket.visible() == {}, "C9 does not hold: the old files go before any task runs"
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))])
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


@pytest.mark.parametrize(
    "store",
    [
        MemoryStore(),
        MemoryStore(rename=True, rename_dir=False),
        MemoryStore(rename=True, consistent_listing=False),
    ],
)
def test_stores_that_do_not_fit_are_refused(store: MemoryStore) -> None:
    ctx = Bucket("file-v1").context(store=store, settings=CommitSettings())
    with pytest.raises(UnsupportedError, match="file-v1 needs"):
        V1.setup_job(ctx, SaveMode.APPEND)


# --- what does not hold -----------------------------------------------------------------------------------------------
def test_attempts_do_not_mix_where_directories_are_renamed() -> None:
    """C2 on a file system: the same race leaves the files of one, and the other raises an error."""
    bucket = Bucket("file-v1")
    job = bucket.start(bucket.context())
    other = open_attempt(bucket, bucket.context(), job, 0, {"a": b"other", "only-other": b"other"})
    commits = []
    race = Before(StoreOperation.RENAME_DIR, lambda: commits.append(other.commit()))
    ctx = bucket.context(store=InterceptedStore(bucket.store, race))
    with pytest.raises(PreconditionError):
        run_attempt(bucket, ctx, job, 0, {"a": b"one", "b": b"one"})
    bucket.commit(bucket.context(), job, commits)
    assert bucket.visible() == {"a": b"other", "only-other": b"other"}


def test_an_attempt_that_dies_displacing_another_takes_the_output_away() -> None:
    """C1 does not hold: the accepted attempt's directory is deleted, in whole or part, the job commits without it."""
    for operation, left in (
        (StoreOperation.RENAME_DIR, {"b": b"1"}),
        (StoreOperation.DELETE_MANY, {"a": b"0", "b": b"1"}),
    ):
        bucket = Bucket("file-v1")
        ctx = bucket.context()
        job = bucket.start(ctx)
        commits = [run_attempt(bucket, ctx, job, task, {name: b"%d" % task}) for task, name in enumerate("ab")]
        dying = faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, operation))
        with pytest.raises(SimulatedCrash):
            run_attempt(bucket, dying, job, 0, {"a": b"twin"})
        assert bucket.commit(ctx, job, commits).committed
        assert bucket.visible() == left


def test_a_committed_directory_that_goes_while_it_is_merged_fails_the_job() -> None:
    """The job commit has listed it, then a late attempt deletes it: it is not merged as if it were empty."""
    bucket = Bucket("file-v1")
    job = bucket.start(bucket.context())
    commit = run_attempt(bucket, bucket.context(), job, 0, {"day=0/a": b"one"})
    committed = f"{HOME}{committed_task_dir(job, 0)}/"
    listed: list[str] = []

    def displace(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.LIST and call.key == committed:
            listed.append(call.key)
            if len(listed) == 2:  # once for the names in the report, then to merge
                bucket.store.delete_many([info.key for info in iter_objects(bucket.store, committed)])
        return proceed()

    with pytest.raises(NotFoundError, match="a late attempt is replacing it"):
        bucket.commit(bucket.context(store=InterceptedStore(bucket.store, displace)), job, [commit])
    assert bucket.visible() == {}


def test_a_job_takes_and_deletes_the_work_of_another() -> None:
    """C7 does not hold: one ``_temporary`` for all jobs of a destination."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    one, two = bucket.start(ctx), bucket.start(ctx)
    commit = run_attempt(bucket, ctx, one, 0, {"one": b"1"})
    run_attempt(bucket, ctx, two, 0, {"two": b"2"})
    late = open_attempt(bucket, ctx, two, 1, {"two-late": b"2"})
    bucket.commit(ctx, one, [commit])
    assert set(bucket.visible()) == {"one", "two"}
    with pytest.raises(NotFoundError):
        late.commit()


def test_an_attempt_after_the_job_gets_into_the_next_one() -> None:
    """C6 does not hold: it starts to write when the job is over, and the next job finds its directory."""
    bucket = Bucket("file-v1")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"0"})])
    run_attempt(bucket, ctx, job, 0, {"zombie": b"late"})
    assert set(bucket.visible()) == {"a"}
    bucket.run_job(ctx, "next")
    assert "zombie" in bucket.visible()
