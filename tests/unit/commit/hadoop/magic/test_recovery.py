"""Test the recovery action for a dead `magic` job: each action of `pending_sets.recovery`, and why it is right."""

from __future__ import annotations

import pytest

from holdfast.commit import CommitContext, JobRecord
from holdfast.commit.hadoop.magic.files import pendingset_path
from holdfast.commit.hadoop.pending import decode_pendingset
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.recovery import find_leftovers
from holdfast.commit.success_file import read_success_file
from holdfast.errors import ConflictError, UnavailableError
from holdfast.stores.base import MultipartLimits, Part
from holdfast.stores.interceptors import StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode
from tests.servers.minio_like import MinioLike
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket
from tests.unit.commit.hadoop.magic.magic_jobs import (
    MAGIC,
    WithoutMetadata,
    hidden,
    leftovers,
    orphans,
    uploads,
    write_attempt,
)


def committed_tasks(bucket: Bucket, tasks: int = 2) -> tuple[CommitContext, JobRecord]:
    """Return a job whose tasks have committed two files each and whose driver is dead."""
    ctx = bucket.context()
    job = bucket.start(ctx)
    for task in range(tasks):
        bucket.run_task(ctx, job, task, bucket.contents("new", task))
    return ctx, job


def complete(bucket: Bucket, job: JobRecord, task: int, files: int) -> list[str]:
    """Complete the first uploads of a task, as a job commit does before it dies."""
    path = pendingset_path(job.job, task)
    found = decode_pendingset(path, bucket.store.get(HOME + path), bucket="bucket", prefix=HOME, job_id=job.job)
    done = []
    for one in found.commits[:files]:
        parts = [Part(number, part.etag, part.size_bytes) for number, part in enumerate(one.parts, start=1)]
        bucket.store.complete_upload(one.key, one.upload_id, parts)
        done.append(one.key)
    return done


def only(ctx: CommitContext) -> Leftover:
    (left,) = leftovers(ctx).values()
    return left


def test_nothing_is_left_of_jobs_that_end() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    MAGIC.abort_job(ctx, committed_tasks(bucket)[1])
    assert leftovers(ctx) == orphans(ctx) == {}
    assert list(find_leftovers(bucket.context(store=MemoryStore(limits=None, rename=True)))) == []


def test_a_job_commit_that_was_under_way_goes_on() -> None:
    """Paper 001: Outstanding == Commits - Written, and Written is not empty."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    complete(bucket, job, 0, 1)
    left = only(ctx)
    assert (left.committer, left.job, left.action) == ("magic", job.job, RecoveryAction.FORWARD)
    assert "1 of its files are visible, 3 are pending" in left.reason and (left.files, left.uploads) == (1, 3)
    assert left.active_at_s == max(bucket.store.head(HOME + path).modified_at_s for path in hidden(bucket))
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    report = read_success_file(ctx)
    assert report is not None and report["jobId"] == job.job and len(report["filenames"]) == 4
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new")


def test_going_on_does_not_take_back_when_the_store_is_away() -> None:
    bucket = Bucket("magic")
    _ctx, job = committed_tasks(bucket)
    complete(bucket, job, 0, 1)
    left = only(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=3)))
    with pytest.raises(UnavailableError):
        left.recover()
    assert len(bucket.visible()) == 2 and len(uploads(bucket)) == 2
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_a_job_commit_that_had_not_begun_is_rolled_back() -> None:
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    write_attempt(bucket, ctx, job, 5, "new")
    left = only(ctx)
    assert (left.action, left.files, left.uploads) == (RecoveryAction.BACK, 0, 5), (
        "the sixth has a chosen name, in no set"
    )
    left.recover()
    assert bucket.visible() == {} and bucket.debris() == []


def test_a_job_without_committed_tasks_is_rolled_back() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    write_attempt(bucket, ctx, bucket.start(ctx), 0, "new")
    left = only(ctx)
    assert left.action is RecoveryAction.BACK and "no task has committed" in left.reason
    left.recover()
    assert bucket.debris() == []


def test_a_job_that_was_taking_files_back_is_rolled_back() -> None:
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    done = complete(bucket, job, 0, 2)
    bucket.store.delete(done[0])
    left = only(ctx)
    assert left.action is RecoveryAction.BACK and "deleting its files" in left.reason
    left.recover()
    assert bucket.visible() == {} and bucket.debris() == []


def test_files_of_the_callers_naming_are_not_taken_back() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"a": b"1", "b": b"2", "c": b"3"})
    done = complete(bucket, job, 0, 2)
    bucket.store.delete(done[0])
    left = only(ctx)
    assert left.action is RecoveryAction.KEEP and "names do not carry its id" in left.reason
    before = (bucket.visible(), hidden(bucket), uploads(bucket))
    left.recover()
    assert (bucket.visible(), hidden(bucket), uploads(bucket)) == before


def test_an_older_file_of_the_same_name_and_size_is_not_taken_for_the_jobs() -> None:
    """Otherwise a job that has shown nothing would look like one whose commit had started."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"1"})])
    job = bucket.start(ctx)
    run_attempt(bucket, ctx, job, 0, {"a": b"2", "b": b"3"})
    left = only(ctx)
    assert (left.action, left.files) == (RecoveryAction.BACK, 0)
    left.recover()
    assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


