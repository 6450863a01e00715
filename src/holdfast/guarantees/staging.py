"""Declare the answers of `staging-*`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import OR, Answer, no, yes
from holdfast.guarantees.circumstances import (
    ALL_UPLOADS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DISPLACED,
    PARTITIONED,
    STAGED,
    TWO_DRIVERS,
    UNDONE_BY_HAND,
)
from holdfast.guarantees.reasons import APPEARS, DELETED, ENDED, LAST_WINS, NO_RECORD

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes(
        "the files of an attempt that does not count stay on its machine, or its uploads pending",
        unless=BOTH_COMMIT,
    ),
    "recoverable-job": no("a new driver starts over; recover handles what the dead one left"),
    "abortable-task": yes("its files are on its machine, its uploads are aborted"),
    "abortable-job": yes("nothing of it is visible before its job commit", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is on the task's machine"),
    "committed-output-observable": no("its uploads are completed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory, after the uploads", unless=BOTH_COMMIT),
    "atomic-job-commit": no("it completes one upload after the other"),
    "partitioned-executor": yes("its uploads stay pending", unless=PARTITIONED),
    "C1": yes("every task has one pending set", unless=DISPLACED),
    "C2": yes("a pending set belongs to one attempt"),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt uploads stays pending", unless=TWO_DRIVERS),
    "C7": yes("the names of its directories and uploads contain the job", unless=ALL_UPLOADS),
    "C8": no(NO_RECORD),
    "C9": yes("pending sets, uploads and files show how far it came", unless=f"{TWO_DRIVERS}{OR}{STAGED}"),
    "C10": no(ENDED),
    "replaced-data": no(DELETED),
}
