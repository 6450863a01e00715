"""Declare the rows of the table: those of paper 000, Table V, C1 to C10, and what a crash does to old data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row without its answers; see `Guarantee`."""

    name: str
    title: str
    meaning: str
    wanted: bool = True


ROWS = (
    # --- paper 000, Table V ---
    Row("speculative-tasks", "speculative tasks", "two attempts at one task may run at the same time"),
    Row("recoverable-job", "committed tasks reused", "a new driver reuses the tasks that a dead driver had committed"),
    Row("abortable-task", "abortable task", "after an attempt's abort nothing of it is left"),
    Row("abortable-job", "abortable job", "a job that is abandoned can be undone"),
    Row(
        "uncommitted-output-observable",
        "uncommitted output seen",
        "readers see the output of an attempt before its task commit has finished",
        wanted=False,
    ),
    Row(
        "committed-output-observable",
        "committed output seen",
        "readers see the output of committed tasks before the job commit",
        wanted=False,
    ),
    Row("atomic-task-commit", "atomic task commit", "a task commit that dies halfway has done everything or nothing"),
    Row(
        "atomic-job-commit",
        "atomic job commit",
        "a job commit that dies halfway has done everything or nothing, for every reader",
    ),
    Row("partitioned-executor", "partitioned executors", "an executor that is cut off and keeps running does no harm"),
    # --- the invariants ---
    Row(
        "C1",
        "C1 complete",
        "after a job commit the destination holds every file of every committed task, byte for byte",
    ),
    Row("C2", "C2 exclusive", "and nothing from any other attempt"),
    Row("C3", "C3 one attempt per task", "the attempt whose result the driver received is the one that counts"),
    Row("C4", "C4 hidden", "nothing is visible before the decision; through Holdfast all of it at one instant"),
    Row("C5", "C5 abortable", "after an abort nothing of the job ever appears"),
    Row("C6", "C6 continuity", "after the decision no slow attempt or driver changes the destination"),
    Row("C7", "C7 isolated", "commit, abort and cleanup never touch another job's work"),
    Row("C8", "C8 decided once", "committed or aborted, permanently, no matter who decides"),
    Row(
        "C9",
        "C9 recoverable",
        "kill any process at any store call: recovery ends with everything or nothing, and no upload remains",
    ),
    Row("C10", "C10 repeatable", "every step can be run again"),
    Row(
        "replaced-data",
        "replaced data survive",
        "no matter what dies, data that an overwrite replaces exists until its replacement is complete",
    ),
)
