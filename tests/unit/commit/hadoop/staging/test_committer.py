"""Test the life of a `staging-*` job: where its bytes are at each moment, repeated steps, aborts, reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.commit import COMMITTERS, CommitSettings, Place, SaveMode, open_context
from holdfast.commit.context import Measure
from holdfast.commit.hadoop.staging.layout import load_pendingset
from holdfast.commit.success_file import parse_success_file, read_success_file
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import SerialRunner
from holdfast.stores.base import MultipartLimits, iter_objects, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket, with_shared

T = TypeVar("T")
R = TypeVar("R")

STAGING = ["staging-directory", "staging-partitioned"]
_each = pytest.mark.parametrize("committer", STAGING)


def uploads(bucket: Bucket) -> list[str]:
    return [upload.key.removeprefix(HOME) for upload in iter_uploads(bucket.store, "")]


def keys(store: MemoryStore) -> list[str]:
    return [info.key for info in iter_objects(store, "")]


def failing(store: MemoryStore, operation: StoreOperation) -> InterceptedStore:
    return InterceptedStore(store, Faulty(Fault(FaultMode.FAIL, operation)))


# --- where the bytes are ----------------------------------------------------------------------------------------------
@_each
def test_life_of_a_job(committer: str) -> None:
    """Scenario 1: files on the task's machine, then pending uploads, then visible files and nothing else."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    first = open_attempt(bucket, ctx, job, 0, {"day=1/a b.txt": b"0123456789", "day=1/empty": b""})
    assert len(keys(bucket.scratch)) == 2 and keys(bucket.store) == [] and uploads(bucket) == []
    commit = first.commit()
    assert keys(bucket.scratch) == [] and keys(bucket.store) == []
    assert sorted(uploads(bucket)) == ["day=1/a b.txt", "day=1/empty"]
    task = f"task_{job.job}_m_000000"
    assert keys(bucket.shared) == [
        f"holdfast-staging/{job.job}/_temporary/0/{task}/uploads.pendingset",
        f"holdfast-staging/{job.job}/job.json",
    ]
    outcome = bucket.commit(ctx, job, [commit])
    assert outcome.committed and outcome.finished
    assert bucket.visible() == {"day=1/a b.txt": b"0123456789", "day=1/empty": b""} and bucket.debris() == []
    report = read_success_file(ctx)
    assert report is not None and report["committer"] == committer and report["jobId"] == job.job
    assert report["filenames"] == [f"/{HOME}day=1/a b.txt", f"/{HOME}day=1/empty"]


@_each
def test_what_a_task_hands_over(committer: str) -> None:
    """Hadoop's pending set: bytes of each part, the attempt, and the task's statistics."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    with open_attempt(bucket, ctx, job, 3, {"day=1/x": b"0123456789", "day=2/empty": b""}) as attempt:
        attempt.record_rows("day=1/x", 5)
        attempt.commit()
    task = f"_temporary/0/task_{job.job}_m_000003/uploads.pendingset"
    found = load_pendingset(Measure(ctx), job.job, task)
    by_key = {pending.key.removeprefix(HOME): pending for pending in found.commits}
    assert [part.size_bytes for part in by_key["day=1/x"].parts] == [4, 4, 2] and by_key["day=1/x"].rows == 5
    assert [part.size_bytes for part in by_key["day=2/empty"].parts] == [0], "scenario 2: one empty part"
    assert attempt.owner.attempt in found.attempt
    assert found.statistics.counters["committer_bytes_uploaded"] == 10


@_each
def test_a_job_on_real_directories(committer: str, tmp_path: Path) -> None:
    """With `open_context`: nothing stays in the scratch and shared directories, or hidden at the destination."""
    settings = CommitSettings(scratch_dir=str(tmp_path / "scratch"), shared_dir=str(tmp_path / "shared"))
    ctx = open_context(str(tmp_path / "out put"), settings=settings, staging=True).with_environment(
        runner=SerialRunner()
    )
    value = COMMITTERS[committer]
    job = value.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with value.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open("day=1/x y")
        sink.write(b"content")
        sink.close()
        commit = attempt.commit()
    value.commit_job(ctx, job, [commit], 1)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"out put/day=1/x y", "out put/_SUCCESS"}


# --- repeated steps ---------------------------------------------------------------------------------------------------
@_each
def test_a_task_commit_after_the_job_fails(committer: str) -> None:
    """Scenarios 6 and 10: the committed work stays as it was."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    late = open_attempt(bucket, ctx, job, 0, {"day=1/late": b"late"})
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"day=1/a": b"0"})])
    with pytest.raises(NotFoundError, match="shared directory"):
        late.commit()
    late.abort()
    assert bucket.visible() == {"day=1/a": b"0"} and uploads(bucket) == []


