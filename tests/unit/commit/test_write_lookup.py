"""Look up a write's outcome by its token: in the log, in ``_SUCCESS``, in the names of files."""

from __future__ import annotations

import json

import pytest

from holdfast.commit import COMMITTERS, CommitContext, SaveMode
from holdfast.commit.records import Totals
from holdfast.commit.writes import WriteJobIdSource, find_job_by_file_names, find_job_by_token, is_job_of_write
from tests.unit.commit.committer_jobs import Bucket

TOKEN = "00000000abcd"


def run(bucket: Bucket, ctx: CommitContext, write_id: str = TOKEN) -> str:
    named = ctx.with_environment(ids=WriteJobIdSource(write_id, ctx.ids))
    job = bucket.value.setup_job(named, SaveMode.APPEND, {"token": write_id})
    assert job is not None
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"12345", b"678"])])
    return job.job


@pytest.mark.parametrize("committer", COMMITTERS)
def test_a_write_is_found_by_its_name(committer: str) -> None:
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = run(bucket, ctx)
    found = find_job_by_token(ctx, TOKEN)
    assert found is not None
    assert (found.job, found.finished) == (job, True)
    assert found.totals == Totals(files=2, size_bytes=8, rows=2)
    assert find_job_by_token(ctx, "00000000ef01") is None


@pytest.mark.parametrize("committer", [name for name in COMMITTERS if name != "two_phase"])
def test_files_are_found_without_a_report(committer: str) -> None:
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = run(bucket, ctx)
    run(bucket, ctx, "00000000ef01")
    ctx.store.delete(ctx.key("_SUCCESS"))
    assert find_job_by_token(ctx, TOKEN) is None
    found = find_job_by_file_names(ctx, TOKEN)
    assert found is not None
    assert (found.job, found.totals) == (job, Totals(files=2, size_bytes=8))
    assert find_job_by_file_names(ctx, "000000001234") is None


@pytest.mark.parametrize("report", [b"", b"{}", b"not json", b'{"name": "org.apache.hadoop.fs.s3a.commit.files.X/1"}'])
def test_a_report_of_somebody_else_says_nothing(report: bytes) -> None:
    ctx = Bucket("magic").context()
    ctx.store.put(ctx.key("_SUCCESS"), report)
    assert find_job_by_token(ctx, TOKEN) is None


def test_only_a_token_becomes_part_of_a_job_id() -> None:
    bucket = Bucket("magic")
    assert is_job_of_write(run(bucket, bucket.context()), TOKEN)
    other = run(bucket, bucket.context(), "nightly load")
    assert not is_job_of_write(other, "nightly load")
    found = find_job_by_token(bucket.context(), "nightly load")
    assert found is not None
    assert found.job == other


@pytest.mark.parametrize("success", [False, None, 1])
def test_a_report_of_a_job_that_failed_is_no_commit(success: object) -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    run(bucket, ctx)
    report = json.loads(bucket.store.get(ctx.key("_SUCCESS")))
    bucket.store.put(ctx.key("_SUCCESS"), json.dumps(report | {"success": success}).encode())
    assert find_job_by_token(ctx, TOKEN) is None
