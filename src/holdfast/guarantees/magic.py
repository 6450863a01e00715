"""Declare the answers of `magic`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import ALL_UPLOADS, COMMIT_BEGUN, DIES_UPLOADING, PARTITIONED, TWO_DRIVERS
from holdfast.guarantees.reasons import APPEARS, EMPTIED, ENDED, LAST_WINS, NO_RECORD

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("the uploads of an attempt that does not count stay pending"),
    "recoverable-job": no("a new driver starts over; recover handles what the dead one left"),
    "abortable-task": yes("its uploads are aborted", unless=DIES_UPLOADING),
    "abortable-job": yes("nothing of it is visible before its job commit"),
    "uncommitted-output-observable": no("it is a pending upload"),
    "committed-output-observable": no("its uploads are completed by the job commit"),
    "atomic-task-commit": yes("it is one put of a pending set"),
    "atomic-job-commit": no("it completes one upload after the other"),
    "partitioned-executor": yes("its uploads stay pending", unless=PARTITIONED),
    "C1": yes("every task has one pending set, replaced in one step"),
    "C2": yes("a pending set belongs to one attempt"),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt uploads stays pending", unless=TWO_DRIVERS),
    "C7": yes("the names of its directory and uploads contain the job", unless=ALL_UPLOADS),
    "C8": no(NO_RECORD),
    "C9": yes("pending sets, uploads, and files with the job in their names show how far it came", unless=TWO_DRIVERS),
    "C10": no(ENDED),
    "replaced-data": no(EMPTIED),
}
