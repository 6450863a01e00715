"""Test `direct`: refused by default, correct without failures, and each guarantee that it gives up."""

from __future__ import annotations

import pytest

from holdfast.commit import SaveMode
from holdfast.commit.success_file import read_success_file
from holdfast.errors import ConflictError, DestinationExistsError, NotFoundError
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import StoreOperation
from holdfast_checker.specimens import DIRECT
from tests.checker.specimens.buckets import bucket_of
from tests.interceptors import Fault, FaultMode, SimulatedCrash
from tests.unit.commit.attempts import faulty_context, open_attempt, run_attempt


def test_life_of_a_job() -> None:
    """C4 does not hold: each file is visible as soon as it is closed."""
    bucket = bucket_of("direct")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"a/x": b"0123456789", "empty": b""})
    assert bucket.visible() == {"a/x": b"0123456789", "empty": b""} and read_success_file(ctx) is None
    outcome = bucket.commit(ctx, job, [attempt.commit()])
    assert outcome.committed and (outcome.totals.files, outcome.totals.size_bytes) == (2, 10)
    report = read_success_file(ctx)
    assert report is not None and report["jobId"] == job.job and bucket.debris() == []
    assert bucket.commit(ctx, job, [attempt.commit()]).committed, "scenario 8: it can be repeated"


def test_a_dead_attempt_leaves_files() -> None:
    """C2 does not hold: its retry replaces only files with the same names. An open file is a pending upload."""
    bucket = bucket_of("direct")
    job = bucket.start(bucket.context())
    dying = faulty_context(bucket, Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD, "*/b"))
    with pytest.raises(SimulatedCrash):
        open_attempt(bucket, dying, job, 0, {"a": b"dead", "b": b"dead"})
    ctx = bucket.context()
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"c": b"right"})])
    assert bucket.visible() == {"a": b"dead", "c": b"right"}
    assert len(list(iter_uploads(bucket.store, ""))) == 1


def test_an_upload_that_another_process_aborted_is_an_error() -> None:
    bucket = bucket_of("direct")
    job = bucket.start(bucket.context())
    fault = Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, error=NotFoundError("aborted: run the task again"))
    with pytest.raises(ConflictError):
        open_attempt(bucket, faulty_context(bucket, fault), job, 0, {"a": b"x"})
    assert bucket.visible() == {}


def test_a_slow_attempt_replaces_files_of_a_committed_job() -> None:
    """C1, C3 and C6 do not hold."""
    bucket = bucket_of("direct")
    ctx = bucket.context()
    job = bucket.start(ctx)
    slow = DIRECT.setup_task(ctx, job, 0)
    sink = slow.open("a")
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"right"})])
    sink.write(b"late")
    sink.close()
    assert bucket.visible() == {"a": b"late"}


def test_aborts_take_nothing_back() -> None:
    """C5 does not hold; scenarios 16, 17, 20 and 22: none of it is an error."""
    bucket = bucket_of("direct")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = open_attempt(bucket, ctx, job, 0, {"a": b"0"})
    attempt.open("never closed").write(b"0123456789")
    attempt.abort()
    DIRECT.abort_task(ctx, job, attempt.owner)
    for _ in range(2):
        assert not DIRECT.abort_job(ctx, job).committed
    assert bucket.visible() == {"a": b"0"} and bucket.debris() == []


def test_modes() -> None:
    """Mode overwrite deletes at the start (C9 does not hold), the others check at the start."""
    bucket = bucket_of("direct")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    with pytest.raises(DestinationExistsError):
        bucket.start(ctx, SaveMode.FAIL)
    assert DIRECT.setup_job(ctx, SaveMode.IGNORE) is None
    bucket.start(ctx, SaveMode.OVERWRITE)
    assert bucket.visible() == {}
