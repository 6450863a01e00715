"""After Ctrl-C, the job of the write is ended, whichever committer it uses, and no other job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from holdfast.cli.output import Output
from holdfast.cli.write import end_interrupted_write
from holdfast.commit import COMMITTERS, CommitContext, JobRecord, SaveMode, TaskCommit, recover
from holdfast.commit.layout import iter_visible
from holdfast.commit.writes import WriteJobIdSource
from holdfast.options.write import WriteOptions, parse_write_options

MINE, OTHER = "00000000abcd", "00000000ef01"


@pytest.fixture(params=list(COMMITTERS))
def options(request: pytest.FixtureRequest, tmp_path: Path) -> WriteOptions:
    given = {
        "path": str(tmp_path / "out"),
        "committer": request.param,
        "sharedDir": str(tmp_path / "shared"),
        "scratchDir": str(tmp_path / "scratch"),
        "writeToken": MINE,
    }
    return parse_write_options(given, overwrite=False)


@pytest.fixture
def ctx(options: WriteOptions) -> Iterator[CommitContext]:
    found = options.store.open(options.settings, committer=options.committer)
    yield found
    found.close()


def start(ctx: CommitContext, options: WriteOptions, write_id: str) -> tuple[JobRecord, list[TaskCommit | None]]:
    """Start a job with one committed task."""
    committer = COMMITTERS[options.committer]
    named = ctx.with_environment(ids=WriteJobIdSource(write_id, ctx.ids))
    job = committer.setup_job(named, SaveMode.APPEND, {"token": write_id})
    assert job is not None
    assert job.job.endswith(write_id)
    with committer.setup_task(ctx, job, 0) as attempt:
        attempt.open(attempt.file_name(".csv")).write(write_id.encode())
        return job, [attempt.commit()]


def contents(ctx: CommitContext) -> list[str]:
    return sorted(ctx.store.get(info.key).decode() for _path, info in iter_visible(ctx.store, ctx.prefix))


def test_an_undecided_job_is_aborted(
    ctx: CommitContext, options: WriteOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    job, _ = start(ctx, options, MINE)
    end_interrupted_write(options, Output())
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"the job is aborted and none of its output is visible: job {job.job}"
    assert contents(ctx) == []
    assert recover(ctx).jobs == []


def test_a_job_without_a_committed_task_is_aborted(
    ctx: CommitContext, options: WriteOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    committer = COMMITTERS[options.committer]
    job = committer.setup_job(
        ctx.with_environment(ids=WriteJobIdSource(MINE, ctx.ids)), SaveMode.APPEND, {"token": MINE}
    )
    assert job is not None
    with committer.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(attempt.file_name(".csv"))
        sink.write(b"x" * 9_000_000)
        end_interrupted_write(options, Output())
    assert "none of its output is visible" in capsys.readouterr().err
    assert contents(ctx) == []
    assert recover(ctx).jobs == []


def test_a_committed_job_is_not_changed(
    ctx: CommitContext, options: WriteOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    job, commits = start(ctx, options, MINE)
    assert COMMITTERS[options.committer].commit_job(ctx, job, commits, 1).committed
    end_interrupted_write(options, Output())
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"the job was already committed and its rows are visible: job {job.job}"
    )
    assert contents(ctx) == [MINE]


def test_another_job_on_the_destination_is_not_changed(
    ctx: CommitContext, options: WriteOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    """C7."""
    job, commits = start(ctx, options, OTHER)
    end_interrupted_write(options, Output())
    assert "never started" in capsys.readouterr().err
    assert COMMITTERS[options.committer].commit_job(ctx, job, commits, 1).committed
    assert contents(ctx) == [OTHER]


@pytest.mark.slow
def test_an_unavailable_store_leaves_the_job_to_recovery(capsys: pytest.CaptureFixture[str]) -> None:
    keys = {"accessKey": "a", "secretKey": "b", "region": "us-east-1"}
    given = {"path": "s3://bucket/t", "endpoint": "http://127.0.0.1:9", "writeToken": MINE, **keys}
    end_interrupted_write(parse_write_options(given, overwrite=False), Output())
    assert "holdfast recover s3://bucket/t" in capsys.readouterr().err.splitlines()[-1]
