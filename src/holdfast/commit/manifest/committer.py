"""Define `manifest`: tasks list the files to rename, and the job commit renames all of them in parallel.

Stores without atomic rename, such as S3, are refused, whatever the settings are (scenario 63).
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.commit.committer import CONSISTENT_LISTING, RENAME, Committer
from holdfast.commit.manifest.job import abort_job, commit_job, setup_job
from holdfast.commit.manifest.recovery import find_leftovers
from holdfast.commit.manifest.task import abort_task, commit_task, open_file
from holdfast.commit.save_mode import SaveMode
from holdfast.guarantees import (
    APPEARS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DELETED,
    ENDED,
    LAST_WINS,
    NO_RECORD,
    NOT_YET_VISIBLE,
    PARTITIONED,
    STARTS_OVER,
    TWO_DRIVERS,
    Answer,
    no,
    yes,
)

_GUARANTEES: Mapping[str, Answer] = {
    "speculative-tasks": yes(
        "each attempt has its own directory, and one manifest per task remains", unless=BOTH_COMMIT
    ),
    "recoverable-job": no(STARTS_OVER),
    "abortable-task": yes("its directory is deleted"),
    "abortable-job": yes(NOT_YET_VISIBLE),
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

MANIFEST = Committer(
    name="manifest",
    summary="one manifest per task lists the files to rename, the job commit renames them all",
    source="paper 002",
    needs=(RENAME, CONSISTENT_LISTING),
    modes=frozenset(SaveMode),
    guarantees=_GUARANTEES,
    setup=setup_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_file,
    commit_task=commit_task,
    abort_task=abort_task,
    find_leftovers=find_leftovers,
)
