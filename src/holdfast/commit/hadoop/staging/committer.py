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
  only ``holdfast uploads`` finds the attempt's uploads whose file names lack the job's id; ``unique_filenames`` adds
  the id to every name. Scratch files of a dead task stay on its machine.

Sources: paper 000, VI.1, VI.2, VIII.B and XIV; paper 001, "The Netflix Staging committer".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit.committer import HADOOP_MODES, MULTIPART, Committer, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import new_job
from holdfast.commit.hadoop.completion import (
    Published,
    Upload,
    abort_all,
    abort_listed,
    abort_sets,
    complete_all,
    etags_of,
    succeed_with,
)
from holdfast.commit.hadoop.file_output.committers import commit_v1_attempt
from holdfast.commit.hadoop.file_output.directories import abort_attempt
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.pending import TASK_ATTEMPT_ID, PendingSet, encode_pendingset
from holdfast.commit.hadoop.pending_recovery import PendingSetAccess, pending_set_leftover
from holdfast.commit.hadoop.staging.conflicts import DIRECTORY_CONFLICTS, PARTITION_CONFLICTS, ConflictPolicy
from holdfast.commit.hadoop.staging.layout import (
    announce_job,
    find_jobs,
    list_ended_jobs,
    list_pendingsets,
    list_saved_pendingsets,
    load_pendingset,
    pendingset_path,
    require_job,
    scratch_context,
    scratch_dir,
    shared_context,
    staging_context,
)
from holdfast.commit.hadoop.staging.uploading import upload_files
from holdfast.commit.ids import FileOwner, JobId, attempt_name
from holdfast.commit.leftovers import Action, Leftover
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink
from holdfast.commit.success_file import has_succeeded
from holdfast.commit.task import TaskScope, report_task
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError, UnavailableError
from holdfast.guarantees import (
    ALL_UPLOADS,
    APPEARS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DELETED,
    DISPLACED,
    ENDED,
    LAST_WINS,
    NO_RECORD,
    NOT_YET_VISIBLE,
    OR,
    PARTITIONED,
    STAGED,
    STARTS_OVER,
    TWO_DRIVERS,
    UNDONE_BY_HAND,
    Answer,
    no,
    yes,
)
from holdfast.stores.base import iter_objects, rename

_log = logging.getLogger(__name__)


def _save_pendingset(ctx: CommitContext, job: JobRecord, owner: FileOwner, pendingset: PendingSet) -> None:
    shared = shared_context(ctx, job.job)
    shared.store.put(shared.key(pendingset_path(job, owner)), encode_pendingset(pendingset, etags_of(ctx)))
    commit_v1_attempt(shared, job, owner, written=1)


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
    """Check the destination, as far as `conflicts` does so at the start, and write the job's record."""
    # If a mode is checked later, in tasks, it must not refuse or skip the destination now.
    later = mode in (SaveMode.FAIL, SaveMode.IGNORE) and not conflicts.at_setup
    job = new_job(ctx, committer, SaveMode.APPEND if later else mode, details)
    if job is None:
        return None
    job = replace(job, mode=mode)
    announce_job(ctx, job)
    return job