def test_a_job_that_has_shown_everything_is_cleaned_up() -> None:
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    for task in range(2):
        complete(bucket, job, task, 2)
    left = only(ctx)
    assert left.action is RecoveryAction.CLEAN and "all of its files are visible" in left.reason
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_what_a_late_attempt_left_of_a_committed_job_is_cleaned_up() -> None:
    """Its data stays, although ``_SUCCESS`` names a later job and no set names the files."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    late = open_attempt(bucket, ctx, job, 0, {"late": b"late"})
    records = {path: bucket.store.get(HOME + path) for path in hidden(bucket) if "/tasks/" in path}
    MAGIC.abort_task(ctx, job, late.owner)
    for task in range(2):
        complete(bucket, job, task, 2)
    only(ctx).recover()
    for path, data in records.items():
        bucket.store.put(HOME + path, data)
    left = only(ctx)
    assert left.action is RecoveryAction.CLEAN and "it is over" in left.reason
    left.recover()
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_files_that_no_set_names_are_kept() -> None:
    """A late attempt replaced a set during the job commit: it is unknown which one is right."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    complete(bucket, job, 0, 2)
    bucket.run_task(ctx, job, 0, [b"late/0/0"])
    left = only(ctx)
    assert left.action is RecoveryAction.KEEP and "pending sets do not name" in left.reason and left.files == 2
    left.recover()
    assert len(bucket.visible()) == 2


def test_a_late_attempt_of_a_job_that_has_published_everything() -> None:
    """Each of its sets' files is visible: the job is over, whatever else an attempt has written."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    path = pendingset_path(job.job, 0)
    committed = bucket.store.get(HOME + path)
    bucket.run_task(ctx, job, 0, [b"late/0/0", b"late/0/1", b"late/0/2"])
    complete(bucket, job, 0, 3)
    bucket.store.put(HOME + path, committed)
    for task in range(2):
        complete(bucket, job, task, 2)
    left = only(ctx)
    assert left.action is RecoveryAction.CLEAN and "all of its files are visible" in left.reason
    left.recover()
    assert sorted(bucket.visible().values()) == sorted([*bucket.expected("new"), b"late/0/2"])
    assert not bucket.debris()


def test_files_that_are_gone_are_no_proof_of_a_rollback() -> None:
    """A later job may have replaced them: then the others are data of a committed job."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    for task in range(2):
        done = complete(bucket, job, task, 2)
    bucket.store.delete(done[0])
    left = only(ctx)
    assert left.action is RecoveryAction.KEEP and "nothing is pending" in left.reason


def test_a_job_of_which_nothing_is_left_but_records() -> None:
    bucket = Bucket("magic")
    ctx, _job = committed_tasks(bucket)
    for upload in list(bucket.store.list_uploads_page("").uploads):
        bucket.store.abort_upload(upload.key, upload.upload_id)
    left = only(ctx)
    assert left.action is RecoveryAction.CLEAN and "none of its files is visible or pending" in left.reason
    left.recover()
    left.recover()
    assert bucket.debris() == []


def test_a_store_without_metadata_cannot_tell_whose_file_it_is() -> None:
    bucket = Bucket("magic")
    bucket.store = WithoutMetadata(limits=MultipartLimits(min_part_size_bytes=4), clock=bucket.clock, ids=bucket.ids)
    ctx, job = committed_tasks(bucket)
    (key,) = complete(bucket, job, 0, 1)
    bucket.store.put(key, bucket.store.get(key))  # as if it had never had metadata
    bucket.run_task(ctx, job, 0, bucket.contents("new", 0))  # a late attempt with the same names and sizes
    left = only(ctx)
    assert left.action is RecoveryAction.KEEP and "whose uploads are still pending" in left.reason