@_each
def test_the_last_attempt_to_commit_wins(committer: str) -> None:
    """Scenario 7, HADOOP-17258: both commits succeed; the first one's files never appear, its uploads are aborted."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    first = open_attempt(bucket, ctx, job, 0, {"day=1/a": b"first", f"day=1/first-{job.job}": b"first"})
    second = open_attempt(bucket, ctx, job, 0, {"day=1/a": b"second"})
    first.commit()
    commit = second.commit()
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"day=1/a": b"second"}
    assert uploads(bucket) == ["day=1/a"], "C9: the upload of the overwritten set has a name that does not tell its job"


@_each
def test_a_job_commit_can_be_tried_again_before_it_began(committer: str) -> None:
    """Scenario 8: the first fails, the second commits, the third finds no job."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    assert ctx.staging is not None
    away = with_shared(ctx, failing(bucket.shared, StoreOperation.LIST))
    with pytest.raises(UnavailableError):
        bucket.commit(away, job, commits)
    assert bucket.visible() == {} and len(uploads(bucket)) == 2
    assert bucket.commit(ctx, job, commits).committed
    with pytest.raises(NotFoundError):
        bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


@_each
def test_a_shared_directory_that_is_deleted_during_the_job_commit_is_not_an_empty_job(committer: str) -> None:
    """C1: before any of its requests on the directory, and before the files are visible."""
    for nth in range(20):
        bucket = Bucket(committer)
        ctx = bucket.context()
        job = bucket.start(ctx)
        commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
        calls = 0

        def delete_all(call: StoreCall, proceed: Callable[[], T], nth: int = nth, bucket: Bucket = bucket) -> T:
            nonlocal calls
            if calls == nth and not bucket.visible():
                bucket.shared.delete_many(keys(bucket.shared))
            calls += 1
            return proceed()

        try:
            bucket.commit(with_shared(ctx, InterceptedStore(bucket.shared, delete_all)), job, commits)
        except NotFoundError:
            assert bucket.visible() == {}
        else:
            assert sorted(bucket.visible().values()) == bucket.expected("new", 1)
        if calls <= nth:
            break
    assert 3 < nth < 19


@_each
def test_a_pending_set_that_goes_while_it_is_loaded_fails_the_job(committer: str) -> None:
    """The job commit has listed it, then a late attempt deletes it."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]

    def displace(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.GET and call.key.endswith(".pendingset"):
            bucket.shared.delete(call.key)
        return proceed()

    with pytest.raises(NotFoundError, match="a late attempt is replacing it"):
        bucket.commit(with_shared(ctx, InterceptedStore(bucket.shared, displace)), job, commits)
    assert bucket.visible() == {}


@_each
def test_an_uncommitted_attempt_is_no_output(committer: str) -> None:
    """Scenario 9: neither its staged files nor its uploads outlive the job."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    dead = open_attempt(bucket, ctx, job, 0, {f"day=9/part-00000-{job.job}-c000": b"dead"})
    bucket.store.create_upload(f"{HOME}day=9/part-00000-{job.job}-c000")  # it died during the upload
    bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1) and bucket.debris() == []
    del dead


