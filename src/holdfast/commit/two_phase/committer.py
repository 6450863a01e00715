"""Define the `two_phase` committer: one entry in the decision log commits a job, then its files become visible.

Tasks write hidden files under names that are never used twice, and each task writes one manifest at the end. The
driver's log entry decides the job (C8). Any process can roll the decision forward, at any time (C10).

Source: paper 000, VIII.A for the properties that must hold, XI and XIII for how tasks pass their file lists to the
driver; the decision log, helping and fencing are Holdfast's own (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import guarantees
from holdfast.commit import layout
from holdfast.commit.codec import sha256_hex
from holdfast.commit.committer import CONDITIONAL_WRITES, HIDDEN_WRITES, Committer, leave_attempt_to_cleanup
from holdfast.commit.ids import file_name
from holdfast.commit.records import FileEntry, ManifestRef, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import AttemptContext, compress_record, count_totals
from holdfast.commit.two_phase.job import abort_job, commit_job, setup_job
from holdfast.commit.two_phase.publication import find_job_publication
from holdfast.commit.two_phase.records import TaskManifest, encode_manifest
from holdfast.guarantees import GuaranteeAnswer, no, yes


def open_file(scope: AttemptContext, path: str) -> UploadSink | RenameSink:
    """Open a new hidden file of the attempt in `scope`; the job commit makes it visible at `path`."""
    return find_job_publication(scope.job).open_file(scope, path)


def commit_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit a task attempt: write its manifest, the list of its files, and return its report.

    Guarantee: the returned report contains the digest of the manifest's bytes; nothing becomes visible.
    """
    owner, totals = scope.owner, count_totals(files)
    data = encode_manifest(
        TaskManifest(
            job=owner.job,
            task=owner.task,
            attempt=owner.attempt,
            files=files,
            statistics=scope.measure.statistics(),
        )
    )
    key = layout.manifest_path(owner.job, owner.task, owner.attempt)
    # No other attempt uses this name, so a retry after a lost reply writes the same bytes.
    scope.ctx.store.put(scope.ctx.key(key), data)
    ref = ManifestRef(key=key, sha256=sha256_hex(data), task=owner.task, totals=totals)
    inline = compress_record(scope.ctx, data)
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals, ref=ref, inline=inline)


_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    "speculative-tasks": yes("each attempt has its own file names, and the commit messages say which attempt counts"),
    "recoverable-job": no("an undecided job is aborted and run again; a decided one can be finished by any process"),
    "abortable-task": yes("its output is hidden, under its own names", unless=guarantees.DIES_UPLOADING),
    "abortable-job": yes("nothing of it is visible before its decision"),
    "uncommitted-output-observable": no("it is a pending upload, or in a hidden directory"),
    "committed-output-observable": no("it stays hidden until the decision"),
    "atomic-task-commit": yes("it is one put of a manifest"),
    "atomic-job-commit": yes(
        "it is one put of a decision, or one transaction with all files", unless=guarantees.OTHER_READERS
    ),
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

TWO_PHASE = Committer(
    name="two_phase",
    summary="hidden files, one decision record, then all of them visible",
    source="ours; papers 000 (VI, VIII, XI, XIII) and 002",
    needs=(HIDDEN_WRITES, CONDITIONAL_WRITES),
    modes=frozenset(SaveMode),
    guarantees=_GUARANTEES,
    keeps_log=True,
    setup=setup_job,
    commit=commit_job,
    abort=abort_job,
    name_file=file_name,
    open_file=open_file,
    commit_task=commit_task,
    abort_task=leave_attempt_to_cleanup,
)
