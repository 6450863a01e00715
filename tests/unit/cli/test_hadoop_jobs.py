"""`recover`, `uploads` and `verify` at a destination with a job of Hadoop's committers, dead or alive."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.commit import CommitContext, open_context
from holdfast.runtime import SystemIds
from holdfast.stores.base import iter_uploads, multipart
from tests.unit.cli.destinations import run
from tests.unit.commit.hadoop.dead_jobs.dead_jobs import UUID, Destination, HadoopTasks, name

PATHS = [name(0), name(0, 1)]


@pytest.fixture
def ctx() -> Iterator[CommitContext]:
    """A destination where a job of Hadoop has one visible file, one pending file, and a late attempt's upload."""
    bucket = SystemIds().token()
    found = open_context(f"memory://{bucket}/flights")
    tasks = HadoopTasks(Destination(home=found.prefix, bucket=bucket, store=multipart(found.store)))
    tasks.commit_task(0, {path: path.encode() for path in PATHS})
    tasks.write(1, {name(1): b"late"})
    tasks.complete(PATHS[0])
    yield found
    found.store.close()


def pending(ctx: CommitContext) -> int:
    return len(list(iter_uploads(multipart(ctx.store), ctx.prefix)))


def test_recover_describes_the_job_and_exits_1(ctx: CommitContext) -> None:
    result = run("recover", ctx.url, "--older-than", "0s")
    assert result.exit_code == 1
    assert f"job of Hadoop: job {UUID} (hadoop-magic): its job commit had started: 1 of its" in result.stdout
    assert f"holdfast recover {ctx.url} --foreign" in result.stdout
    assert "nothing to do" not in result.stdout and pending(ctx) == 2


@pytest.mark.parametrize(("given", "shown"), [((), "1d"), (("--older-than", "2h"), "2h")])
def test_a_job_that_may_be_running_is_left_alone_for_a_day(
    ctx: CommitContext, given: tuple[str, ...], shown: str
) -> None:
    for foreign in ((), ("--foreign",)):
        result = run("recover", ctx.url, *foreign, *given)
        assert (result.exit_code, pending(ctx)) == (0, 2)
        assert f"left alone: job {UUID}" in result.stdout
        assert f"something was written here in the last {shown}" in result.stdout


def test_recover_aborts_the_job(ctx: CommitContext) -> None:
    arguments = ("recover", ctx.url, "--older-than", "0s", "--foreign")
    assert f"would be aborted: job {UUID} (hadoop-magic)" in run(*arguments, "--dry-run").stdout
    assert pending(ctx) == 2
    result = run(*arguments)
    assert result.exit_code == 0 and f"aborted: job {UUID} (hadoop-magic)" in result.stdout
    assert run("recover", ctx.url).exit_code == 2, "there is nothing at this url"


def test_uploads_are_listed_but_not_aborted(ctx: CommitContext) -> None:
    """Not even with --all-tools: they are the data of a job that may be alive."""
    found = json.loads(run("uploads", "list", ctx.url, "--json").stdout)["uploads"]
    assert [(one["job"], one["committer"], one["state"]) for one in found] == [(UUID, "hadoop-magic", "Hadoop's")] * 2
    result = run("uploads", "abort", ctx.url, "--older-than", "0s", "--all-tools", "--yes")
    assert f"left alone: 2 of Hadoop jobs: run holdfast recover {ctx.url} --foreign" in result.stdout
    assert pending(ctx) == 2


def test_verify_reports_the_job(ctx: CommitContext) -> None:
    result = run("verify", ctx.url)
    assert result.exit_code == 2 and f"Hadoop job {UUID} (hadoop-magic) is unfinished" in result.stderr
    ctx.store.delete(ctx.key(PATHS[0]))
    result = run("verify", ctx.url)
    assert result.exit_code == 0 and f"note: Hadoop job {UUID}" in result.stdout