def test_a_damaged_set_keeps_everything() -> None:
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    record = HOME + pendingset_path(job.job, 1)
    bucket.store.put(record, b"{")
    left = only(ctx)
    assert left.action is RecoveryAction.KEEP and pendingset_path(job.job, 1) in left.reason and left.uploads == 4
    left.recover()
    assert bucket.store.get(record) == b"{" and len(uploads(bucket)) == 4


def test_a_job_that_goes_on_while_somebody_looks() -> None:
    """The driver turned out to be alive between the inspection and the action: nothing is done."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    left = only(ctx)
    assert left.action is RecoveryAction.BACK
    complete(bucket, job, 0, 1)
    with pytest.raises(ConflictError, match="made progress"):
        left.recover()
    assert len(bucket.visible()) == 1 and len(uploads(bucket)) == 3


def test_a_clean_up_that_fails_is_raised() -> None:
    bucket = Bucket("magic")
    committed_tasks(bucket)
    left = only(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD)))
    with pytest.raises(UnavailableError, match="repeat later"):
        left.recover()
    left.recover()
    assert bucket.debris() == []


def test_other_directories_are_left_alone() -> None:
    """Hadoop's own jobs have other ids; a directory may only look like a job's."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    for path in ("__magic_job-0d5c8f7e-uuid/a", "__magic/b", "__magic_job-/c", "__magic_jobs/d"):
        bucket.store.put(HOME + path, b"")
    assert leftovers(ctx) == {} and leftovers(bucket.context("out put/")) == {}


def test_uploads_that_no_record_names() -> None:
    """A job of any committer whose records are missing: found by the names of its uploads."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job, running = bucket.start(ctx), bucket.start(ctx)
    bucket.store.create_upload(f"{HOME}day=1/part-00000-{job.job}-c000.txt")
    bucket.store.create_upload(f"{HOME}_temporary/part-00000-{job.job}-c000.txt")
    bucket.store.create_upload(f"{HOME}chosen.tar")
    kept = bucket.store.create_upload(f"{HOME}part-00000-{running.job}-c000.txt")
    write_attempt(bucket, ctx, running, 1, "new")
    (left,) = orphans(ctx).values()
    assert (left.job, left.action, left.uploads) == (job.job, RecoveryAction.BACK, 1)
    assert left.active_at_s > job.started_at_s
    left.recover()
    left.recover()
    names = uploads(bucket)
    assert f"{HOME}day=1/part-00000-{job.job}-c000.txt" not in names and len(names) == 5 and kept


# --- a server that does not list uploads by directory -----------------------------------------------------------------
@pytest.mark.parametrize("completed", [0, 1, 2])
def test_on_a_server_like_minio_records_tell_what_waits(completed: int) -> None:
    """Its listing by directory is empty: recovery treats no upload as aborted, and leaves none."""
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    write_attempt(bucket, ctx, job, 2, "late")
    complete(bucket, job, 0, completed)
    left = only(bucket.context(store=MinioLike(bucket.store)))
    assert left.action is (RecoveryAction.FORWARD if completed else RecoveryAction.BACK)
    assert (left.files, left.uploads) == (completed, 4 - completed)
    left.recover()
    assert len(bucket.visible()) == (4 if completed else 0) and bucket.debris() == []


def test_an_abort_on_a_server_like_minio_leaves_no_upload() -> None:
    bucket = Bucket("magic")
    ctx, job = committed_tasks(bucket)
    write_attempt(bucket, ctx, job, 2, "late")
    assert MAGIC.abort_job(bucket.context(store=MinioLike(bucket.store)), job).finished
    assert bucket.visible() == {} and bucket.debris() == []


def test_a_job_commit_on_a_server_like_minio_leaves_no_upload_of_an_attempt_that_failed() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context(store=MinioLike(bucket.store))
    job = bucket.start(ctx)
    write_attempt(bucket, ctx, job, 0, "dead")
    commits = [bucket.run_task(ctx, job, 0, bucket.contents("new", 0))]
    assert bucket.commit(ctx, job, commits).finished
    assert sorted(bucket.visible().values()) == bucket.contents("new", 0) and bucket.debris() == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_job_was_active_when_any_of_its_records_was_written(order: tuple[int, int]) -> None:
    """A live job is spared by the time of its newest record, wherever a listing shows that record."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    for task in order:
        bucket.clock.sleep(3600)
        bucket.run_task(ctx, job, task, [b"0"])
    (left,) = leftovers(ctx).values()
    assert left.active_at_s >= bucket.clock.now_s() - 1