def commit_job(conflicts: ConflictPolicy, measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Resolve conflicts, complete the uploads of every pending set, write ``_SUCCESS``, then clean up.

    The pending sets in the shared directory count, not the tasks' reports.

    Guarantee: on return every file of the sets is visible. If an error occurs after conflict resolution has
    started, the job is aborted, as far as possible: files that became visible are deleted and all other uploads are
    aborted (scenarios 11 and 46). Replaced data is not restored.

    Raises:
        NotFoundError: the job has ended (scenario 8), or an upload does not exist.
        DestinationExistsError: the mode is ``fail``, and data was added after the job had started.
        CorruptDataError: a set cannot be parsed.

    Crash: replaced data may be deleted (C9); some files may be visible and the others pending (C4).
    Source: paper 000, VI.1 (commitJob); each set is loaded when its uploads are completed (HADOOP-16570).
    """
    reports.check(job)
    with measure.stage("job_stage_load_manifests"):
        names = list_pendingsets(measure.ctx, job)
        require_job(measure.ctx, job.job)  # after the listing: a deleted directory would look empty
    try:
        published = _publish(conflicts, measure, job, names)
    except Exception:
        failed_in = measure.stage_name
        clean_up(measure, job)
        measure.stage_name = failed_in  # the report names the stage that failed
        raise
    outcome = succeed_with(measure, job, published)
    left = clean_up(measure, job, with_sets=False)
    return replace(outcome, finished=not left, pending_reason=left)


def _publish(conflicts: ConflictPolicy, measure: Measure, job: JobRecord, names: Sequence[str]) -> Published:
    def load(name: str) -> PendingSet:
        return load_pendingset(measure, job.job, name)

    with measure.stage("job_stage_resolve_conflicts"):
        conflicts.resolve(measure, job, names, load)
    with measure.stage("job_stage_complete_uploads"):
        return complete_all(measure, names, load)


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort the uploads of all pending sets, then delete the sets and the scratch files. Visible files stay.

    If ``_SUCCESS`` names the job, it is committed; then this only finishes its clean-up.
    """
    committed = has_succeeded(measure.ctx, job.job)
    left = clean_up(measure, job)
    return JobOutcome(job=job.job, committed=committed, finished=not left, pending_reason=left)


def open_file(scope: TaskScope, path: str) -> RenameSink:
    """Open a file of the attempt in this machine's scratch directory."""
    scratch = scratch_context(scope.ctx)
    source = f"{scratch_dir(scope.job.job, scope.owner)}/{path}"
    return RenameSink(rename(scratch.store), scratch.key(source), "", path, background=scope.background)


def commit_task(conflicts: ConflictPolicy, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Upload the attempt's files, save the pending set, and commit the set with the algorithm of `file-v1`.

    Guarantee: the task's pending set is the set of the last attempt to commit (scenario 7). An attempt without
    files has nothing to commit. After an error, every upload that was started is aborted (scenarios 12 to 15).

    Raises:
        NotFoundError: the job has ended (scenario 6), the shared directory is not really shared, or a staged file
            does not exist.

    Crash: uploads are pending. The task is committed once its pending set is renamed.
    Source: paper 000, VI.1 (commitTask). In the paper's text the record is saved before the commit, as here; in its
    program listing, after the commit.
    """
    measure, owner, job = scope.measure, scope.owner, scope.job
    conflicts.check_task(scope.ctx, job, files)
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


def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the attempt's scratch files on this machine, and its pending set if the attempt has not committed."""
    delete_dir(scratch_context(ctx), scratch_dir(owner.job, owner))
    abort_attempt(shared_context(ctx, job.job), job, owner)


def clean_up(measure: Measure, job: JobRecord, *, with_sets: bool = True) -> str:
    """Abort the job's pending uploads, then delete its records and its scratch files. Idempotent (C10).

    The job's uploads are the uploads that its pending sets name, and those whose file names contain its id. With the
    setting ``abort_pending_uploads``, which is Hadoop's default (XIV.C.1), all uploads below the destination are
    aborted, including other jobs'. Scratch files on other machines are not deleted, neither here nor in the paper's
    clean-up.

    Args:
        with_sets: whether to abort even the uploads that tasks have committed; False after a job commit, which has
            completed all of them.

    Returns:
        Why something is left, in one sentence; empty if nothing is. Errors are not raised: an abort must not hide the
        error that caused it, and a committed job stays committed (paper 000, XI).

    Crash: some uploads are aborted, or some records deleted; run it again. The job's own record is deleted last.
    """
    ctx = measure.ctx
    try:
        with measure.stage("job_stage_cleanup"):
            if with_sets:
                abort_sets(measure, list_pendingsets(ctx, job), lambda name: load_pendingset(measure, job.job, name))
            _abort_uploads(measure, job.job)
            delete_dir(scratch_context(ctx), scratch_dir(job.job))
            delete_dir(staging_context(ctx), job.job)
    except HoldfastError as error:
        _log.warning("the clean-up of job %s in %s is incomplete (%s)", job.job, ctx.url, error)
        return f"clean-up is incomplete, run holdfast recover: {error.message}"
    return ""


def _abort_uploads(measure: Measure, job: JobId) -> None:
    """Abort the uploads that no pending set names: those of attempts that died, or failed without aborting them."""

    def select(pending: set[Upload]) -> set[Upload]:
        if measure.ctx.settings.hadoop.abort_pending_uploads:
            return pending
        return {upload for upload in pending if job in upload[0].rpartition("/")[2]}

    abort_listed(measure, select)


_SETS = PendingSetAccess(
    names=list_pendingsets,
    load=lambda measure, job, name: load_pendingset(measure, job.job, name),
    clean_up=clean_up,
)


def has_records(ctx: CommitContext, job: JobId, folders: Sequence[str]) -> bool:
    """Check whether the shared directory contains data of the job."""
    if ctx.staging is None:
        return False
    shared = shared_context(ctx, job)
    return next(iter_objects(shared.store, shared.prefix, page_size=2), None) is not None


def staging_leftovers(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """List the jobs of `committer` in the shared directory, including live jobs."""
    for destination, job, active_at_s in find_jobs(ctx):
        if job.committer != committer:
            continue
        found = pending_set_leftover(destination, job, active_at_s, _SETS)
        replaces = job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
        if replaces and found.action is Action.BACK:
            # Paper 001: no record says how much was deleted before the first completion.
            found = replace(found, reason=f"{found.reason}; the data that it replaces may already be deleted")
        yield found
    for ended, active_at_s in list_ended_jobs(ctx):
        uploads = _late_uploads(ctx, ended)
        if uploads is not None:
            yield Leftover(
                committer=committer,
                job=ended,
                active_at_s=active_at_s,
                action=Action.CLEAN,
                reason="the job is over, but attempts continued to write",
                recover=partial(_clean_up_ended, ctx, ended, committer),
                uploads=uploads,
            )


def _late_uploads(ctx: CommitContext, job: JobId) -> int | None:
    """Return the number of uploads that the job's pending sets name; None if no set is for this destination."""
    measure = Measure(ctx)
    count = None
    for path in list_saved_pendingsets(ctx, job):
        try:
            count = (count or 0) + len(load_pendingset(measure, job, path).commits)
        except (CorruptDataError, NotFoundError):
            continue  # it belongs to another destination, or is unreadable
    return count


def _clean_up_ended(ctx: CommitContext, job: JobId, committer: str) -> None:
    """Clean up after a job without a record. Idempotent (C10).

    Raises:
        UnavailableError: some uploads or files could not be removed; run it again.
    """
    measure = Measure(ctx)
    abort_sets(measure, list_saved_pendingsets(ctx, job), lambda path: load_pendingset(measure, job, path))
    record = JobRecord(job=job, committer=committer, mode=SaveMode.APPEND, started_at_s=0.0)  # the mode is not used
    left = clean_up(measure, record)
    if left:
        raise UnavailableError("clean-up is incomplete: run holdfast recover again", job=job, left=left)


_GUARANTEES: Mapping[str, Answer] = {
    "speculative-tasks": yes(
        "the files of an attempt that does not count stay on its machine, or its uploads pending",
        unless=BOTH_COMMIT,
    ),
    "recoverable-job": no(STARTS_OVER),
    "abortable-task": yes("its files are on its machine, its uploads are aborted"),
    "abortable-job": yes(NOT_YET_VISIBLE, unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is on the task's machine"),
    "committed-output-observable": no("its uploads are completed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory, after the uploads", unless=BOTH_COMMIT),
    "atomic-job-commit": no("it completes one upload after the other"),
    "partitioned-executor": yes("its uploads stay pending", unless=PARTITIONED),
    "C1": yes("every task has one pending set", unless=DISPLACED),
    "C2": yes("a pending set belongs to one attempt"),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C5": yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
    "C6": yes("what a slow attempt uploads stays pending", unless=TWO_DRIVERS),
    "C7": yes("the names of its directories and uploads contain the job", unless=ALL_UPLOADS),
    "C8": no(NO_RECORD),
    "C9": yes("pending sets, uploads and files show how far it came", unless=f"{TWO_DRIVERS}{OR}{STAGED}"),
    "C10": no(ENDED),
    "replaced-data": no(DELETED),
}


def _committer(name: str, summary: str, modes: frozenset[SaveMode], conflicts: ConflictPolicy) -> Committer:
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
        find_leftovers=partial(staging_leftovers, committer=name),
        knows_job=has_records,
    )


STAGING_DIRECTORY = _committer(
    "staging-directory",
    "files on the task's machine, uploaded at task commit, completed at job commit; replaces whole directories",
    HADOOP_MODES,
    DIRECTORY_CONFLICTS,
)
STAGING_PARTITIONED = _committer(
    "staging-partitioned",
    "like staging-directory, but checks and replaces only the partitions that it writes into",
    frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.OVERWRITE_PARTITIONS}),
    PARTITION_CONFLICTS,
)
