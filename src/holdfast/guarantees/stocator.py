"""Declare the answers of `stocator`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import STILL_WRITING, TWO_DRIVERS
from holdfast.guarantees.reasons import EMPTIED, NO_RECORD, UNKNOWN

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("names contain the attempt", unless=STILL_WRITING),
    "recoverable-job": no("no record says which tasks had finished"),
    "abortable-task": yes("its files are found by their names"),
    "abortable-job": yes("its files are deleted by their names"),
    "uncommitted-output-observable": yes("files are written to their final place"),
    "committed-output-observable": yes("files are written to their final place"),
    "atomic-task-commit": yes("there is nothing to do"),
    "atomic-job-commit": yes("it is one put of _SUCCESS, which names the files"),
    "partitioned-executor": no("it writes into the destination, even after the job's end"),
    "C1": yes("names contain the attempt, so none is replaced", unless=TWO_DRIVERS),
    "C2": yes("the job commit deletes the files of other attempts", unless=STILL_WRITING),
    "C3": yes("the messages say which attempts' files go into _SUCCESS"),
    "C4": no("files appear while tasks run"),
    "C5": no("a slow task continues to write"),
    "C6": no("a slow attempt writes into the destination"),
    "C7": yes("the names of its files contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("its commit, run again, deletes files that late attempts have added"),
    "replaced-data": no(EMPTIED),
}
