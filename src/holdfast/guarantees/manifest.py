"""Declare the answers of `manifest`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees.answers import Answer, no, yes
from holdfast.guarantees.circumstances import BOTH_COMMIT, COMMIT_BEGUN, PARTITIONED, TWO_DRIVERS
from holdfast.guarantees.reasons import APPEARS, DELETED, ENDED, LAST_WINS, NO_RECORD

ANSWERS: Mapping[str, Answer] = {
    "speculative-tasks": yes(
        "each attempt has its own directory, and one manifest per task remains", unless=BOTH_COMMIT
    ),
    "recoverable-job": no("a new driver starts over; recover handles what the dead one left"),
    "abortable-task": yes("its directory is deleted"),
    "abortable-job": yes("nothing of it is visible before its job commit"),
    "uncommitted-output-observable": no("it is in a hidden directory"),
    "committed-output-observable": no("its files are renamed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a manifest", unless=BOTH_COMMIT),
    "atomic-job-commit": no("it renames one file after the other"),
    "partitioned-executor": yes("its files stay in its directory", unless=PARTITIONED),
    "C1": yes("a task that has reported but has no manifest fails the job", unless=TWO_DRIVERS),
    "C2": yes("a manifest belongs to one attempt"),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its directory is deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt writes stays in its directory", unless=TWO_DRIVERS),
    "C7": yes("the name of its directory contains the job"),
    "C8": no(NO_RECORD),
    "C9": no("files that a failed job commit has renamed stay, and its abort deletes the manifests"),
    "C10": no(ENDED),
    "replaced-data": no(DELETED),
}