# --- task failures ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.CREATE_UPLOAD, nth=2), id="scenario 12: starting an upload"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.UPLOAD_PART, times=FOR_EVER), id="scenario 13: a part"),
        pytest.param(
            Fault(FaultMode.FAIL, StoreOperation.UPLOAD_PART, "*/b", times=FOR_EVER), id="scenario 14: file two"
        ),
    ],
)
@_each
def test_a_failed_task_commit_leaves_nothing(committer: str, fault: Fault) -> None:
    """Scenarios 12, 13 and 14: an error, every started upload aborted, the attempt's directory deleted."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    with pytest.raises(UnavailableError):
        run_attempt(bucket, faulty_context(bucket, fault), job, 0, {"day=1/a": b"0123456789", "day=1/b": b"0123456789"})
    assert uploads(bucket) == [] and keys(bucket.scratch) == []
    assert keys(bucket.shared) == [f"holdfast-staging/{job.job}/job.json"]


@_each
def test_the_first_error_is_the_one_that_is_raised(committer: str) -> None:
    """Scenario 15: aborting the uploads fails as well."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    ctx = faulty_context(
        bucket,
        Fault(FaultMode.FAIL, StoreOperation.UPLOAD_PART, times=FOR_EVER, error=UnavailableError("the first error")),
        Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER, error=UnavailableError("another error")),
    )
    with pytest.raises(UnavailableError, match="the first error"):
        run_attempt(bucket, ctx, job, 0, {"day=1/a": b"0123456789"})
    assert keys(bucket.scratch) == []


@_each
def test_a_pending_set_that_cannot_be_saved(committer: str) -> None:
    """The shared directory is unavailable after all parts are uploaded: the uploads are aborted."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    assert ctx.staging is not None
    away = with_shared(ctx, failing(bucket.shared, StoreOperation.PUT))
    with pytest.raises(UnavailableError):
        run_attempt(bucket, away, job, 0, {"day=1/a": b"0123456789"})
    assert uploads(bucket) == [] and keys(bucket.scratch) == []


@_each
def test_a_scratch_directory_that_cannot_be_deleted_fails_no_attempt(committer: str) -> None:
    """What is left of it is deleted with the job."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    assert ctx.staging is not None
    stuck = Place(store=failing(bucket.scratch, StoreOperation.DELETE_MANY), prefix="", url="memory://scratch")
    task = replace(ctx, staging=replace(ctx.staging, scratch=stuck))
    commit = run_attempt(bucket, task, job, 0, {"day=1/a": b"0123456789"})
    assert keys(bucket.scratch) != []
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"day=1/a": b"0123456789"} and bucket.debris() == []


@_each
def test_lost_replies_of_completions(committer: str) -> None:
    """Scenario 69: lost replies do not fail a job commit."""
    bucket = Bucket(committer)
    bucket.run_job(faulty_context(bucket, Fault(FaultMode.LOST_REPLY, StoreOperation.COMPLETE_UPLOAD, times=2)), "new")
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


@_each
def test_progress_is_told_for_every_file(committer: str) -> None:
    """HADOOP-15961, scenario 68: an upload reports progress."""
    bucket = Bucket(committer)
    seen: list[tuple[str, int, int]] = []
    ctx = bucket.context(progress=lambda stage, done, total: seen.append((stage, done, total)))
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"day=1/a": b"0123456789", "day=1/b": b"01234"})
    assert seen == [("upload", 1, 2), ("upload", 2, 2)]


