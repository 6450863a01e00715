"""Declare the answers of `two_phase`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import DIES_UPLOADING, OTHER_READERS

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes("each attempt has its own file names, and the commit messages say which attempt counts"),
    "recoverable-job": no("an undecided job is aborted and run again; a decided one can be finished by any process"),
    "abortable-task": yes("its output is hidden, under its own names", unless=DIES_UPLOADING),
    "abortable-job": yes("nothing of it is visible before its decision"),
    "uncommitted-output-observable": no("it is a pending upload, or in a hidden directory"),
    "committed-output-observable": no("it stays hidden until the decision"),
    "atomic-task-commit": yes("it is one put of a manifest"),
    "atomic-job-commit": yes("it is one put of a decision, or one transaction with all files", unless=OTHER_READERS),
    "partitioned-executor": yes("the decision names none of its files"),
    "C1": yes("the messages name and pin the manifests, and every file is confirmed"),
    "C2": yes("only manifests that the messages name are published"),
    "C3": yes("its message names its manifest and pins its bytes"),
    "C4": yes(
        "one record switches readers over; other tools see one file after the other once it exists, or all of them at "
        "the same instant on a store with transactions"
    ),
    "C5": yes("the abort is in the log, which every driver reads first"),
    "C6": yes("names are used once, and the log fences a slow driver"),
    "C7": yes("cleanup goes by the job in each name and by the job's record"),
    "C8": yes("one log, written by put-if-absent"),
    "C9": yes("the log says what was decided, and everything else is repeatable"),
    "C10": yes("names are used once, and each step finds out what is already done"),
    "replaced-data": yes("it is deleted after the new files are complete"),
}
