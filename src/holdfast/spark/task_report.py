"""Define the message with which a task reports to the driver."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from holdfast.commit import JobRecord, TaskCommit
from holdfast.table.contract import TableRecord

PARTITIONS = 1_000_000
"""How many task numbers each use of a function reserves; a use is one DataFrame or RDD made with the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a task: over the rows of one partition, by one Spark task attempt.

    Attributes:
        task: the task's number in the job.
        stage: Spark's id of the stage, which stays the same when Spark runs the stage again.
        spark_task: Spark's id of its task attempt, unique in the application.
        attempt: the unique id of Holdfast's task attempt; empty if the task had nothing to write.
    """

    task: int
    stage: int
    spark_task: int
    attempt: str = ""

    @classmethod
    def of(cls, context: TaskContext, task: int, attempt: str = "") -> Run:
        """Return the run that is executing in this process."""
        return cls(task=task, stage=context.stageId(), spark_task=context.taskAttemptId(), attempt=attempt)

    @property
    def partition(self) -> int:
        """The partition's number in the stage, in a job of `holdfast.job`."""
        return self.task % PARTITIONS


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """The report of a task about what it wrote.

    Attributes:
        run: the execution of the task.
        commit: the data that the attempt passes to the job commit; None if the task had nothing to write.
        job: the job of a stream's batch, the same in all reports of the batch. None if the task had nothing to write;
            also None if the write is not a stream's, because then the driver knows the job.
        written: the columns and layout of the files of a stream's batch; None if `job` is None. Needed because Spark
            builds a new writer for the commit, and by then the table may have changed.
    """

    run: Run
    commit: TaskCommit | None
    job: JobRecord | None = None
    written: TableRecord | None = None
