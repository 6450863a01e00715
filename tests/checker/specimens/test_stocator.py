"""Test `stocator`: names with the attempt, a ``_SUCCESS`` that lists what counts, and what late attempts add."""

from __future__ import annotations

import pytest

from holdfast.commit.success_file import read_success_file
from holdfast.errors import OutcomeUnknownError
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import StoreOperation
from holdfast_checker.specimens import STOCATOR
from tests.checker.specimens.buckets import bucket_of
from tests.interceptors import FOR_EVER, Fault, FaultMode
from tests.unit.commit.attempts import HOME, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket


def success_names(bucket: Bucket) -> list[str]:
    report = read_success_file(bucket.context())
    assert report is not None
    names = report["filenames"]
    assert isinstance(names, list)
    return names


def test_life_of_a_job() -> None:
    """C4 does not hold: files are visible when they are closed. Paper 000, XII.B: every name has job and attempt."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    job = bucket.start(ctx)
    attempt = STOCATOR.setup_task(ctx, job, 3)
    mark = f"{job.job}-attempt-{attempt.owner.attempt}"
    paths = [f"day=1/{attempt.file_name('.csv')}", "images/1.tar.gz", "a b/plain"]
    for path in paths:
        sink = attempt.open(path)
        sink.write(b"0123456789")
        sink.close()
    names = [f"a b/plain-{mark}", f"day=1/part-00003-{mark}-c000.csv", f"images/1-{mark}.tar.gz"]
    assert sorted(bucket.visible()) == names
    outcome = bucket.value.commit_job(ctx, job, [attempt.commit()], [3])
    assert outcome.committed and outcome.totals.files == 3
    assert success_names(bucket) == [f"/{HOME}{name}" for name in names] and bucket.debris() == []


def test_success_names_every_file() -> None:
    """Readers rely on it: it is not limited to a hundred names, as other reports are."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commit = run_attempt(bucket, ctx, job, 0, {f"{number:03d}": b"" for number in range(120)})
    outcome = bucket.commit(ctx, job, [commit])
    assert len(success_names(bucket)) == 120
    assert outcome.report is not None and len(outcome.report.filenames) == 120


def test_only_files_of_attempts_that_count_stay() -> None:
    """The reports name those attempts; the job commit deletes files of others, but never other jobs' files."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    job, other = bucket.start(ctx), bucket.start(ctx)
    open_attempt(bucket, ctx, job, 0, {"a": b"dead", "only-dead": b"dead"})
    open_attempt(bucket, ctx, other, 0, {"a": b"another job's"})
    commit = run_attempt(bucket, ctx, job, 0, {"a": b"right"})
    run_attempt(bucket, ctx, job, 0, {"a": b"a twin that the driver did not accept"})
    bucket.store.create_upload(f"{HOME}x-{job.job}-attempt-000000000000")  # of an attempt that died while writing
    bucket.store.put(f"{HOME}foreign.csv", b"another tool's")
    bucket.commit(ctx, job, [commit])
    others = [*bucket.expected("old"), b"another job's", b"another tool's"]
    assert sorted(bucket.visible().values()) == sorted([*others, b"right"])
    assert len(success_names(bucket)) == 1 and list(iter_uploads(bucket.store, "")) == []


def test_a_late_attempt_adds_files_to_a_committed_job() -> None:
    """C6 does not hold: plain readers see them permanently; readers that rely on ``_SUCCESS`` do not."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"right"})])
    run_attempt(bucket, ctx, job, 0, {"a": b"zombie"})
    assert sorted(bucket.visible().values()) == [b"right", b"zombie"]
    assert len(success_names(bucket)) == 1


def test_a_name_that_holds_another_attempt() -> None:
    """The last attempt in a name counts: a copied name does not change a file's owner."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    job = bucket.start(ctx)
    copied = f"x-{job.job}-attempt-000000000000.txt"
    commit = run_attempt(bucket, ctx, job, 0, {copied: b"right"})
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {f"x-{job.job}-attempt-000000000000-{job.job}-attempt-{commit.attempt}.txt": b"right"}


def test_aborts() -> None:
    """Scenarios 16 to 22: an attempt's files are deleted, then the job's; idempotent."""
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    job = bucket.start(ctx)
    STOCATOR.setup_task(ctx, job, 0).abort()
    aborted = open_attempt(bucket, ctx, job, 0, {"a": b"0", "b": b"0"})
    aborted.open("c").write(b"0123456789")
    run_attempt(bucket, ctx, job, 1, {"d": b"1"})
    STOCATOR.abort_task(bucket.context(), job, aborted.owner)
    assert sorted(bucket.visible().values()) == sorted([*bucket.expected("old"), b"1"]) and bucket.debris() == []
    for _ in range(2):
        assert not STOCATOR.abort_job(bucket.context(), job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("old")


def test_an_abort_after_the_commit_takes_nothing_back() -> None:
    """``_SUCCESS`` exists although its reply was lost: the job is committed (paper 000, XII.B: the put is atomic)."""
    bucket = bucket_of("stocator")
    job = bucket.start(bucket.context())
    commits = [bucket.run_task(bucket.context(), job, 0, bucket.contents("new", 0))]
    with pytest.raises(OutcomeUnknownError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.LOST_REPLY, StoreOperation.PUT)), job, commits)
    assert STOCATOR.abort_job(bucket.context(), job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new", 1)


def test_trouble_after_success_is_no_failed_commit() -> None:
    bucket = bucket_of("stocator")
    ctx = bucket.context()
    job = bucket.start(ctx)
    open_attempt(bucket, ctx, job, 0, {"a": b"dead"})
    commit = run_attempt(bucket, ctx, job, 0, {"a": b"right"})
    broken = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER))
    outcome = bucket.commit(broken, job, [commit])
    assert outcome.committed and not outcome.finished and "_SUCCESS" in outcome.pending_reason
    assert bucket.commit(ctx, job, [commit]).finished, "scenario 8: it can be repeated"
    assert list(bucket.visible().values()) == [b"right"]
