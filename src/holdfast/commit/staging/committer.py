"""`staging-directory` and `staging-partitioned`: tasks write to their machine and upload when they commit.

What a task has uploaded is named by one record, its pending set, which passes through the algorithm of `file-v1` in a
directory that all machines share; the job commit completes the uploads of the sets that it finds there.

Guarantees, by the names of ARCHITECTURE.md. They hold but for these:

- C1: an attempt that dies, or hangs, while its commit takes the place of an earlier one's has deleted that one's
  pending set; a job that commits now lacks the task's output and does not notice. So it is with `file-v1`.
- C3: of two attempts that commit, the later one counts, whichever the driver accepted; also during the job commit.
- C4, C5: the job commit completes uploads one by one; a driver that dies halfway leaves a part of them visible, and an
  abort does not take it back. `holdfast recover` does, or goes on: see `staging_recovery`.
- C6: two jobs, or an old driver and a new one, may write ``_SUCCESS`` in any order.
- C8: nothing records a decision.
- C9: what is replaced is deleted before its replacement is visible. An upload to a name that does not hold the job,
  whose attempt died before it saved its set, is found by nobody but ``holdfast uploads``; ``unique_filenames`` puts the
  job into every name. Files on the machine of a task that died stay there.

Sources: paper 000, VI.1, VI.2, VIII.B and XIV; paper 001, "The Netflix Staging committer".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit.attempt_names import attempt_name, file_name
from holdfast.commit.committer import MULTIPART, Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.layout import abort_attempt
from holdfast.commit.file_output.v1 import commit_v1_attempt
from holdfast.commit.hadoop.pending import TASK_ATTEMPT_ID, PendingSet, encode_pendingset
from holdfast.commit.ids import FileOwner
from holdfast.commit.job_ends import delete_visible, new_job, report_task, succeeded
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir
from holdfast.commit.pending_sets.completion import Published, abort_all, complete_all, etags_of, succeed_with
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink
from holdfast.commit.staging.cleanup import clean_up
from holdfast.commit.staging.conflicts import delete_partitions, partitions_of, refuse_data, refuse_partitions_with_data
from holdfast.commit.staging.layout import (
    announce_job,
    list_pendingsets,
    load_pendingset,
    pendingset_path,
    require_job,
    scratch_context,
    scratch_dir,
    shared_context,
)
from holdfast.commit.staging.recovery import directory_leftovers, partitioned_leftovers
from holdfast.commit.staging.uploading import upload_files
from holdfast.commit.task import TaskScope, TaskSteps
from holdfast.commit.two_phase.manifests import check_messages
from holdfast.errors import HoldfastError
from holdfast.stores.base import rename

__all__ = ["STAGING_DIRECTORY", "STAGING_PARTITIONED"]

_log = logging.getLogger(__name__)


# --- start ------------------------------------------------------------------------------------------------------------
def _start_directory(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Mode ``fail`` is checked here and again in the job commit (scenario 40); ``overwrite`` deletes only there."""
    return _announced(ctx, new_job(ctx, committer, mode, details))


