"""Test ``file-v2``: a successful job, and what readers and retries may see of a failed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, CommitContext, CommitSettings, SaveMode
from holdfast.commit.success_file import read_success_file
from holdfast.errors import NotFoundError, UnavailableError, UnsupportedError
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.interceptors import StoreOperation
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock
from tests.interceptors import Fault, FaultMode, SimulatedCrash
from tests.unit.commit.attempts import HOME, bucket_on_disk, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

V2 = COMMITTERS["file-v2"]


def test_life_of_a_job() -> None:
    """C4 does not hold: a task's files are visible as soon as it has committed, long before ``_SUCCESS``."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)
    assert read_success_file(ctx) is None
    commits.append(bucket.run_task(ctx, job, 1, bucket.contents("new", 1)))
    outcome = bucket.commit(ctx, job, commits)
    assert outcome.committed and outcome.totals.files == 4
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    report = read_success_file(ctx)
    assert report is not None and report["jobId"] == job.job and report["filenames"] == []


def test_life_of_a_job_on_a_real_file_system(tmp_path: Path) -> None:
    """Scenario 33 on a disk, and nothing stays but the files and ``_SUCCESS``."""
    store = LocalStore(str(tmp_path))
    ctx = CommitContext(
        store=store,
        prefix="out put/",
        url=f"file://{tmp_path}/out put/",
        environment=Environment(clock=SimulatedClock(), ids=CountingIds(), runner=SerialRunner()),
    )
    job = V2.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with V2.setup_task(ctx, job, 0) as attempt:
        for path in ("day=1/file3 with space", "top"):
            sink = attempt.open(path)
            sink.write(path.encode())
            sink.close()
        commit = attempt.commit()
    V2.commit_job(ctx, job, [commit], 1)
    files = [str(path.relative_to(tmp_path / "out put")) for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == ["_SUCCESS", "day=1/file3 with space", "top"]
    assert not (tmp_path / "out put" / "_temporary").exists()


@pytest.mark.parametrize("disk", [False, True])
def test_trees_are_merged_and_what_stands_in_the_way_goes(disk: bool, tmp_path: Path) -> None:
    """Scenario 4 and paper 000, mergePathsV2: directories are merged, a file replaces anything at its path."""
    bucket = bucket_on_disk("file-v2", tmp_path) if disk else Bucket("file-v2")
    ctx = bucket.context()
    for path in ("file", "dir/below/x", "dir/y", "was-a-file"):
        bucket.store.put(HOME + path, b"old")
    job = bucket.start(ctx)
    new = {"file": b"new", "dir/below": b"new", "was-a-file/z": b"new", "sub/sub/w": b"new"}
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, new)])
    assert bucket.visible() == {**new, "dir/y": b"old"}


def test_a_task_that_died_in_its_commit_mixes_with_the_next_attempt() -> None:
    """C2 does not hold: files of both attempts stay, because they have different names."""
    bucket = Bucket("file-v2")
    job = bucket.start(bucket.context())
    dying = faulty_context(bucket, Fault(FaultMode.CRASH_AFTER, StoreOperation.RENAME))
    first = open_attempt(bucket, dying, job, 0, {"a-first": b"first", "b-first": b"first"})
    with pytest.raises(SimulatedCrash):
        first.commit()
    ctx = bucket.context()
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"second": b"second"})])
    assert bucket.visible() == {"a-first": b"first", "second": b"second"}


def test_a_late_attempt_changes_a_committed_job() -> None:
    """C6 does not hold: it writes in ``_temporary`` again when the job is over, and its commit still moves files."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"right"})])
    run_attempt(bucket, ctx, job, 0, {"a": b"zombie"})
    assert bucket.visible() == {"a": b"zombie"}


def test_an_attempt_whose_files_the_job_cleaned_up_fails() -> None:
    """Scenario 6."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    late = open_attempt(bucket, ctx, job, 0, {"late": b"late"})
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"0"})])
    with pytest.raises(NotFoundError):
        late.commit()
    assert bucket.visible() == {"a": b"0"}


def test_an_aborted_job_leaves_what_tasks_committed() -> None:
    """C5 does not hold. Scenarios 16 to 20: aborts, with or without work, once or twice, are not errors."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    V2.setup_task(ctx, job, 0).abort()
    run_attempt(bucket, ctx, job, 0, {"a": b"0"})
    open_attempt(bucket, ctx, job, 1, {"b": b"1"})
    for _ in range(2):
        assert not V2.abort_job(ctx, job).committed
    assert bucket.visible() == {"a": b"0"} and bucket.debris() == []


def test_a_job_commit_can_be_repeated() -> None:
    """Scenario 8: a failure before ``_SUCCESS``, then success, and again."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.PUT)), job, commits)
    for _ in range(2):
        assert bucket.commit(ctx, job, commits).committed
    assert V2.abort_job(ctx, job).committed, "an abort of a committed job takes nothing back"
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


def test_a_task_without_output_commits() -> None:
    """Scenario 3."""
    bucket = Bucket("file-v2")
    ctx = bucket.context()
    job = bucket.start(ctx)
    outcome = bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {})])
    assert outcome.committed and outcome.totals.files == 0 and bucket.visible() == {}


def test_it_runs_where_files_are_renamed() -> None:
    """A store without directory renames is sufficient; one that only copies is not."""
    bucket = Bucket("file-v2")
    bucket.store = MemoryStore(rename=True, rename_dir=False, clock=bucket.clock, ids=bucket.ids)
    bucket.run_job(bucket.context(settings=CommitSettings()), "new")
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    with pytest.raises(UnsupportedError, match="file-v2 needs atomic file rename"):
        V2.setup_job(bucket.context(store=MemoryStore(), settings=CommitSettings()), SaveMode.APPEND)