@_each
def test_a_staged_file_that_is_gone_or_changed(committer: str) -> None:
    """Scenario 68: an immediate error, and no progress."""
    bucket = Bucket(committer)
    seen: list[int] = []
    ctx = bucket.context(progress=lambda stage, done, total: seen.append(done))
    job = bucket.start(ctx)
    for change in (bucket.scratch.delete, lambda key: bucket.scratch.put(key, b"shorter")):
        attempt = open_attempt(bucket, ctx, job, 0, {"day=1/a": b"0123456789"})
        change(next(key for key in keys(bucket.scratch) if attempt.owner.attempt in key))
        seen.clear()
        with pytest.raises(HoldfastError):
            attempt.commit()
        attempt.abort()
        assert len(seen) <= 1 and uploads(bucket) == [] and keys(bucket.scratch) == []


@_each
def test_too_many_parts_are_refused(committer: str) -> None:
    """Scenario 71: and what was uploaded is aborted."""
    bucket = Bucket(committer)
    bucket.store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=4, max_parts=3), ids=bucket.ids)
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"day=1/fits": b"x" * 11})
    before = uploads(bucket)
    with pytest.raises(InvalidRequestError, match="more parts"):
        run_attempt(bucket, ctx, job, 1, {"day=1/a": b"small", "day=1/b": b"x" * 13})
    assert uploads(bucket) == before


# --- the shared directory ---------------------------------------------------------------------------------------------
@_each
def test_a_machine_that_does_not_share_the_directory(committer: str) -> None:
    """The task raises an error that explains the problem, instead of a job with silently empty output."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    elsewhere = with_shared(ctx, MemoryStore(rename=True), url="memory://elsewhere")
    with pytest.raises(NotFoundError, match="set shared_dir to one that they share"):
        run_attempt(bucket, elsewhere, job, 0, {"day=1/a": b"0"})
    assert uploads(bucket) == []


@_each
def test_a_shared_directory_in_an_object_store(committer: str) -> None:
    """One record per task needs no atomic directory rename: its copy has the same name for every attempt."""
    bucket = Bucket(committer)
    bucket.shared = MemoryStore(clock=bucket.clock, ids=bucket.ids)
    ctx = bucket.context()
    job = bucket.start(ctx)
    first, second = (open_attempt(bucket, ctx, job, 0, {f"day=1/{name}-{job.job}": b"x"}) for name in "ab")
    first.commit()
    bucket.commit(ctx, job, [second.commit()])
    assert list(bucket.visible()) == [f"day=1/b-{job.job}"] and bucket.debris() == []


@_each
def test_a_context_without_places_is_refused(committer: str) -> None:
    bucket = Bucket(committer)
    with pytest.raises(InvalidRequestError, match="staging=True"):
        bucket.start(replace(bucket.context(), staging=None))
    job = bucket.start(bucket.context())
    with pytest.raises(InvalidRequestError, match="staging=True"):
        run_attempt(bucket, replace(bucket.context(), staging=None), job, 0, {"day=1/a": b"0"})


def test_the_scratch_directory_is_one_of_this_machine(tmp_path: Path) -> None:
    """Scenario 36: another scheme is refused when the context is opened; ``file:`` is understood."""
    with pytest.raises(InvalidRequestError, match="scratch_dir"):
        open_context(str(tmp_path), settings=CommitSettings(scratch_dir="s3://bucket/scratch"), staging=True)
    for directory in (f"file://{tmp_path}/scratch dir", str(tmp_path / "scratch dir")):
        settings = CommitSettings(scratch_dir=directory, shared_dir=str(tmp_path / "shared"))
        ctx = open_context(str(tmp_path), settings=settings, staging=True)
        assert ctx.staging is not None and ctx.staging.scratch.url == f"file://{tmp_path}/scratch dir"
        ctx.staging.scratch.store.put("x", b"content")
        assert (tmp_path / "scratch dir" / "x").read_bytes() == b"content"


# --- job failures and aborts ------------------------------------------------------------------------------------------
@_each
def test_a_failed_job_commit_takes_everything_back(committer: str) -> None:
    """Scenario 11: the fifth of twelve completions fails: four files deleted, eight uploads and the job aborted."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    contents = [f"{number}".encode() for number in range(4)]
    commits = [bucket.run_task(ctx, job, task, contents) for task in range(3)]
    assert len(uploads(bucket)) == 12
    broken = Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=5, times=FOR_EVER)
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, broken), job, commits)
    assert bucket.visible() == {} and bucket.debris() == []


