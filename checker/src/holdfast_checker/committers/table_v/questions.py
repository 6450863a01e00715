"""Collect the questions of the experiments on paper 000, Table V.

Each question is a property that breaks if the answer is bad. A question whose name starts with the name of a row
belongs to that row; `attributes` says which circumstance the question is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from holdfast_checker.committers.cluster import Attempt
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.job_questions import (
    committed_seen,
    job_commit,
    own_job_commit,
    recovered,
    seen,
    undone,
)
from holdfast_checker.committers.table_v.output_checks import wrong_attempt, wrong_output
from holdfast_checker.committers.table_v.readers import listed
from holdfast_checker.committers.table_v.task_questions import (
    abort_leaves_nothing_pending,
    abort_task,
    cut_off,
    side_by_side,
    task_commit,
    while_one_writes,
)
from holdfast_checker.kernel.world import Property

# --- all of them ------------------------------------------------------------------------------------------------------
_HARMLESS = ("C1", "C2", "C6")

ASKED: Mapping[str, Callable[[Sandbox], Property]] = {
    "speculative-tasks": partial(side_by_side, name="speculative-tasks", wrong=wrong_attempt),
    "speculative-tasks-early": while_one_writes,
    "speculative-tasks-two-commits": partial(side_by_side, name="speculative-tasks-two-commits", wrong=wrong_output),
    "recoverable-job": recovered,
    "abortable-task": partial(abort_task, doing=Attempt.RUNNING, name="abortable-task"),
    "abortable-task-in-commit": partial(abort_task, doing=Attempt.COMMITTING, name="abortable-task-in-commit"),
    "abortable-task-at-once": abort_leaves_nothing_pending,
    "abortable-job": partial(undone, name="abortable-job", by_hand=True),
    "abortable-job-by-itself": partial(undone, name="abortable-job-by-itself", by_hand=False),
    "uncommitted-output-observable": partial(
        seen,
        doing=Attempt.RUNNING,
        name="uncommitted-output-observable",
        meaning="no reader sees what an attempt writes before it is told to commit",
    ),
    "uncommitted-output-observable-in-commit": partial(
        seen,
        doing=Attempt.COMMITTING,
        name="uncommitted-output-observable-in-commit",
        meaning="no reader sees what an attempt writes before its task commit has finished",
    ),
    "committed-output-observable": committed_seen,
    "atomic-task-commit": partial(task_commit, name="atomic-task-commit"),
    "atomic-task-commit-two-commits": partial(task_commit, name="atomic-task-commit-two-commits"),
    "atomic-job-commit": own_job_commit,
    "atomic-job-commit-listed": partial(
        job_commit, read=listed, name="atomic-job-commit-listed", readers="readers that list the destination"
    ),
    "partitioned-executor": partial(cut_off, doing=Attempt.RUNNING, name="partitioned-executor", asked=_HARMLESS),
    "partitioned-executor-in-commit": partial(
        cut_off, doing=Attempt.COMMITTING, name="partitioned-executor-in-commit", asked=_HARMLESS
    ),
    "partitioned-executor-C3": partial(
        cut_off, doing=Attempt.COMMITTING, name="partitioned-executor-C3", asked=("C3",)
    ),
}
"""The functions that create the questions' properties for a world, by name."""
