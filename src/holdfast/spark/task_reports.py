"""What tasks of `holdfast.job` report, and which of it counts.

Spark adds an accumulator's update of a task when it accepts the task's result, and only then: failed attempts and those
that lost against a speculative copy add nothing. But it runs a partition again when a second action needs it or when
the output of a stage is lost, and it stops reading a task that has given as many rows as somebody wanted: then nothing
arrives, and the task succeeds. So each run leaves a mark in the store before it begins, and the driver compares (C1,
C3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.commit import CommitContext, JobId, TaskCommit, layout
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import batched_keys, iter_objects

__all__ = ["PARTITIONS", "Run", "RunReport", "accepted_commits", "forget_runs", "mark_run", "marked_runs"]

PARTITIONS = 1_000_000
"""Task numbers of one use of a function; the next use goes on behind them."""

_MARK = re.compile(r"(\d{1,9})-(\d{1,18})-([0-9a-f]{12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a function over the rows of one partition.

    Attributes:
        task: number of the task in the job.
        spark_task: Spark's number of its attempt at the task, unique in the application.
        attempt: of ours: another one in each run.
    """

    task: int
    spark_task: int
    attempt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run that came to its end, and what it wrote."""

    run: Run
    commit: TaskCommit


# --- marks ------------------------------------------------------------------------------------------------------------
def mark_run(ctx: CommitContext, job: JobId, run: Run) -> None:
    """Leave a mark that `run` has begun. Comes before anything else of it."""
    ctx.store.put(ctx.key(f"{layout.started_dir(job)}{run.task}-{run.spark_task}-{run.attempt}"), b"")


def marked_runs(ctx: CommitContext, job: JobId) -> list[Run]:
    """The runs of a job that have begun."""
    prefix = ctx.key(layout.started_dir(job))
    found = (_MARK.fullmatch(info.key[len(prefix) :]) for info in iter_objects(ctx.store, prefix))
    return [Run(task=int(mark[1]), spark_task=int(mark[2]), attempt=mark[3]) for mark in found if mark is not None]


def forget_runs(ctx: CommitContext, job: JobId) -> None:
    """Remove the marks of a job that has ended. Again does nothing."""
    prefix = ctx.key(layout.started_dir(job))
    for batch in batched_keys(info.key for info in iter_objects(ctx.store, prefix)):
        ctx.store.delete_many(batch)


# --- judging ----------------------------------------------------------------------------------------------------------
def accepted_commits(reports: Iterable[RunReport], begun: Iterable[Run]) -> list[TaskCommit]:
    """One commit for every task that has begun: that of the latest run which Spark took in whole.

    Args:
        reports: in order of arrival.
        begun: every run that left a mark.

    Raises:
        InvalidRequestError: a partition was cut short, or a function ran several times in one task. Nothing counts.
    """
    attempts: dict[tuple[int, int], set[str]] = {}
    for run in begun:
        attempts.setdefault((run.task, run.spark_task), set()).add(run.attempt)
    ended: dict[tuple[int, int], list[TaskCommit]] = {}
    for report in reports:
        place = report.run.task, report.run.spark_task
        ended.setdefault(place, []).append(report.commit)
        attempts.setdefault(place, set()).add(report.run.attempt)
    latest: dict[int, TaskCommit] = {}
    for (task, spark_task), commits in ended.items():
        if len(attempts[task, spark_task]) > 1:
            raise InvalidRequestError(
                "a function ran several times in one task of Spark, nothing is committed: coalesce before it, not "
                "behind it",
                partition=task % PARTITIONS,
            )
        latest[task] = commits[-1]
    for task in sorted({task for task, _ in attempts} - latest.keys()):
        raise InvalidRequestError(
            "a partition was cut short, nothing is committed: let the function run by an action that takes all rows, "
            "not by take, limit, head or show",
            partition=task % PARTITIONS,
        )
    return list(latest.values())
