"""Implement `staging-directory` and `staging-partitioned`: tasks write to local disks and upload at task commit.

One record, the pending set, names the uploads of a task. The task commits this record with the algorithm of `file-v1`,
in a directory that all machines share. The job commit completes the uploads of the sets in that directory.

The guarantees of ARCHITECTURE.md hold, except for these:

- C1: if an attempt dies or hangs while its commit replaces an earlier attempt's pending set, the earlier set is already
  deleted. If the job commits then, the task's output is missing, and nothing reports this. `file-v1` has the same flaw.
- C3: if two attempts of one task both commit, the later commit counts, no matter which attempt the driver accepted, and
  even if it happens during the job commit.
- C4, C5: the job commit completes uploads one by one. A driver that dies halfway leaves some files visible, and an
  abort does not delete them. `holdfast recover` deletes them or completes the job; see `staging.recovery`.
- C6: two jobs, or an old driver and a new one, may write ``_SUCCESS`` in any order.
- C8: no decision is logged.
- C9: replaced data is deleted before its replacement is visible. If an attempt dies before it saves its pending set,
  only ``holdfast uploads`` finds the attempt's uploads whose file names lack the job's id. Scratch files of a dead task
  stay on its machine.

Sources: paper 000, VI.1, VI.2, VIII.B and XIV; paper 001, "The Netflix Staging committer".
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast import guarantees
from holdfast.commit.committer import HADOOP_MODES, MULTIPART, Committer, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import start_job
from holdfast.commit.hadoop.completion import (
    PublishedFiles,
    abort_all_uploads,
    abort_pendingsets,
    abort_selected_uploads,
    build_pending_record,
    complete_all_uploads,
    report_completion,
)
from holdfast.commit.hadoop.file_output.committers import rename_attempt_to_task_dir
from holdfast.commit.hadoop.file_output.directories import abort_attempt
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.pending import PendingSet, SinglePending, encode_pendingset
from holdfast.commit.hadoop.pending_recovery import JobUploadState, JobWithPendingSets, inspect_jobs, make_leftover
from holdfast.commit.hadoop.staging.conflicts import DIRECTORY_CONFLICTS, PARTITION_CONFLICTS, ConflictPolicy
from holdfast.commit.hadoop.staging.layout import (
    announce_job,
    job_destination,
    list_pendingsets,
    list_saved_pendingsets,
    list_staged_jobs,
    load_pendingset,
    pendingset_path,
    require_job_record,
    scratch_context,
    scratch_dir,
    staged_job_context,
    staging_context,
)
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import FileOwner, JobId, job_in_file_name, make_hadoop_attempt_id
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.success_file import clean_up_after_job, has_job_succeeded
from holdfast.commit.task import AttemptContext, discard_sink, make_totals_commit, open_upload
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError
from holdfast.guarantees import GuaranteeAnswer, no, yes
from holdfast.stores.base import as_renaming, iter_objects

_log = logging.getLogger(__name__)


def _delete_scratch(ctx: CommitContext, owner: FileOwner) -> None:
    """Delete an attempt's scratch files after the upload. Only log errors: the job's clean-up deletes the rest."""
    try:
        delete_dir(scratch_context(ctx), scratch_dir(owner.job, owner))
    except HoldfastError as error:
        _log.warning(
            "staged files of a committed attempt could not be deleted and are left for the job's clean-up (%s)", error
        )


def setup_job(
    conflicts: ConflictPolicy, ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Check the destination (its existing data only if `conflicts.at_setup`), and write the record of a new job."""
    # If a mode is checked later, in tasks, it must not refuse or skip the destination now.
    later = mode in (SaveMode.FAIL, SaveMode.IGNORE) and not conflicts.at_setup
    job = start_job(ctx, committer, SaveMode.APPEND if later else mode, details)
    if job is None:
        return None
    job = replace(job, mode=mode)
    announce_job(ctx, job)
    return job


