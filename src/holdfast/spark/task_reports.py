"""What tasks of `holdfast.job` report, and which of it counts.

Spark adds an accumulator's update of a task when it accepts the task's result, and only then: failed attempts and those
that lost against a speculative copy add nothing. But it computes a data set again when a second action needs it, then
perhaps in other partitions, or some of it, when the output of a stage or a cached block is lost; and it stops reading a
task that has given as many rows as somebody wanted: then nothing arrives, and the task succeeds. So each run leaves a
mark in the store before it begins, and the driver compares (C1, C3).

Runs are told apart by the stage that ran them: within a stage partitions are fixed, also where it is run again, and two
stages are two computations, which are never mixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import CommitContext, JobId, TaskCommit, layout
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import batched_keys, iter_objects

__all__ = [
    "PARTITIONS",
    "Run",
    "RunReport",
    "StageTasks",
    "accepted_commits",
    "forget_runs",
    "mark_run",
    "marked_runs",
]

PARTITIONS = 1_000_000
"""Task numbers of one use of a function; the next use goes on behind them."""

_MARK = re.compile(r"(\d{1,9})-(\d{1,9})-(\d{1,18})-([0-9a-f]{12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a function over the rows of one partition.

    Attributes:
        task: number of the task in the job.
        stage: Spark's number of the stage, which it keeps when it runs the stage again.
        spark_task: Spark's number of its attempt at the task, unique in the application.
        attempt: of ours: another one in each run.
    """

    task: int
    stage: int
    spark_task: int
    attempt: str

    @property
    def partition(self) -> int:
        """Number of the partition in the stage."""
        return self.task % PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run that came to its end, and what it wrote."""

    run: Run
    commit: TaskCommit


# --- marks ------------------------------------------------------------------------------------------------------------
def mark_run(ctx: CommitContext, job: JobId, run: Run) -> None:
    """Leave a mark that `run` has begun. Comes before anything else of it."""
    ctx.store.put(ctx.key(f"{layout.started_dir(job)}{run.task}-{run.stage}-{run.spark_task}-{run.attempt}"), b"")


def marked_runs(ctx: CommitContext, job: JobId) -> list[Run]:
    """The runs of a job that have begun."""
    prefix = ctx.key(layout.started_dir(job))
    found = (_MARK.fullmatch(info.key[len(prefix) :]) for info in iter_objects(ctx.store, prefix))
    return [
        Run(task=int(mark[1]), stage=int(mark[2]), spark_task=int(mark[3]), attempt=mark[4])
        for mark in found
        if mark is not None
    ]


def forget_runs(ctx: CommitContext, job: JobId) -> None:
    """Remove the marks of a job that has ended. Again does nothing."""
    prefix = ctx.key(layout.started_dir(job))
    for batch in batched_keys(info.key for info in iter_objects(ctx.store, prefix)):
        ctx.store.delete_many(batch)


# --- judging ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class StageTasks:
    """What Spark tells about a stage.

    Attributes:
        count: its tasks when it was first run.
        complete: whether it came to its end.
    """

    count: int
    complete: bool


@dataclass
class _Stage:
    """What one stage has run of a function over one data set.

    Attributes:
        begun: partitions of which a run has begun.
        commits: the latest accepted run of each partition; repeated ones in a stage give the same rows.
        arrived: for each of these, which report it was.
    """

    begun: set[int] = field(default_factory=set)
    commits: dict[int, TaskCommit] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)


def accepted_commits(
    reports: Sequence[RunReport],
    begun: Iterable[Run],
    tasks_of: Callable[[int], StageTasks | None],
    *,
    held_apart: bool = True,
) -> list[TaskCommit]:
    """For each data set that was made with a function, the commits of one stage that has run all of it.

    Guarantee: runs of two stages are never mixed. A stage counts only if no other has begun a partition that it lacks,
    and if it ran the function in each of its tasks. Where the data set is a part of each stage (a union), these must
    all be complete and have run the same partitions: the first of them had nothing to take from a cache. Of several
    that can count the newest does.

    Args:
        reports: in order of arrival.
        begun: every run that left a mark.
        tasks_of: what Spark tells about a stage by its number, None if it has forgotten.
        held_apart: whether the committer keeps an older run of a task beside a newer one.

    Raises:
        InvalidRequestError: a partition was cut short, a function ran several times in one task, or it cannot be told
            which runs are all of a data set. Nothing counts.
    """
    runs = [*begun, *(report.run for report in reports)]
    _refuse_several_in_a_task(reports, runs)
    uses: dict[int, dict[int, _Stage]] = {}
    for run in runs:
        stage = uses.setdefault(run.task // PARTITIONS, {}).setdefault(run.stage, _Stage())
        stage.begun.add(run.partition)
    for number, report in enumerate(reports):
        stage = uses[report.run.task // PARTITIONS][report.run.stage]
        stage.commits[report.run.partition] = report.commit
        stage.arrived[report.run.partition] = number
    counting: list[TaskCommit] = []
    for _use, stages in sorted(uses.items()):
        chosen = _whole_stage(stages, tasks_of)
        if not held_apart:
            _require_latest(chosen, stages)
        counting += (chosen.commits[partition] for partition in sorted(chosen.commits))
    return counting


def _refuse_several_in_a_task(reports: Iterable[RunReport], runs: Iterable[Run]) -> None:
    attempts: dict[tuple[int, int], set[str]] = {}
    for run in runs:
        attempts.setdefault((run.task, run.spark_task), set()).add(run.attempt)
    for report in reports:
        if len(attempts[report.run.task, report.run.spark_task]) > 1:
            raise InvalidRequestError(
                "a function ran several times in one task of Spark, nothing is committed: coalesce before it, not "
                "behind it",
                partition=report.run.partition,
            )


def _whole_stage(stages: Mapping[int, _Stage], tasks_of: Callable[[int], StageTasks | None]) -> _Stage:
    everything = set[int]().union(*(stage.begun for stage in stages.values()))
    for partition in sorted(everything.difference(*(stage.commits for stage in stages.values()))):
        raise InvalidRequestError(
            "a partition was cut short, nothing is committed: let the function run by an action that takes all rows, "
            "not by take, limit, head or show",
            partition=partition,
        )
    candidates = [number for number, stage in stages.items() if stage.commits.keys() == everything]
    told = {number: tasks_of(number) for number in sorted(candidates, reverse=True)}
    for number, tasks in told.items():
        if tasks is not None and everything == {*range(tasks.count)}:
            return stages[number]
    first = next(iter(told.values()), None)
    alike = len(told) == len(stages) and all(tasks == first for tasks in told.values())
    if alike and first is not None and first.complete and max(everything) < first.count:
        return stages[max(stages)]
    if None in told.values():
        raise InvalidRequestError(
            "Spark has forgotten how many tasks a stage had, nothing is committed: raise spark.ui.retainedStages"
        )
    raise InvalidRequestError(
        "Spark ran a function over some partitions at a time and over others at another, nothing is committed: let one "
        "action take all rows of its data set at once",
        stages=len(stages),
    )


def _require_latest(chosen: _Stage, stages: Mapping[int, _Stage]) -> None:
    """A later run took the place of the earlier one with the same number: it must be the one that counts."""
    for stage in stages.values():
        for partition, number in stage.arrived.items():
            if number > chosen.arrived[partition]:
                raise InvalidRequestError(
                    "another action ran a part of the data set again, nothing is committed: use committer two_phase, "
                    "or let one action take all rows",
                    partition=partition,
                )
