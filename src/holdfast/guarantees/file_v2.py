"""Declare the answers of `file-v2`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import BOTH_COMMIT, IN_TASK_COMMIT, UNDONE_BY_HAND
from holdfast.guarantees.reasons import EMPTIED, NO_RECORD, UNKNOWN

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("each attempt has its own directory until it commits", unless=BOTH_COMMIT),
    "recoverable-job": yes("the output of committed tasks is in place"),
    "abortable-task": yes("its directory is deleted", unless=IN_TASK_COMMIT),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is in a hidden directory", unless=IN_TASK_COMMIT),
    "committed-output-observable": yes("the task commit renames its files into the destination"),
    "atomic-task-commit": no("it renames one file after the other"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("its task commit renames into the destination, even after the job's end"),
    "C1": no("a cleanup at the same time deletes files that a task commit has not renamed yet, unnoticed"),
    "C2": no("a task commit that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts that commit are mixed"),
    "C4": no("files appear with each task commit"),
    "C5": no("committed output stays, and a slow task may commit afterwards"),
    "C6": no("a slow task commit renames into the destination"),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("a task commit that is run again fails, because its files are already renamed"),
    "replaced-data": no(EMPTIED),
}
