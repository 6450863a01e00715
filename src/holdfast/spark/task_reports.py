"""What tasks of `holdfast.job` report through Spark's accumulator, and which of it counts.

Spark adds an accumulator's update of a task when it accepts the task's result, and only then: failed attempts and those
that lost against a speculative copy add nothing. But it runs a partition again when a second action needs it, or when
the output of a stage is lost; and it stops reading a task that has given as many rows as somebody wanted. So the driver
has to look twice before it takes the reports for the whole (C1, C3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.commit import TaskCommit
from holdfast.errors import InvalidRequestError

__all__ = ["PARTITIONS", "RunReport", "accepted_commits"]

PARTITIONS = 1_000_000
"""Task numbers of one use of a function; the next use goes on behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One report of one run of a function.

    Attributes:
        use: counts how often functions were sent to Spark: one number for every DataFrame or RDD made with one.
        function: its name, for messages.
        spark_task: Spark's number of the task attempt, unique in the application.
        commit: what the attempt wrote; None in the report with which it starts.
    """

    use: int
    function: str
    stage: int
    partition: int
    spark_task: int
    commit: TaskCommit | None = None


def accepted_commits(reports: Iterable[RunReport], tasks_of_stage: Callable[[int], int | None]) -> list[TaskCommit]:
    """One commit for every partition of every use: the latest complete one.

    Args:
        reports: in order of arrival.
        tasks_of_stage: how many tasks a stage had; None if nobody knows any more.

    Raises:
        InvalidRequestError: a partition was cut short, or a function ran several times in one task. Nothing counts.
    """
    runs: dict[tuple[int, int, int], list[RunReport]] = {}
    for report in reports:
        runs.setdefault((report.use, report.partition, report.spark_task), []).append(report)
    latest: dict[tuple[int, int], RunReport] = {}
    for run in runs.values():
        if sum(report.commit is None for report in run) > 1:
            raise InvalidRequestError(
                "a function ran several times in one task of Spark: coalesce before it, not behind it",
                function=run[0].function,
                partition=run[0].partition,
            )
        place = run[-1].use, run[-1].partition
        if run[-1].commit is not None or place not in latest:  # one that was cut short never counts
            latest[place] = run[-1]
    for report in latest.values():
        if report.commit is None:
            raise _cut_short(report.function, report.partition)
    _require_whole_stages([run[-1] for run in runs.values() if run[-1].commit is not None], tasks_of_stage)
    return [report.commit for report in latest.values() if report.commit is not None]


def _require_whole_stages(complete: list[RunReport], tasks_of_stage: Callable[[int], int | None]) -> None:
    """Where Spark itself stopped reading a task nothing arrives of it: then fewer report than the stage had tasks.

    A stage that is not whole does no harm if another run of the same use is, and is as large: it was run again.
    """
    partitions: dict[int, set[int]] = {}
    for report in complete:
        partitions.setdefault(report.stage, set()).add(report.partition)
    wanted = {stage: tasks_of_stage(stage) or 0 for stage in partitions}
    whole: dict[int, int] = {}
    for report in complete:
        if len(partitions[report.stage]) >= wanted[report.stage]:
            whole[report.use] = max(whole.get(report.use, 0), wanted[report.stage])
    for report in complete:
        if wanted[report.stage] > max(len(partitions[report.stage]), whole.get(report.use, 0)):
            missing = min(set(range(wanted[report.stage])) - partitions[report.stage])
            raise _cut_short(report.function, missing)


def _cut_short(function: str, partition: int) -> InvalidRequestError:
    return InvalidRequestError(
        "a partition was cut short, nothing is committed: let the function run by an action that takes all rows "
        "(not take, limit, head, show), as the last step, not united with other data",
        function=function,
        partition=partition,
    )
