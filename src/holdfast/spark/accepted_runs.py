"""Choose which runs of a user's function in `holdfast.job` count.

A *run* is one call of the function for one partition, by one Spark task attempt; the files of a run that does not count
never become visible.

Tasks report through a Spark accumulator. Spark applies a task's update when it accepts the task's result, and only
then: failed attempts, and those that lost against a speculative copy, add nothing. But Spark computes a data set again
if a second action needs it, perhaps with different partitions, and it computes a part of a data set again if a stage's
output or a cached block is lost. And Spark stops reading from a task that has produced enough rows for the action: such
a task reports nothing, but still succeeds. So each run leaves a mark in the store before it starts, and the driver
compares marks with reports (C1, C3).

Runs are distinguished by their stage: within a stage, partitions are fixed, even if the stage is run again. Two stages
are two computations, whose runs are never mixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import CommitContext, JobId, TaskCommit, layout
from holdfast.errors import InvalidRequestError
from holdfast.spark.task_report import PARTITIONS, Run, TaskReport
from holdfast.stores.base import Create, Put, batched_keys, iter_objects, transactional

_MARK = re.compile(r"(\d{1,9})-(\d{1,9})-(\d{1,18})-([0-9a-f]{12})")


# --- marks ------------------------------------------------------------------------------------------------------------
def mark_run(ctx: CommitContext, job: JobId, run: Run) -> None:
    """Record that `run` has started. Call this before the run writes anything else.

    Guarantee: on a store with transactions, the mark is durable: nothing else tells of a run that reports nothing.
    """
    key = ctx.key(f"{layout.started_dir(job)}{run.task}-{run.stage}-{run.spark_task}-{run.attempt}")
    if ctx.store.capabilities.transactions:
        transactional(ctx.store).apply([Put(key, b"", Create())])
    else:
        ctx.store.put(key, b"")


def marked_runs(ctx: CommitContext, job: JobId) -> list[Run]:
    """List the runs of a job that have started."""
    prefix = ctx.key(layout.started_dir(job))
    found = (_MARK.fullmatch(info.key[len(prefix) :]) for info in iter_objects(ctx.store, prefix))
    return [
        Run(task=int(mark[1]), stage=int(mark[2]), spark_task=int(mark[3]), attempt=mark[4])
        for mark in found
        if mark is not None
    ]


def forget_runs(ctx: CommitContext, job: JobId) -> None:
    """Delete the marks of a job that has ended. Idempotent."""
    prefix = ctx.key(layout.started_dir(job))
    for batch in batched_keys(info.key for info in iter_objects(ctx.store, prefix)):
        ctx.store.delete_many(batch)


# --- choosing ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class StageTasks:
    """What Spark knows about a stage.

    Attributes:
        count: number of tasks when the stage first ran.
        complete: whether the stage completed.
    """

    count: int
    complete: bool


@dataclass
class _Stage:
    """The runs of a function over one data set in one stage.

    Attributes:
        started: the partitions for which a run has started.
        commits: the commit of each partition's latest accepted run; repeated runs in a stage give the same rows.
        arrived: maps each partition in `commits` to the position of its report, in order of arrival.
    """

    started: set[int] = field(default_factory=set)
    commits: dict[int, TaskCommit] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)


def accepted_commits(
    reports: Sequence[TaskReport],
    started: Iterable[Run],
    tasks_of: Callable[[int], StageTasks | None],
    *,
    pins_attempts: bool = True,
) -> list[TaskCommit]:
    """Choose the task commits that count: for each data set that the function processed, those of one complete stage.

    Guarantee: runs of two stages are never mixed. A stage counts only if no other stage has started a partition that it
    lacks, and if it ran the function in each of its tasks. If the data set is only a part of each stage that ran it (as
    in a union), all these stages must be complete and have run the same partitions, so that none of them took rows from
    a cache. If several stages could count, the newest one does.

    Args:
        reports: the tasks' reports, in order of arrival.
        started: every run that left a mark.
        tasks_of: takes a stage's id and returns what Spark knows about it; None if Spark has forgotten the stage.
        pins_attempts: see `Committer`.

    Raises:
        InvalidRequestError: a partition was read only in part, a function ran several times in one task, or it is
            unclear which runs make up a data set. In all of these cases, nothing counts.
    """
    runs = [*started, *(report.run for report in reports)]
    _refuse_several_in_a_task(reports, runs)
    uses: dict[int, dict[int, _Stage]] = {}
    for run in runs:
        stage = uses.setdefault(run.task // PARTITIONS, {}).setdefault(run.stage, _Stage())
        stage.started.add(run.partition)
    for number, report in enumerate(reports):
        assert report.commit is not None, "a run of a function always reports a commit"
        stage = uses[report.run.task // PARTITIONS][report.run.stage]
        stage.commits[report.run.partition] = report.commit
        stage.arrived[report.run.partition] = number
    counting: list[TaskCommit] = []
    for _use, stages in sorted(uses.items()):
        chosen = _whole_stage(stages, tasks_of)
        if not pins_attempts:
            _require_latest(chosen, stages)
        counting += (chosen.commits[partition] for partition in sorted(chosen.commits))
    return counting


def _refuse_several_in_a_task(reports: Iterable[TaskReport], runs: Iterable[Run]) -> None:
    attempts: dict[tuple[int, int], set[str]] = {}
    for run in runs:
        attempts.setdefault((run.task, run.spark_task), set()).add(run.attempt)
    for report in reports:
        if len(attempts[report.run.task, report.run.spark_task]) > 1:
            raise InvalidRequestError(
                "a function ran several times in one Spark task, nothing is committed: coalesce before the function, "
                "not after it",
                partition=report.run.partition,
            )


def _whole_stage(stages: Mapping[int, _Stage], tasks_of: Callable[[int], StageTasks | None]) -> _Stage:
    everything = set[int]().union(*(stage.started for stage in stages.values()))
    for partition in sorted(everything.difference(*(stage.commits for stage in stages.values()))):
        raise InvalidRequestError(
            "a partition was read only in part, nothing is committed: run the function by an action that takes all "
            "rows, not by take, limit, head or show",
            partition=partition,
        )
    candidates = [number for number, stage in stages.items() if stage.commits.keys() == everything]
    known = {number: tasks_of(number) for number in sorted(candidates, reverse=True)}
    for number, tasks in known.items():
        if tasks is not None and everything == {*range(tasks.count)}:
            return stages[number]
    first = next(iter(known.values()), None)
    alike = len(known) == len(stages) and all(tasks == first for tasks in known.values())
    if alike and first is not None and first.complete and max(everything) < first.count:
        return stages[max(stages)]
    if None in known.values():
        raise InvalidRequestError(
            "Spark has forgotten how many tasks a stage had, nothing is committed: raise spark.ui.retainedStages"
        )
    raise InvalidRequestError(
        "Spark ran a function over some partitions in one stage and over others in another, nothing is committed: let "
        "one action take all rows of the data set at once",
        stages=len(stages),
    )


def _require_latest(chosen: _Stage, stages: Mapping[int, _Stage]) -> None:
    """Check that no later run with the same task number has replaced the output of a run that counts."""
    for stage in stages.values():
        for partition, number in stage.arrived.items():
            if number > chosen.arrived[partition]:
                raise InvalidRequestError(
                    "another action ran a part of the data set again, nothing is committed: use committer two_phase, "
                    "or let one action take all rows",
                    partition=partition,
                )
