"""Test ``emr``, which is here for comparison: what it saves and what it gives up (paper 000, XII.C and Table V)."""

from __future__ import annotations

import pytest

from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.recovery import UNKNOWN
from holdfast.commit.success_file import read_success_file
from holdfast.errors import InvalidRequestError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast_checker.specimens import EMR
from tests.checker.specimens.buckets import bucket_of
from tests.interceptors import Fault, FaultMode, Recorder, SimulatedCrash
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.hadoop.magic.magic_jobs import orphans, uploads


def test_life_of_a_job() -> None:
    """Table V, "committed task output observable": a file is hidden while it is written, and visible with its task."""
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"123456789", "b": b""})
    assert bucket.visible() == {} and len(uploads(bucket)) == 2
    with attempt:
        commits = [attempt.commit()]
    assert bucket.visible() == {"a": b"123456789", "b": b""} and uploads(bucket) == []
    outcome = bucket.commit(ctx, job, commits)
    assert outcome.committed and outcome.finished and outcome.totals.files == 2 and outcome.totals.size_bytes == 9
    report = read_success_file(ctx)
    assert report is not None and report["jobId"] == job.job and report["filenames"] == []
    assert bucket.debris() == []


def test_what_it_costs() -> None:
    """No listing and no record: a file is its upload, a job is one PUT and one listing of pending uploads."""
    bucket, recorded = bucket_of("emr"), Recorder()
    ctx = bucket.context(store=InterceptedStore(bucket.store, recorded))
    job = bucket.start(ctx)
    recorded.clear()
    commits = [run_attempt(bucket, ctx, job, 0, {"a": b"1", "b": b"2"})]
    assert {operation.value: count for operation, count in recorded.counts().items()} == {
        "create_upload": 2,
        "upload_part": 2,
        "complete_upload": 2,
    }
    recorded.clear()
    bucket.commit(ctx, job, commits)
    assert [call.operation.value for call in recorded.calls] == ["put", "list_uploads_page"]


def test_attempts_write_the_same_names() -> None:
    """C3: of two attempts that commit, the last one's files are visible, whichever the driver accepted."""
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    accepted = bucket.run_task(ctx, job, 0, [b"accepted"])
    bucket.run_task(ctx, job, 0, [b"late"])
    bucket.commit(ctx, job, [accepted])
    assert list(bucket.visible().values()) == [b"late"]


def test_a_task_that_dies_halfway_leaves_files() -> None:
    """Table V, "atomic task commit": no. The next attempt writes fewer files, so a file of the dead one stays (C2)."""
    bucket = bucket_of("emr")
    job = bucket.start(bucket.context())
    dying = faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD, nth=3))
    with pytest.raises(SimulatedCrash):
        bucket.run_task(dying, job, 0, [b"dead"] * 3)
    ctx = bucket.context()
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"new"])])
    assert sorted(bucket.visible().values()) == [b"dead", b"new"] and bucket.debris() == []


def test_a_task_that_fails_halfway_aborts_the_rest() -> None:
    bucket = bucket_of("emr")
    job = bucket.start(bucket.context())
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=2))
    with pytest.raises(UnavailableError):
        bucket.run_task(ctx, job, 0, [b"dead"] * 3)
    assert len(bucket.visible()) == 1 and uploads(bucket) == []


def test_a_lost_reply_is_settled() -> None:
    bucket = bucket_of("emr")
    job = bucket.start(bucket.context())
    ctx = faulty_context(bucket, Fault(FaultMode.LOST_REPLY, StoreOperation.COMPLETE_UPLOAD))
    assert bucket.run_task(ctx, job, 0, [b"1", b"2"]).totals.files == 2
    assert len(bucket.visible()) == 2


def test_an_abort_leaves_what_is_visible() -> None:
    """Table V, "abortable job" holds for pending uploads only; C5 does not hold. Scenarios 16 to 21."""
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    done = bucket.run_task(ctx, job, 0, [b"done"])
    waiting = EMR.setup_task(ctx, job, 1)
    sink = waiting.open("day=0/" + waiting.file_name(".txt"))
    sink.write(b"waiting")
    sink.close()
    EMR.abort_task(bucket.context(), job, waiting.owner)
    assert len(uploads(bucket)) == 1, "another process does not know the upload; the job's end does"
    for _ in range(2):
        outcome = EMR.abort_job(bucket.context(), job)
        assert not outcome.committed and outcome.finished
    assert list(bucket.visible().values()) == [b"done"] and uploads(bucket) == [] and done.totals.files == 1


def test_clean_up_that_fails_is_reported() -> None:
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, 0, [b"1"])]
    outcome = bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.LIST_UPLOADS)), job, commits)
    assert outcome.committed and not outcome.finished and "holdfast recover" in outcome.pending_reason
    assert bucket.commit(ctx, job, commits).finished


def test_messages_are_checked() -> None:
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    with pytest.raises(InvalidRequestError, match="exactly once"):
        EMR.commit_job(ctx, job, [bucket.run_task(ctx, job, 0, [b"1"])], 2)
    assert read_success_file(ctx) is None


def test_everything_dies_in_a_task() -> None:
    """Pending uploads are found by name and aborted; the caller decides by age whether the job is alive."""
    for nth in range(1, 20):
        bucket = bucket_of("emr")
        job = bucket.start(bucket.context())
        try:
            bucket.run_task(faulty_context(bucket, Fault(FaultMode.CRASH_AFTER, nth=nth)), job, 0, [b"12345", b"6"])
        except SimulatedCrash:
            for left in orphans(bucket.context()).values():
                assert (left.committer, left.job, left.action) == (UNKNOWN, job.job, RecoveryAction.BACK)
                left.recover()
            assert uploads(bucket) == []
            assert all(path.endswith(f"{job.job}-c00{path[4]}.txt") for path in bucket.visible())
        else:
            assert nth > 4
            return
    pytest.fail("a task makes more calls than it should")


def test_somebody_aborted_the_uploads() -> None:
    bucket = bucket_of("emr")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"1"})
    (upload,) = bucket.store.list_uploads_page("").uploads
    bucket.store.abort_upload(upload.key, upload.upload_id)
    with pytest.raises((NotFoundError, OutcomeUnknownError)), attempt:
        attempt.commit()
    assert upload.key == f"{HOME}a" and bucket.visible() == {}
