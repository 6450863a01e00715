"""The task's side of `two_phase`: hidden files under names that are never used twice, then one manifest."""

from __future__ import annotations

from holdfast.commit import layout
from holdfast.commit.codec import digest, encode_manifest
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, file_name
from holdfast.commit.records import FileEntry, JobRecord, ManifestRef, TaskCommit, TaskManifest
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope, TaskSteps, inline_record, totals_of
from holdfast.commit.two_phase.publication import PUBLICATIONS

__all__ = ["TWO_PHASE_TASK"]


def _open_file(scope: TaskScope, path: str) -> UploadSink | RenameSink:
    publication = PUBLICATIONS[scope.job.publication]
    return publication.open_file(scope, path)


def _commit(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Write the manifest.

    Guarantee: the returned value pins the manifest's bytes; nothing is visible.
    """
    owner, totals = scope.owner, totals_of(files)
    manifest = TaskManifest(
        job=owner.job,
        task=owner.task,
        attempt=owner.attempt,
        files=files,
        statistics=scope.measure.statistics(),
    )
    data = encode_manifest(manifest)
    key = layout.manifest(owner.job, owner.task, owner.attempt)
    # The name is this attempt's alone: writing it again after a lost reply writes the same bytes.
    scope.ctx.store.put(scope.ctx.key(key), data)
    ref = ManifestRef(key=key, sha256=digest(data), task=owner.task, totals=totals)
    inline = inline_record(scope.ctx, data)
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals, ref=ref, inline=inline)


def _abort(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """The sinks have dropped their files; what a dead process left goes with the job, by the names in it."""


TWO_PHASE_TASK = TaskSteps(name_file=file_name, open_file=_open_file, commit=_commit, abort=_abort)
