"""Declare the answers of `direct`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import ANOTHER_ENDS, UNDONE_BY_HAND
from holdfast.guarantees.reasons import EMPTIED, NO_RECORD, UNKNOWN

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": no("both write to the same names"),
    "recoverable-job": no("no record says which tasks had finished"),
    "abortable-task": no("its files may have replaced those of another attempt"),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": yes("files are written to their final place"),
    "committed-output-observable": yes("files are written to their final place"),
    "atomic-task-commit": yes("there is nothing to do"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("it writes into the destination, even after the job's end"),
    "C1": no("a second attempt replaces files, whether it counts or not"),
    "C2": no("an attempt that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts are mixed"),
    "C4": no("files appear while tasks run"),
    "C5": no("a slow task continues to write"),
    "C6": no("a slow attempt writes into the destination"),
    "C7": yes("the names of its files contain the job"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": yes("only the writing itself has an effect", unless=ANOTHER_ENDS),
    "replaced-data": no(EMPTIED),
}
