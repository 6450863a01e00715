"""Test ``magic``: the life of a job, records in Hadoop's format, repeated commits, aborts."""

from __future__ import annotations

import dataclasses
import json

import pytest

from holdfast.commit import CommitSettings, Place, SaveMode
from holdfast.commit.hadoop.magic.files import attempt_dir, magic_work_path, parse_attempt_in_path, pendingset_path
from holdfast.commit.hadoop.pending import MARKER_LENGTH
from holdfast.commit.ids import AttemptId, FileOwner, JobId
from holdfast.commit.success_file import read_success_file
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.stores.interceptors import StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket
from tests.unit.commit.hadoop.magic.magic_jobs import MAGIC, WithoutMetadata, hidden, run_tasks, uploads, write_attempt


# --- the life of a job ------------------------------------------------------------------------------------------------
def test_life_of_a_job() -> None:
    """Scenario 1: a task commit shows nothing; the job commit shows the exact bytes and leaves nothing else."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    assert bucket.visible() == {} and len(uploads(bucket)) == 4
    assert hidden(bucket) == [pendingset_path(job.job, task) for task in range(2)], "attempts' directories are gone"
    outcome = bucket.commit(ctx, job, commits)
    assert outcome.committed and outcome.finished and outcome.totals.files == 4
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_what_an_attempt_puts() -> None:
    """Scenarios 35 and 37, HADOOP-17414: an empty marker that contains the length, and the record next to it."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"a/b": b"123456789"})
    marker = f"{magic_work_path(attempt.owner)}/a/b"
    assert hidden(bucket) == [marker, f"{marker}.pending"]
    info = bucket.store.head(HOME + marker)
    assert info.size_bytes == 0 and info.metadata == {MARKER_LENGTH: "9"}
    record = json.loads(bucket.store.get(f"{HOME}{marker}.pending"))
    assert (record["destinationKey"], record["length"], record["bucket"]) == (f"{HOME}a/b", 9, "bucket")
    assert record["uri"] == f"memory://bucket/out%20put/dataset1/{marker}"
    with attempt:
        commits = [attempt.commit()]
    bucket.commit(ctx, job, commits)
    assert MARKER_LENGTH not in bucket.store.head(f"{HOME}a/b").metadata
    assert bucket.visible() == {"a/b": b"123456789"}


def test_a_store_without_metadata_gets_a_plain_marker() -> None:
    bucket = Bucket("magic")
    bucket.store = WithoutMetadata(clock=bucket.clock, ids=bucket.ids)
    ctx = bucket.context()
    attempt = open_attempt(bucket, ctx, bucket.start(ctx), 0, {"a": b"1234"})
    assert bucket.store.head(f"{HOME}{magic_work_path(attempt.owner)}/a").metadata == {}


def test_what_a_task_and_a_job_report() -> None:
    """Scenario 72: statistics of tasks are stored in their sets; the report names files, bytes and the job."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, [b"12345", b"123456"]) for task in range(2)]
    found = json.loads(bucket.store.get(HOME + pendingset_path(job.job, 0)))
    attempt = f"attempt_{job.job}_m_000000_{commits[0].attempt}"
    assert found["extraData"] == {"task.attempt.id": attempt} and found["jobId"] == job.job
    assert [one["taskId"] for one in found["commits"]] == [attempt, attempt]
    assert found["iostatistics"]["counters"]["committer_commits_created"] == 2
    assert found["iostatistics"]["counters"]["committer_magic_marker_put"] == 2
    outcome = bucket.commit(ctx, job, commits)
    report = read_success_file(ctx)
    assert report is not None and report["committer"] == "magic" and report["jobId"] == job.job
    assert sorted(report["filenames"]) == sorted(f"/{HOME}{path}" for path in bucket.visible())
    assert report["metrics"]["rows"] == outcome.totals.rows == 4 and report["metrics"]["bytes"] == 22
    counters = report["iostatistics"]["counters"]
    assert counters["committer_commits_created"] == counters["committer_commits_completed"] == 4
    assert counters["committer_bytes_committed"] == 22 and counters["committer_tasks_completed"] == 2
    assert counters["committer_materialize_file"] == 4


def test_of_hundreds_of_files_a_hundred_are_named() -> None:
    """Scenario 72."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"x"] * 150)])
    report = read_success_file(ctx)
    assert report is not None and len(report["filenames"]) == 100 and report["metrics"]["files"] == 150