def _start_partitioned(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Nothing is checked here: other partitions may hold data in any mode."""
    job = new_job(ctx, committer, SaveMode.APPEND, details)
    return _announced(ctx, None if job is None else replace(job, mode=mode))


def _announced(ctx: CommitContext, job: JobRecord | None) -> JobRecord | None:
    if job is not None:
        announce_job(ctx, job)
    return job


# --- tasks ------------------------------------------------------------------------------------------------------------
def _open_file(scope: TaskScope, path: str) -> RenameSink:
    scratch = scratch_context(scope.ctx)
    source = f"{scratch_dir(scope.job.job, scope.owner)}/{path}"
    return RenameSink(rename(scratch.store), scratch.key(source), "", path, background=scope.background)


def _commit_partitioned_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """As `_commit_task`, after a look at the partitions in mode ``fail`` (scenario 43)."""
    if scope.job.mode is not SaveMode.APPEND:
        partitions = partitions_of(file.path for file in files)
        if scope.job.mode is SaveMode.FAIL:
            refuse_partitions_with_data(scope.ctx, partitions)
    return _commit_task(scope, files)


def _commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Upload the attempt's files, save what was uploaded, commit that record as `file-v1` does.

    Guarantee: an attempt without files has nothing to commit. Else the record is that of one attempt at the task, the
    last one to commit (scenario 7). After an error, every upload that was started is aborted (scenarios 12 to 15).

    Raises:
        NotFoundError: the job has ended (scenario 6), or the shared directory is not shared; a staged file is gone.

    Crash: uploads are pending; from the rename of the record on the task is committed.
    Source: paper 000, VI.1 (commitTask); the text has the record saved before it is committed, the listing after.
    """
    measure, owner, job = scope.measure, scope.owner, scope.job
    if files:
        require_job(measure.ctx, job.job)
        with measure.stage("task_stage_upload_files"):
            pendings = upload_files(measure, owner, files)
        try:
            with measure.stage("task_stage_save_manifest"):
                _save_pendingset(
                    measure.ctx,
                    job,
                    owner,
                    PendingSet(
                        job_id=owner.job,
                        commits=tuple(pendings),
                        extra_data={TASK_ATTEMPT_ID: attempt_name(owner)},
                        statistics=measure.statistics(),
                    ),
                )
        except Exception:
            abort_all(measure, pendings)
            raise
        _delete_scratch(measure.ctx, owner)
    return report_task(owner, files)


def _save_pendingset(ctx: CommitContext, job: JobRecord, owner: FileOwner, pendingset: PendingSet) -> None:
    shared = shared_context(ctx, job.job)
    shared.store.put(shared.key(pendingset_path(job, owner)), encode_pendingset(pendingset, etags_of(ctx)))
    commit_v1_attempt(shared, job, owner, written=1)


def _delete_scratch(ctx: CommitContext, owner: FileOwner) -> None:
    """The bytes are up, nobody reads them here any more. Trouble is no reason to fail: they go with the job's."""
    try:
        delete_dir(scratch_context(ctx), scratch_dir(owner.job, owner))
    except HoldfastError as error:
        _log.warning("staged files of a committed attempt could not be deleted yet (%s)", error)


def _abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the attempt's files, if they are on this machine, and its record if it has not committed."""
    delete_dir(scratch_context(ctx), scratch_dir(owner.job, owner))
    abort_attempt(shared_context(ctx, job.job), job, owner)


# --- the driver -------------------------------------------------------------------------------------------------------
def _resolve_directory(measure: Measure, job: JobRecord, names: Sequence[str]) -> None:
    if job.mode is SaveMode.FAIL:
        refuse_data(measure.ctx)
    if job.mode is SaveMode.OVERWRITE:
        delete_visible(measure.ctx)


def _resolve_partitioned(measure: Measure, job: JobRecord, names: Sequence[str]) -> None:
    """Replace the partitions that any of the job's pending sets names: a pass over all sets, before the completions."""
    if job.mode is not SaveMode.OVERWRITE_PARTITIONS:
        return
    ctx = measure.ctx
    partitions = set[str]()
    for found in ctx.runner.map(lambda name: load_pendingset(measure, job.job, name), names):
        partitions |= partitions_of(pending.key.removeprefix(ctx.prefix) for pending in found.commits)
    delete_partitions(ctx, partitions)


def _commit_job(
    measure: Measure,
    job: JobRecord,
    commits: Sequence[TaskCommit | None],
    tasks: int | Collection[int],
    *,
    resolve: Callable[[Measure, JobRecord, Sequence[str]], None],
) -> JobOutcome:
    """Settle conflicts, complete the uploads of every pending set in the shared directory, ``_SUCCESS``, clean up.

    Guarantee: on return every file of the sets is visible. After an error from the conflicts on, the job is aborted:
    files that became visible are deleted again, all other uploads aborted (scenarios 11 and 46), as far as the store
    lets. What was replaced does not come back.

    Raises:
        NotFoundError: the job is not there any more (scenario 8); or an upload is gone.
        DestinationExistsError: mode ``fail``, and data have come since the job started.
        CorruptDataError: a set cannot be read.

    Crash: what is replaced may be gone (C9); some files may be visible and the others wait (C4).
    Source: paper 000, VI.1 (commitJob); sets are loaded as they are completed, not all before (HADOOP-16570).
    """
    ctx = measure.ctx
    check_messages(job, commits, tasks)
    with measure.stage("job_stage_load_manifests"):
        names = list_pendingsets(ctx, job)
        require_job(ctx, job.job)  # after the listing: one of a directory that is gone shows nothing
    try:
        published = _publish(measure, job, names, resolve)
    except Exception:
        failed_in = measure.stage_name
        clean_up(measure, job)
        measure.stage_name = failed_in  # what the report is to say
        raise
    outcome = succeed_with(measure, job, published)
    left = clean_up(measure, job, with_sets=False)
    return replace(outcome, finished=not left, pending_reason=left)


def _publish(
    measure: Measure,
    job: JobRecord,
    names: Sequence[str],
    resolve: Callable[[Measure, JobRecord, Sequence[str]], None],
) -> Published:
    with measure.stage("job_stage_resolve_conflicts"):
        resolve(measure, job, names)
    with measure.stage("job_stage_complete_uploads"):
        return complete_all(measure, names, lambda name: load_pendingset(measure, job.job, name))


def _abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort the uploads of all pending sets, delete them and the staged files; visible files stay.

    A job whose ``_SUCCESS`` is there is committed, whoever asks to abort it: only its clean-up is finished.
    """
    committed = succeeded(measure.ctx, job.job)
    left = clean_up(measure, job)
    return JobOutcome(job=job.job, committed=committed, finished=not left, pending_reason=left)


STAGING_DIRECTORY = Committer(
    name="staging-directory",
    summary="files on the task's machine, uploaded at task commit, completed at job commit; replaces whole directories",
    source="papers 000 (VI.1, VI.2) and 001 (staging committer)",
    needs=(MULTIPART,),
    modes=frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE}),
    start=_start_directory,
    task=TaskSteps(name_file=file_name, open_file=_open_file, commit=_commit_task, abort=_abort_task),
    commit=partial(_commit_job, resolve=_resolve_directory),
    abort=_abort_job,
    leftovers=directory_leftovers,
    staging=True,
)

STAGING_PARTITIONED = Committer(
    name="staging-partitioned",
    summary="as staging-directory, but looks for conflicts in, and replaces, only the partitions that it writes into",
    source="papers 000 (VI.1, VI.2) and 001 (staging committer)",
    needs=(MULTIPART,),
    modes=frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.OVERWRITE_PARTITIONS}),
    start=_start_partitioned,
    task=TaskSteps(name_file=file_name, open_file=_open_file, commit=_commit_partitioned_task, abort=_abort_task),
    commit=partial(_commit_job, resolve=_resolve_partitioned),
    abort=_abort_job,
    leftovers=partitioned_leftovers,
    staging=True,
)