def commit_job(conflicts: ConflictPolicy, measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit a job: resolve conflicts, complete the uploads of every pending set, write ``_SUCCESS``, then clean up.

    The pending sets in the shared directory count, not the tasks' reports.

    Guarantee: on return every file of the sets is visible. If an error occurs after conflict resolution has
    started, the job is aborted, as far as possible: files that became visible are deleted and all other uploads are
    aborted. Replaced data is not restored.

    Raises:
        NotFoundError: the job has ended, or an upload does not exist.
        DestinationExistsError: the mode is ``fail``, and data was added after the job had started.
        CorruptDataError: a set cannot be parsed.

    Crash: replaced data may be deleted (C9); some files may be visible and the others pending (C4).
    Source: paper 000, VI.1 (commitJob); each set is loaded when its uploads are completed (HADOOP-16570).
    """
    reports.check(job)
    with measure.stage("job_stage_load_manifests"):
        names = list_pendingsets(measure.ctx, job)
        require_job_record(measure.ctx, job.job)  # after the listing: a deleted directory would look empty
    try:
        published = _publish_files(conflicts, measure, job, names)
    except Exception:
        clean_up_after_job(
            measure, JobOutcome(job=job.job, committed=False), partial(clean_up_staging_job, measure, job)
        )
        raise
    outcome = report_completion(measure, job, published)
    return clean_up_after_job(measure, outcome, partial(clean_up_staging_job, measure, job, with_sets=False))


def _publish_files(conflicts: ConflictPolicy, measure: Measure, job: JobRecord, names: Sequence[str]) -> PublishedFiles:
    def load_set(name: str) -> PendingSet:
        return load_pendingset(measure, job.job, name)

    with measure.stage("job_stage_resolve_conflicts"):
        conflicts.resolve(measure, job, names, load_set)
    with measure.stage("job_stage_complete_uploads"):
        return complete_all_uploads(measure, names, load_set)


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort a job: abort the uploads of its pending sets, then delete sets and scratch files. Visible files stay.

    If ``_SUCCESS`` names the job, it is committed; then this only finishes its clean-up.
    """
    outcome = JobOutcome(job=job.job, committed=has_job_succeeded(measure.ctx, job.job))
    return clean_up_after_job(measure, outcome, partial(clean_up_staging_job, measure, job))


def open_file(scope: AttemptContext, path: str) -> RenameSink:
    """Open a new file of the attempt in this machine's scratch directory; the task commit uploads it to `path`."""
    scratch = scratch_context(scope.ctx)
    source = f"{scratch_dir(scope.job.job, scope.owner)}/{path}"
    return RenameSink(as_renaming(scratch.store), scratch.key(source), "", path, background=scope.background)


def commit_task(conflicts: ConflictPolicy, scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit a task attempt: upload its files, then save and commit its pending set with the algorithm of `file-v1`.

    Guarantee: the task's pending set is the set of the last attempt to commit. An attempt without
    files has nothing to commit. After an error, every upload that was started is aborted.

    Raises:
        NotFoundError: the job has ended, the shared directory is not really shared, or a staged file
            does not exist.

    Crash: uploads are pending. The task is committed once its pending set is renamed.
    Source: paper 000, VI.1 (commitTask). In the paper's text the record is saved before the commit, as here; in its
    program listing, after the commit.
    """
    owner, job = scope.owner, scope.job
    conflicts.check_task(scope.ctx, job, files)
    if files:
        upload_and_save_pendingset(
            scope, files, lambda shared: rename_attempt_to_task_dir(shared, job, owner, written=1)
        )
        _delete_scratch(scope.ctx, owner)
    return make_totals_commit(owner, files)


def upload_and_save_pendingset(
    scope: AttemptContext, files: tuple[FileEntry, ...], then: Callable[[CommitContext], object] = lambda shared: None
) -> None:
    """Upload the attempt's files, and save the pending set in the attempt's directory.

    Args:
        then: called with the context of the job's part of the shared directory, once the set is saved.

    Raises:
        HoldfastError: something failed, and every upload that was started is aborted, as far as possible.
    """
    measure, owner = scope.measure, scope.owner
    require_job_record(measure.ctx, owner.job)
    with measure.stage("task_stage_upload_files"):
        pendings = upload_files(scope, files)
    try:
        with measure.stage("task_stage_save_manifest"):
            data = encode_pendingset(
                PendingSet(
                    job_id=owner.job,
                    commits=tuple(pendings),
                    attempt=make_hadoop_attempt_id(owner),
                    statistics=measure.statistics(),
                )
            )
            shared = staged_job_context(measure.ctx, owner.job)
            shared.store.put(shared.key(pendingset_path(scope.job, owner)), data)
            then(shared)
    except Exception:
        abort_all_uploads(measure, pendings)
        raise


def upload_files(scope: AttemptContext, files: Sequence[FileEntry]) -> list[SinglePending]:
    """Upload an attempt's staged files as pending uploads to their final names, in parallel and in parts.

    Guarantee: either all files are uploaded, or every upload that was started is aborted, as far as possible, and the
    first error is raised, even if the abort fails too.
    Memory: as for any attempt, see ``part_buffer_bytes``.

    Raises:
        NotFoundError: a file does not exist on this machine.
        CorruptDataError: a file has become shorter.
        InvalidRequestError: a file has too many parts.

    Crash: uploads are pending that no record names. If their file names contain the job id, they are aborted with the
    job.
    Source: paper 000, VI.1 (``uploadFileToPendingCommit``) and XIV.B.3 (HADOOP-15961: progress during the upload).
    """
    ctx, sinks = scope.ctx, list[UploadSink]()
    try:
        for done, file in enumerate(files, start=1):
            sinks.append(open_upload(scope, file.path))
            for data in _read_staged_file(scope, file):
                sinks[-1].write(data)
            sinks[-1].close()
            ctx.progress("upload", done, len(files))
        scope.background.drain()
    except Exception:
        with contextlib.suppress(Exception):  # it is the error that is raised below
            scope.background.drain()  # a part in flight would not find its upload
        for sink in sinks:
            discard_sink(sink)
        raise
    entries = [sink.entry(file.rows) for sink, file in zip(sinks, files, strict=True)]
    return [build_pending_record(ctx, one, scope.owner, uri=encode_uri(ctx.url, one.path)) for one in entries]


def _read_staged_file(scope: AttemptContext, file: FileEntry) -> Iterator[bytes]:
    scratch = scratch_context(scope.ctx)
    key = scratch.key(f"{scratch_dir(scope.owner.job, scope.owner)}/{file.path}")
    step = scope.ctx.settings.part_size_bytes
    for start in range(0, file.size_bytes, step):
        size = min(step, file.size_bytes - start)
        data = scratch.store.get(key, start, size)
        if len(data) != size:
            raise CorruptDataError(
                "a staged file has become shorter, so another process changed it: run the task again", key=key
            )
        yield data


def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Abort a task attempt: delete its scratch files on this machine, and its pending set unless it has committed."""
    delete_dir(scratch_context(ctx), scratch_dir(owner.job, owner))
    abort_attempt(staged_job_context(ctx, job.job), job, owner)


def clean_up_staging_job(measure: Measure, job: JobRecord, *, with_sets: bool = True) -> None:
    """Abort the job's pending uploads, then delete its records and its scratch files. Idempotent (C10).

    The job's uploads are the uploads that its pending sets name, and those whose file names contain its id. Scratch
    files on other machines are not deleted, neither here nor in the paper's clean-up.

    Args:
        with_sets: whether to abort even the uploads that tasks have committed; False after a job commit, which has
            completed all of them.

    Crash: some uploads are aborted, or some records deleted; run it again. The job's own record is deleted last.
    """
    ctx = measure.ctx
    if with_sets:
        abort_pendingsets(measure, list_pendingsets(ctx, job), lambda name: load_pendingset(measure, job.job, name))
    # No pending set names the uploads of attempts that died, or failed without aborting them.
    abort_selected_uploads(
        measure, lambda pending: {upload for upload in pending if job.job in upload[0].rpartition("/")[2]}
    )
    delete_dir(scratch_context(ctx), scratch_dir(job.job))
    delete_dir(staging_context(ctx), job.job)


def knows_job(ctx: CommitContext, job: JobId, folders: Sequence[str]) -> bool:
    """Check whether the shared directory contains data of the job; ignore `folders`."""
    if ctx.staging is None:
        return False
    shared = staged_job_context(ctx, job)
    return next(iter_objects(shared.store, shared.prefix, page_size=2), None) is not None


def list_staging_leftovers(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """List the jobs of `committer` in the shared directory, including live jobs, and data written after a job's end."""
    for job, active_at_s, record in list_staged_jobs(ctx):
        if record is None:
            uploads = _count_recorded_uploads(ctx, job)
            if uploads is not None:
                yield Leftover(
                    committer=committer,
                    job=job,
                    active_at_s=active_at_s,
                    action=RecoveryAction.CLEAN,
                    reason="the job is over, but attempts continued to write",
                    recover=partial(_clean_up_ended_job, ctx, job, committer),
                    uploads=uploads,
                )
            continue
        destination = job_destination(ctx, record)
        if destination is None or record.committer != committer:
            continue
        one = JobWithPendingSets(
            committer=committer,
            job=job,
            mode=record.mode,
            active_at_s=active_at_s,
            sets=partial(list_pendingsets, destination, record),
            load=partial(_load_pending_uploads, Measure(destination), job),
            ids_of=lambda path: (job_in_file_name(path),),
            clean_up=partial(_clean_up_dead_job, record),
        )
        (state,) = inspect_jobs(destination, [one])
        found = make_leftover(destination, one, state)
        replaces = record.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
        if replaces and found.action is RecoveryAction.BACK:
            # Paper 001: no record says how much was deleted before the first completion.
            found = replace(found, reason=f"{found.reason}; the data that it replaces may already be deleted")
        yield found


def _clean_up_dead_job(job: JobRecord, measure: Measure, found: JobUploadState) -> None:
    clean_up_staging_job(measure, job)


def _load_pending_uploads(measure: Measure, job: JobId, path: str) -> Sequence[SinglePending]:
    return load_pendingset(measure, job, path).commits


def _count_recorded_uploads(ctx: CommitContext, job: JobId) -> int | None:
    """Return the number of uploads that the job's pending sets name; None if no set is for this destination."""
    measure = Measure(ctx)
    count = None
    for path in list_saved_pendingsets(ctx, job):
        try:
            count = (count or 0) + len(load_pendingset(measure, job, path).commits)
        except (CorruptDataError, NotFoundError):
            continue  # it belongs to another destination, or is unreadable
    return count


def _clean_up_ended_job(ctx: CommitContext, job: JobId, committer: str) -> None:
    """Clean up after a job without a record. Idempotent (C10)."""
    measure = Measure(ctx)
    abort_pendingsets(measure, list_saved_pendingsets(ctx, job), lambda path: load_pendingset(measure, job, path))
    clean_up_staging_job(measure, JobRecord(job=job, committer=committer, mode=SaveMode.APPEND, started_at_s=0.0))


_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    **guarantees.AS_PAPERS,
    "speculative-tasks": yes(
        "the files of an attempt that does not count stay on its machine, or its uploads pending",
        unless=guarantees.BOTH_COMMIT,
    ),
    "abortable-task": yes("its files are on its machine, its uploads are aborted"),
    "abortable-job": yes(guarantees.NOT_YET_VISIBLE, unless=guarantees.UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is on the task's machine"),
    "committed-output-observable": no("its uploads are completed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory, after the uploads", unless=guarantees.BOTH_COMMIT),
    "atomic-job-commit": no("it completes one upload after the other"),
    "partitioned-executor": yes("its uploads stay pending", unless=guarantees.PARTITIONED),
    "C1": yes("every task has one pending set", unless=guarantees.DISPLACED),
    "C2": yes("a pending set belongs to one attempt"),
    "C5": yes("its uploads are aborted and its pending sets deleted", unless=guarantees.COMMIT_BEGUN),
    "C6": yes("what a slow attempt uploads stays pending", unless=guarantees.TWO_DRIVERS),
    "C7": yes("the names of its directories and uploads contain the job"),
    "C9": yes(
        "pending sets, uploads and files show how far it came",
        unless=f"{guarantees.TWO_DRIVERS}{guarantees.OR}{guarantees.STAGED}",
    ),
    "replaced-data": no(guarantees.DELETED),
}


def _make_committer(name: str, summary: str, modes: frozenset[SaveMode], conflicts: ConflictPolicy) -> Committer:
    return Committer(
        name=name,
        summary=summary,
        source="papers 000 (VI.1, VI.2) and 001 (staging committer)",
        needs=(MULTIPART,),
        modes=modes,
        guarantees=_GUARANTEES,
        staging=True,
        setup=partial(setup_job, conflicts),
        commit=partial(commit_job, conflicts),
        abort=abort_job,
        open_file=open_file,
        commit_task=partial(commit_task, conflicts),
        abort_task=abort_task,
        find_leftovers=partial(list_staging_leftovers, committer=name),
        knows_job=knows_job,
    )


STAGING_DIRECTORY = _make_committer(
    "staging-directory",
    "files on the task's machine, uploaded at task commit, completed at job commit; replaces whole directories",
    HADOOP_MODES,
    DIRECTORY_CONFLICTS,
)
STAGING_PARTITIONED = _make_committer(
    "staging-partitioned",
    "like staging-directory, but checks and replaces only the partitions that it writes into",
    frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.OVERWRITE_PARTITIONS}),
    PARTITION_CONFLICTS,
)