def test_directories_and_an_empty_file() -> None:
    """Scenarios 2, 4 and 5: the tree is kept, even with a second ``__base``; names that look hidden are refused."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    files = {"sub/sub/a": b"1", "sub/b": b"", "part-00000/data": b"2", "part-00000/index": b"3"}
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, files)])
    assert bucket.visible() == files
    job = bucket.start(ctx)
    with MAGIC.setup_task(ctx, job, 0) as attempt, pytest.raises(InvalidRequestError):
        attempt.open("__base/a")


def test_an_old_success_report_goes_first() -> None:
    """Scenario 73."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    bucket.start(ctx)
    assert read_success_file(ctx) is None


@pytest.mark.parametrize(("mode", "left"), [(SaveMode.APPEND, ["old", "new"]), (SaveMode.OVERWRITE, ["new"])])
def test_modes(mode: SaveMode, left: list[str]) -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    job = bucket.start(ctx, mode)
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)])
    assert sorted(bucket.visible().values()) == sorted(one for name in left for one in bucket.expected(name))
    with pytest.raises(InvalidRequestError, match="supports only the modes"):
        bucket.start(ctx, SaveMode.OVERWRITE_PARTITIONS)


def test_a_store_whose_listings_lag_is_refused() -> None:
    """Paper 000, VIII.C: everything depends on listings."""
    bucket = Bucket("magic")
    lagging = bucket.context(store=MemoryStore(consistent_listing=False))
    with pytest.raises(UnsupportedError, match="listings that show every object at once"):
        bucket.start(lagging)
    with pytest.raises(UnsupportedError, match="multipart uploads"):
        bucket.start(bucket.context(store=MemoryStore(limits=None, rename=True)))


def test_places() -> None:
    """Scenario 34 for Holdfast's own layout: the attempt in whose directory a path is."""
    owner = FileOwner(JobId("20270115080000000-00000000000a"), 3, AttemptId("00000000000b"))
    work = magic_work_path(owner)
    home = f"__magic_job-{owner.job}/job-{owner.job}/00"
    assert work == f"{home}/tasks/attempt_{owner.job}_m_000003_{owner.attempt}/__base"
    assert pendingset_path(owner.job, 3) == f"{home}/task_{owner.job}_m_000003.pendingset"
    assert parse_attempt_in_path(f"{work}/a/b") == parse_attempt_in_path(work) == owner
    assert (
        parse_attempt_in_path(f"x/{work}") is None
        and parse_attempt_in_path(f"__magic/tasks/attempt_{owner.job}_m_000003_x/a") is None
    )
    assert parse_attempt_in_path(work.replace(f"__magic_job-{owner.job}", "__magic_job-other")) is None
    assert parse_attempt_in_path(work.replace(f"/job-{owner.job}/00", "")) is None


# --- repeated commits -------------------------------------------------------------------------------------------------
def test_a_second_commit_of_a_task() -> None:
    """Scenarios 6 and 10: after the job has ended, committed or aborted, a task commit fails and writes nothing."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = write_attempt(bucket, ctx, job, 0, "new")
    bucket.commit(ctx, job, [attempt.commit()])
    with pytest.raises(NotFoundError, match="committed or aborted"):
        attempt.commit()
    job = bucket.start(ctx)
    late = write_attempt(bucket, ctx, job, 0, "late")
    MAGIC.abort_job(ctx, job)
    with pytest.raises(NotFoundError, match="committed or aborted"), late:
        late.commit()
    assert bucket.debris() == []


def test_two_attempts_at_a_task() -> None:
    """Scenario 7, HADOOP-17258: both commits succeed; the last one's set replaces the other's."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    first, second = (
        open_attempt(bucket, ctx, job, 0, {f"{name}.txt": name.encode(), "same": name.encode()})
        for name in ("first", "second")
    )
    with second:
        winner = second.commit()
    with first:
        first.commit()
    assert len(hidden(bucket, ".pendingset")) == 1
    bucket.commit(ctx, job, [winner])
    assert bucket.visible() == {"first.txt": b"first", "same": b"first"}, "C3: not the one that the driver accepted"


def test_a_job_commit_that_fails_is_tried_again() -> None:
    """Scenario 8: it fails before anything is done, then succeeds, and then cannot be repeated."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.LIST)), job, commits)
    assert bucket.visible() == {}
    assert bucket.commit(ctx, job, commits).committed
    with pytest.raises(NotFoundError, match="pending sets of committed tasks do not exist"):
        bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new")


def test_a_task_that_has_not_committed() -> None:
    """Scenario 9: its files do not appear, and its uploads are aborted under any name."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    write_attempt(bucket, ctx, job, 0, "new")
    assert bucket.commit(ctx, job, []).committed
    assert bucket.visible() == {} and bucket.debris() == []


