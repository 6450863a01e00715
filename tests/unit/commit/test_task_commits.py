"""Check that every committer refuses wrong messages of tasks before it makes anything visible (C1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from holdfast.commit import COMMITTERS, TaskCommit
from holdfast.commit.ids import JobId
from holdfast.commit.success_file import read_success_file
from holdfast.errors import InvalidRequestError
from tests.unit.commit.committer_jobs import Bucket

OTHER = JobId("20270115080000000-00000000000f")

Pick = Callable[[Sequence[TaskCommit]], Sequence[TaskCommit | None]]
WRONG: dict[str, Pick] = {
    "missing": lambda found: found[:1],
    "none": lambda found: [found[0], None],
    "twice": lambda found: [found[0], found[0]],
    "no messages": lambda _found: [],
    "one too many": lambda found: [*found, found[0]],
    "another job's": lambda found: [found[0], replace(found[1], job=OTHER)],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("committer", COMMITTERS)
def test_each_task_reports_exactly_once(committer: str, wrong: str) -> None:
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
    before = bucket.visible()
    with pytest.raises(InvalidRequestError):
        bucket.value.commit_job(ctx, job, WRONG[wrong](commits), 2)
    assert bucket.visible() == before, "only file-v2 shows files of tasks before the job commit"
    assert read_success_file(ctx) is None
    assert bucket.commit(ctx, job, commits).committed, "the right messages are still accepted"
    assert sorted(bucket.visible().values()) == bucket.expected("new")
