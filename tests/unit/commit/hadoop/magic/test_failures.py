"""Test ``magic`` with failing store calls, in tasks and in the driver."""

from __future__ import annotations

import pytest

from holdfast.commit import CommitContext, CommitSettings, JobRecord
from holdfast.commit.hadoop.magic.files import attempt_dir, magic_work_path, pendingset_path
from holdfast.commit.hadoop.pending import magic_dir
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.errors import (
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty
from tests.unit.commit.attempts import HOME, Before, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket
from tests.unit.commit.hadoop.magic.magic_jobs import MAGIC, hidden, leftovers, run_tasks, uploads, write_attempt


# --- tasks ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.CREATE_UPLOAD), id="scenario 12"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.UPLOAD_PART), id="scenario 13"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.UPLOAD_PART, key="*/two"), id="scenario 14"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.PUT, key="*/__base/two"), id="marker"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.PUT, key="*/__base/two.pending"), id="record"),
        pytest.param(Fault(FaultMode.LOST_REPLY, StoreOperation.UPLOAD_PART, key="*/two"), id="lost reply of a part"),
        pytest.param(Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, key="*.pending"), id="lost reply of a record"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.LIST), id="listing of records"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.GET, key="*two.pending"), id="load of a record"),
        pytest.param(Fault(FaultMode.FAIL, StoreOperation.PUT, key="*.pendingset"), id="save of the set"),
    ],
)
def test_a_task_that_fails(fault: Fault) -> None:
    """Scenarios 12, 13 and 14: the error is raised, every upload aborted, the attempt's directory deleted."""
    bucket = Bucket("magic")
    job = bucket.start(bucket.context())
    with pytest.raises((UnavailableError, OutcomeUnknownError)):
        write_and_commit(faulty_context(bucket, fault), job)
    assert uploads(bucket) == [] and hidden(bucket) == []
    commits = [run_attempt(bucket, bucket.context(), job, 0, {"one": b"again"})]
    bucket.commit(bucket.context(), job, commits)
    assert bucket.visible() == {"one": b"again"} and bucket.debris() == []


def write_and_commit(ctx: CommitContext, job: JobRecord) -> None:
    with MAGIC.setup_task(ctx, job, 0) as attempt:
        for path, content in (("one", b"12345678"), ("two", b"123")):
            sink = attempt.open(path)
            sink.write(content)
            sink.close()
        attempt.commit()


def test_a_task_whose_abort_fails_too() -> None:
    """Scenario 15: the first error is raised; the next clean-up finds what was left."""
    bucket = Bucket("magic")
    job = bucket.start(bucket.context())
    ctx = faulty_context(
        bucket,
        Fault(FaultMode.FAIL, StoreOperation.PUT, key="*.pendingset", error=CorruptDataError("the first error")),
        Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER),
        Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER),
    )
    with pytest.raises(CorruptDataError, match="the first error"):
        run_attempt(bucket, ctx, job, 0, {"one": b"12345678"})
    assert uploads(bucket) == [f"{HOME}one"]
    MAGIC.abort_job(bucket.context(), job)
    assert bucket.debris() == []


def test_a_set_whose_put_was_not_confirmed() -> None:
    """Paper 001, "Task commit": the uploads are aborted. If the set was written, another attempt must replace it."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    lost = faulty_context(bucket, Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, key="*.pendingset"))
    with pytest.raises(OutcomeUnknownError):
        run_attempt(bucket, lost, job, 0, {"one": b"first"})
    assert hidden(bucket) == [pendingset_path(job.job, 0)] and uploads(bucket) == []
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"one": b"again"})])
    assert bucket.visible() == {"one": b"again"}


def test_a_damaged_record_fails_the_task() -> None:
    """Paper 001, "Task commit": the uploads that could be loaded are aborted, then the failure is reported."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"one": b"1", "two": b"2"})
    bucket.store.put(f"{HOME}{magic_work_path(attempt.owner)}/two.pending", b"{}")
    with pytest.raises(CorruptDataError, match=r"two\.pending"), attempt:
        attempt.commit()
    assert uploads(bucket) == [] and hidden(bucket) == []


