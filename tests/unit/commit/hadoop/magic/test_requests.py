"""Test the number of requests of each step of ``magic``, as Hadoop's ITestCommitOperationCost does (scenario 70)."""

from __future__ import annotations

import collections

from holdfast.commit import CommitSettings
from holdfast.commit.context import Measure
from holdfast.commit.hadoop.magic.files import attempt_dir, iter_pending_paths, load_upload_record
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import Recorder
from tests.unit.commit.committer_jobs import Bucket
from tests.unit.commit.hadoop.magic.magic_jobs import MAGIC


def counts(recorded: Recorder) -> dict[str, int]:
    found = collections.Counter(call.operation.value for call in recorded.calls)
    recorded.clear()
    return dict(found)


def test_a_file() -> None:
    """Scenario 70: create is one request and checks nothing, close is two puts in addition to the parts."""
    bucket, recorded = Bucket("magic"), Recorder()
    job = bucket.start(bucket.context())
    attempt = MAGIC.setup_task(bucket.context(store=InterceptedStore(bucket.store, recorded)), job, 0)
    sink = attempt.open("one")
    assert counts(recorded) == {}, "nothing before there is something to send"
    sink.write(b"1234")
    assert counts(recorded) == {"create_upload": 1, "upload_part": 1}
    sink.write(b"56")
    assert counts(recorded) == {}
    sink.close()
    assert counts(recorded) == {"upload_part": 1, "put": 2}
    small = attempt.open("two")
    small.close()
    assert counts(recorded) == {"create_upload": 1, "upload_part": 1, "put": 2}


def test_a_task_commit() -> None:
    """Scenario 70: one listing, one GET per record, no HEAD, one PUT; then the directory is deleted."""
    bucket, recorded = Bucket("magic"), Recorder()
    ctx = bucket.context(store=InterceptedStore(bucket.store, recorded))
    with MAGIC.setup_task(ctx, bucket.start(ctx), 0) as attempt:
        for number in range(3):
            attempt.open(f"f{number}").close()
        recorded.clear()
        measure = Measure(ctx)
        paths = list(iter_pending_paths(ctx, attempt_dir(attempt.owner)))
        assert counts(recorded) == {"list_page": 1} and len(paths) == 3
        load_upload_record(measure, attempt.owner.job, paths[0])
        assert counts(recorded) == {"get": 1}
        attempt.commit()
        assert counts(recorded) == {"list_page": 2, "get": 3, "put": 1, "delete_many": 1}


def test_a_job_commit() -> None:
    """Scenario 70: a file is one request; 200 tasks of five files need less than 1.25 requests per file.

    This is what it costs when no set travels with its task's message.
    """
    bucket, recorded = Bucket("magic"), Recorder()
    ctx = bucket.context(settings=CommitSettings(part_size_bytes=4, inline_manifest_bytes=0))
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, [b"x"] * 5) for task in range(200)]
    bucket.commit(bucket.context(store=InterceptedStore(bucket.store, recorded)), job, commits)
    assert recorded.count(StoreOperation.COMPLETE_UPLOAD) == 1000
    assert counts(recorded) == {
        "list_page": 2,
        "get": 200,
        "complete_upload": 1000,
        "head": 1,
        "put": 1,
        "list_uploads_page": 1,
        "delete_many": 1,
    }


def test_an_abort_with_nothing_there() -> None:
    bucket, recorded = Bucket("magic"), Recorder()
    ctx = bucket.context(store=InterceptedStore(bucket.store, recorded))
    job = bucket.start(ctx)
    recorded.clear()
    MAGIC.abort_job(ctx, job)
    assert counts(recorded) == {"get": 1, "list_uploads_page": 1, "list_page": 1}


def test_sets_that_travelled_are_not_read_again() -> None:
    """A listing decides what counts: a set that was overwritten since is read, the others are not."""
    bucket, recorded = Bucket("magic"), Recorder()
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, [b"x"] * 5) for task in range(20)]
    bucket.run_task(ctx, job, 7, [b"late"])
    outcome = bucket.commit(bucket.context(store=InterceptedStore(bucket.store, recorded)), job, commits)
    assert outcome.report is not None
    assert outcome.report.metrics["requests"] == 1 + 1 + 96 + 1, "a listing, task 7's set, the completions, a look"
    assert recorded.count(StoreOperation.GET) == 1, "that of task 7"
    assert sorted(bucket.visible().values()) == [b"late"] + [b"x"] * 95
    assert len(recorded.calls) <= 1.2 * 96