@_each
def test_aborts_without_work(committer: str) -> None:
    """Scenarios 16, 17, 20 and 22: nothing to abort is not an error, and neither is aborting twice."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = bucket.value.setup_task(ctx, job, 0)
    attempt.abort()
    bucket.value.abort_task(ctx, job, attempt.owner)
    for _ in range(2):
        outcome = bucket.value.abort_job(ctx, job)
        assert not outcome.committed and outcome.finished
    assert bucket.debris() == []


@_each
def test_aborts_take_everything_away(committer: str) -> None:
    """Scenarios 18, 19, 21 and 24: an attempt aborted by another process, one never aborted, one committed."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"day=1/a": b"0"})
    aborted = open_attempt(bucket, ctx, job, 1, {"day=1/b": b"1"})
    bucket.value.abort_task(bucket.context(), job, aborted.owner)
    assert keys(bucket.scratch) == []
    open_attempt(bucket, ctx, job, 2, {"day=1/c": b"2"})
    assert not hasattr(bucket.value, "recover_task")
    bucket.value.abort_job(bucket.context(), job)
    assert bucket.visible() == {} and bucket.debris() == []


@_each
def test_an_abort_that_fails_says_so_and_can_be_repeated(committer: str) -> None:
    """Paper 000, XI: an abort does not raise."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))
    outcome = bucket.value.abort_job(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.LIST_UPLOADS)), job)
    assert not outcome.finished and "cleanup is incomplete" in outcome.pending_reason
    assert bucket.value.abort_job(bucket.context(), job).finished
    assert bucket.debris() == []


@_each
def test_an_abort_after_the_commit_says_that_it_is_committed(committer: str) -> None:
    """Spark aborts in a new process after a commit whose reply was lost: nothing is deleted."""
    bucket = Bucket(committer)
    job = bucket.start(bucket.context())
    commits = [bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))]
    lossy = Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, "*_SUCCESS")
    with pytest.raises(OutcomeUnknownError):
        bucket.commit(faulty_context(bucket, lossy), job, commits)
    assert bucket.value.abort_job(bucket.context(), job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1) and bucket.debris() == []


# --- options ----------------------------------------------------------------------------------------------------------
@_each
def test_reports_of_jobs_that_end_well_and_badly(committer: str) -> None:
    """Scenarios 72 and 74, and 20: the report directory gets a report of every job, also of failed and aborted ones."""
    bucket = Bucket(committer)
    reports = MemoryStore(ids=bucket.ids)
    place = Place(store=reports, prefix="reports/", url="memory://reports")
    ctx = replace(bucket.context(), reports=place)
    good, bad, aborted = bucket.start(ctx), bucket.start(ctx), bucket.start(ctx)
    bucket.commit(ctx, good, [bucket.run_task(ctx, good, 0, bucket.contents("good", 0))])
    commits = [bucket.run_task(ctx, bad, 0, bucket.contents("bad", 0))]
    broken = replace(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD)), reports=place)
    with pytest.raises(UnavailableError):
        bucket.commit(broken, bad, commits)
    bucket.value.abort_job(ctx, aborted)
    found = {
        job.job: parse_success_file("r", reports.get(f"reports/summary-{job.job}.json")) for job in (good, bad, aborted)
    }
    assert found[good.job]["success"] is True and found[good.job]["hostname"]
    assert found[good.job]["metrics"]["files"] == 2 and len(found[good.job]["filenames"]) == 2
    assert found[bad.job]["success"] is False and found[bad.job]["stage"] == "job_stage_complete_uploads"
    assert "injected" in found[bad.job]["diagnostics"]["exception"]
    assert found[aborted.job]["success"] is False and "job_stage" in found[aborted.job]["stage"]