def test_a_record_of_another_destination_fails_the_task() -> None:
    """C7: stored records are untrusted; they cannot make a job write elsewhere."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"one": b"1"})
    record = f"{HOME}{magic_work_path(attempt.owner)}/one.pending"
    bucket.store.put(record, bucket.store.get(record).replace(b"dataset1/one", b"dataset10/one"))
    with pytest.raises(CorruptDataError, match="leaves the destination"), attempt:
        attempt.commit()
    assert bucket.debris() == []


def test_two_files_with_one_target_fail_the_task() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"one": b"1"})
    work = HOME + magic_work_path(attempt.owner)
    bucket.store.put(f"{work}/sub/__base/one.pending", bucket.store.get(f"{work}/one.pending"))
    with pytest.raises(InvalidRequestError, match="same target"), attempt:
        attempt.commit()
    assert bucket.debris() == []


def test_a_directory_that_cannot_be_deleted_does_not_fail_the_task() -> None:
    bucket = Bucket("magic")
    job = bucket.start(bucket.context())
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY))
    commits = [run_attempt(bucket, ctx, job, 0, {"one": b"1"})]
    assert len(hidden(bucket)) == 3, "the set, a marker and a record"
    bucket.commit(bucket.context(), job, commits)
    assert bucket.visible() == {"one": b"1"} and bucket.debris() == []


# --- late attempts ----------------------------------------------------------------------------------------------------
def test_an_attempt_that_goes_on_after_the_job_shows_nothing() -> None:
    """Paper 000, Table V and VIII.A: a dead attempt stays dead. Its records can be distinguished from the job's."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    late = MAGIC.setup_task(ctx, job, 0)
    commits = run_tasks(bucket, ctx, job, "new")
    bucket.commit(ctx, job, commits)
    sink = late.open(f"day=0/part-00000-{job.job}-c000.txt")
    sink.write(b"late")
    sink.close()
    with late:
        late.commit()
    assert sorted(bucket.visible().values()) == bucket.expected("new")
    bucket.run_job(ctx, "next")  # its _SUCCESS replaces the one that named the job
    left = leftovers(ctx)[job.job]
    assert (left.action, left.files, left.uploads) == (RecoveryAction.KEEP, 2, 1)
    left.recover()
    assert sorted(bucket.visible().values()) == sorted(bucket.expected("new") + bucket.expected("next"))


def test_an_attempt_that_commits_during_the_job_commit() -> None:
    """Paper 000, VIII.C: the set of a partitioned attempt replaces the accepted one just before the listing."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    late = open_attempt(bucket, ctx, job, 0, {"late": b"late"})
    commits = [run_attempt(bucket, ctx, job, 0, {"accepted": b"accepted"})]
    race = Before(StoreOperation.LIST, late.commit)
    bucket.commit(bucket.context(store=InterceptedStore(bucket.store, race)), job, commits)
    assert race.fired and bucket.visible() == {"late": b"late"}, "C3 does not hold"
    assert uploads(bucket) == [f"{HOME}accepted"], "nobody knows the accepted one's upload any more"


# --- the driver -------------------------------------------------------------------------------------------------------
def test_a_job_commit_that_fails_halfway_takes_its_files_back() -> None:
    """Scenario 11, followed by an abort as in Spark: nothing is left."""
    for nth in range(1, 5):
        bucket = Bucket("magic")
        ctx = bucket.context()
        bucket.run_job(ctx, "old")
        job = bucket.start(ctx)
        commits = run_tasks(bucket, ctx, job, "new")
        faulty = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=nth))
        with pytest.raises(UnavailableError):
            bucket.commit(faulty, job, commits)
        assert sorted(bucket.visible().values()) == bucket.expected("old") and uploads(bucket) == []
        MAGIC.abort_job(ctx, job)
        assert bucket.debris() == []


def test_a_set_that_cannot_be_read_fails_the_job() -> None:
    """Paper 001, "Job Commit": the other uploads are aborted, and the error names the record."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new", tasks=3)
    bucket.store.put(HOME + pendingset_path(job.job, 1), b'{"version": 1}')
    with pytest.raises(CorruptDataError, match=r"task_.*_000001\.pendingset"):
        bucket.commit(ctx, job, commits)
    assert bucket.visible() == {} and len(uploads(bucket)) == 2
    MAGIC.abort_job(ctx, job)
    assert uploads(bucket) == [f"{HOME}blobs/1.tar"] and hidden(bucket) == []


