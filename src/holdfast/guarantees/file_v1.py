"""Declare the answers of `file-v1`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import OR, Answer, no, yes
from holdfast.guarantees.circumstances import (
    ANOTHER_ENDS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DISPLACED,
    PARTITIONED,
    TWO_DRIVERS,
)
from holdfast.guarantees.reasons import APPEARS, EMPTIED, ENDED, LAST_WINS, NO_RECORD

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("each attempt has its own directory, and one per task remains", unless=BOTH_COMMIT),
    "recoverable-job": yes("the next attempt at the job reuses the directories of committed tasks"),
    "abortable-task": yes("its directory is deleted"),
    "abortable-job": yes("nothing of it is visible before its job commit"),
    "uncommitted-output-observable": no("it is in a hidden directory"),
    "committed-output-observable": no("its files are renamed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory", unless=BOTH_COMMIT),
    "atomic-job-commit": no("it renames one file after the other"),
    "partitioned-executor": yes("its files stay in its directory", unless=PARTITIONED),
    "C1": yes("every task has one directory", unless=f"{DISPLACED}{OR}{TWO_DRIVERS}"),
    "C2": yes("a directory belongs to one attempt", unless=DISPLACED),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its directory is deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt writes stays hidden", unless=ANOTHER_ENDS),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C8": no(NO_RECORD),
    "C9": no("each rename loses where a file was and whose it is"),
    "C10": no(ENDED),
    "replaced-data": no(EMPTIED),
}