def test_spark_itself_lost_a_task() -> None:
    """The driver must have received exactly one report per task, regardless of the listing."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(InvalidRequestError, match="exactly once"):
        MAGIC.commit_job(ctx, job, commits, 3)
    assert bucket.visible() == {}


# --- aborts -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("work", ["none", "written", "committed"])
def test_abort(work: str) -> None:
    """Scenarios 16 to 18 and 20 to 22: of a task and a job, twice, by another process, with nothing to abort."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    job = bucket.start(ctx)
    attempt = MAGIC.setup_task(ctx, job, 7)
    if work != "none":
        attempt = write_attempt(bucket, ctx, job, 7, "new")
    if work == "committed":
        attempt.commit()
    else:
        MAGIC.abort_task(bucket.context(), job, attempt.owner)
        assert uploads(bucket) == [] and hidden(bucket) == []
        MAGIC.abort_task(bucket.context(), job, attempt.owner)
    reports = Place(store=MemoryStore(), prefix="", url="memory://reports")
    for _ in range(2):
        outcome = MAGIC.abort_job(dataclasses.replace(bucket.context(), reports=reports), job)
        assert not outcome.committed and outcome.finished
    report = json.loads(reports.store.get(f"summary-{job.job}.json"))
    assert (report["success"], report["stage"]) == (False, "job_stage_abort")
    assert bucket.debris() == [] and sorted(bucket.visible().values()) == bucket.expected("old")


def test_abort_of_a_job_alone() -> None:
    """Scenario 19: directories of unaborted attempts are deleted, and uploads aborted that only their records name."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    write_attempt(bucket, ctx, job, 0, "new")
    run_tasks(bucket, ctx, job, "new")
    assert len(uploads(bucket)) == 6
    MAGIC.abort_job(bucket.context(), job)
    assert bucket.debris() == [] and bucket.visible() == {}


def test_an_abort_that_fails_says_so_and_can_be_done_again() -> None:
    """Paper 000, XI: an abort does not raise."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_tasks(bucket, ctx, job, "new")
    outcome = MAGIC.abort_job(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD)), job)
    assert not outcome.finished and "holdfast recover" in outcome.pending_reason
    assert MAGIC.abort_job(ctx, job).finished and bucket.debris() == []


def test_abort_of_a_job_that_is_committed() -> None:
    """An abort after the end changes nothing; the job's files stay visible."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, run_tasks(bucket, ctx, job, "new"))
    assert MAGIC.abort_job(ctx, job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new")


def test_records_that_cannot_be_read_do_not_stop_an_abort() -> None:
    """Paper 001, "Malicious Serialized Data": best effort, then everything is deleted."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    attempt = write_attempt(bucket, ctx, job, 3, "new")
    for path in (pendingset_path(job.job, 0), *hidden(bucket, ".pending")):
        bucket.store.put(HOME + path, b"{")
    with pytest.raises(CorruptDataError):
        bucket.commit(ctx, job, commits)
    assert bucket.visible() == {}
    MAGIC.abort_task(ctx, job, attempt.owner)
    assert not any(path.startswith(attempt_dir(attempt.owner)) for path in hidden(bucket))
    MAGIC.abort_job(ctx, job)
    # An upload that only a damaged record named has no owner: `holdfast uploads` shows it with its age.
    assert uploads(bucket) == [f"{HOME}blobs/0.tar", f"{HOME}blobs/3.tar"]
    assert hidden(bucket) == []


def test_two_jobs_on_one_destination() -> None:
    """Scenario 27: unlike in Hadoop (paper 000 XIV.C.1), the job that ends first spares the other one's uploads."""
    bucket = Bucket("magic")
    ctx = bucket.context(settings=CommitSettings(part_size_bytes=4))
    one, two = bucket.start(ctx), bucket.start(ctx)
    commits_two = run_tasks(bucket, ctx, two, "two")
    bucket.commit(ctx, one, run_tasks(bucket, ctx, one, "one"))
    bucket.commit(ctx, two, commits_two)
    assert len(bucket.visible()) == 6 and bucket.debris() == [], "the chosen names are shared, the others are not"