def test_a_clean_up_that_fails_is_reported_and_not_raised() -> None:
    """The job is committed and reported so; its leftovers differ from those of an uncommitted job."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    outcome = bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.LIST_UPLOADS)), job, commits)
    assert outcome.committed and not outcome.finished and "holdfast recover" in outcome.pending_reason
    left = leftovers(ctx)[job.job]
    assert left.action is RecoveryAction.CLEAN and "_SUCCESS" in left.reason
    left.recover()
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_a_success_report_that_cannot_be_written() -> None:
    """C4, C5: the error occurs after the files are visible, and an abort does not delete them."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.PUT, key="*/_SUCCESS")), job, commits)
    assert not MAGIC.abort_job(ctx, job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new") and read_success_file(ctx) is None
    assert bucket.debris() == []


def test_the_order_of_the_job_commit() -> None:
    """Paper 000, VI.A: list, load, complete, look for the first file, ``_SUCCESS``, and only then clean up."""
    bucket = Bucket("magic")
    ctx = bucket.context(settings=CommitSettings(part_size_bytes=4, inline_manifest_bytes=0))
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new", tasks=1)
    seen: list[str] = []

    def note(call, proceed):  # type: ignore[no-untyped-def]  # an interceptor
        seen.append(call.operation.value)
        return proceed()

    bucket.commit(bucket.context(store=InterceptedStore(bucket.store, note)), job, commits)
    assert seen == [
        "list_page",
        "get",
        "complete_upload",
        "complete_upload",
        "head",
        "put",
        "list_uploads_page",
        "list_page",
        "delete_many",
    ]


def test_a_job_does_not_recover_tasks() -> None:
    """Scenario 24: recovery is not possible on request; an abort then leaves no upload."""
    assert not hasattr(MAGIC, "recover_task")
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_tasks(bucket, ctx, job, "new")
    MAGIC.abort_job(ctx, job)
    assert bucket.debris() == []


@pytest.mark.parametrize("mode", [FaultMode.FAIL, FaultMode.LOST_REPLY])
def test_each_call_of_a_job_commit_fails_once(mode: FaultMode) -> None:
    """Before its effect or after it: a Holdfast error or none, and all or nothing after an abort."""
    for nth in range(1, 40):
        bucket = Bucket("magic")
        ctx = bucket.context()
        job = bucket.start(ctx)
        commits = run_tasks(bucket, ctx, job, "new")
        faulty = Faulty(Fault(mode, nth=nth))
        try:
            outcome = bucket.commit(bucket.context(store=InterceptedStore(bucket.store, faulty)), job, commits)
        except HoldfastError:
            whole = faulty.fired[0].key.endswith("_SUCCESS")
            assert MAGIC.abort_job(ctx, job).committed == (whole and mode is FaultMode.LOST_REPLY)
        else:
            assert outcome.committed
            whole = True
        assert sorted(bucket.visible().values()) == (bucket.expected("new") if whole else [])
        MAGIC.abort_job(ctx, job)
        assert bucket.debris() == []
        if not faulty.fired:
            return
    pytest.fail("the job commit makes more calls than it should")


def test_a_lost_directory_is_not_another_jobs() -> None:
    """The NotFoundError names the job, so that a user finds it."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = write_attempt(bucket, ctx, job, 0, "new")
    for path in hidden(bucket):
        assert path.startswith((magic_dir(job.job), attempt_dir(attempt.owner)))
        bucket.store.delete(HOME + path)
    with pytest.raises(NotFoundError, match=job.job), attempt:
        attempt.commit()


def test_an_abort_goes_on_without_the_success_report(caplog: pytest.LogCaptureFixture) -> None:
    """Whether the job is committed is then unknown, so the abort does not claim it."""
    bucket = Bucket("magic")
    job = bucket.start(bucket.context())
    run_tasks(bucket, bucket.context(), job, "new")
    outcome = MAGIC.abort_job(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.GET)), job)
    assert not outcome.committed and "_SUCCESS could not be read" in caplog.text
    assert bucket.visible() == {} and bucket.debris() == []
