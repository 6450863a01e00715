"""Declare the answers of `emr`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import BOTH_COMMIT, IN_TASK_COMMIT, UNDONE_BY_HAND
from holdfast.guarantees.reasons import EMPTIED, NO_RECORD, UNKNOWN

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("the uploads of an attempt that does not commit stay pending", unless=BOTH_COMMIT),
    "recoverable-job": yes("the output of committed tasks is in place"),
    "abortable-task": yes("its uploads are aborted", unless=IN_TASK_COMMIT),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is a pending upload", unless=IN_TASK_COMMIT),
    "committed-output-observable": yes("the task commit completes its uploads"),
    "atomic-task-commit": no("it completes one upload after the other"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("its task commit completes uploads, even after the job's end"),
    "C1": yes("every committed file is in place", unless=BOTH_COMMIT),
    "C2": no("a task commit that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts that commit are mixed"),
    "C4": no("files appear with each task commit"),
    "C5": no("a slow task may commit afterwards"),
    "C6": no("a slow task commit completes its uploads"),
    "C7": yes("the names of its files and uploads contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("a task commit that is run again fails, because its uploads are already completed"),
    "replaced-data": no(EMPTIED),
}
