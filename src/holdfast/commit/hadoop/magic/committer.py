"""Implement `magic`: tasks upload to the final names, and the job commit completes the uploads (paper 000, VI.A).

The guarantees of ARCHITECTURE.md hold, except for these:

- C3: the attempts of a task share the name of its pending set. The last attempt to write the set wins, even if the
  driver accepted another attempt, and even during the job commit (HADOOP-17258; paper 000, VIII.C, mentions and
  accepts this).
- C4, C5: the job commit completes uploads one by one. A driver that dies halfway leaves some files visible, and an
  abort does not delete them (paper 001, "Failure during job commit"). `holdfast recover` deletes them; see
  `magic.recovery`.
- C6: two jobs, or an old driver and a new one, may write ``_SUCCESS`` in any order.
- C8: no decision is logged.
- C9: mode ``overwrite`` deletes data before the first task runs. An upload to a file name that the caller chose can be
  lost: if its attempt dies before it writes the upload's record, or if its pending set is overwritten, only ``holdfast
  uploads`` finds the upload.

Sources: paper 000, VI.A, VIII.C and XIV; paper 001, "Magic Committer"; HADOOP-16570, HADOOP-17258.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast import guarantees
from holdfast.commit.committer import CONSISTENT_LISTING, MULTIPART, Committer, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import start_truncating_job
from holdfast.commit.hadoop.completion import abort_all_uploads, complete_all_uploads, report_completion
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.magic.files import (
    attempt_dir,
    clean_up_magic_job,
    find_pendingset_etags,
    iter_pending_paths,
    list_pendingsets,
    load_pendingset,
    load_readable_uploads,
    load_upload_record,
    magic_work_path,
    open_magic_file,
    pendingset_path,
)
from holdfast.commit.hadoop.pending import MAGIC_JOB_PREFIX, PendingSet, SinglePending, encode_pendingset
from holdfast.commit.hadoop.pending_recovery import JobUploadState, JobWithPendingSets, inspect_jobs, make_leftover
from holdfast.commit.ids import FileOwner, JobId, is_job_id, job_in_file_name, make_hadoop_attempt_id
from holdfast.commit.leftovers import Leftover
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.sinks import UploadSink
from holdfast.commit.success_file import clean_up_after_job, has_job_succeeded
from holdfast.commit.task import AttemptContext, compress_record, count_totals
from holdfast.errors import AccessDeniedError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.guarantees import GuaranteeAnswer, no, yes
from holdfast.stores.base import iter_objects

_log = logging.getLogger(__name__)


def _load_attempt_upload_records(
    measure: Measure, owner: FileOwner, paths: list[str], rows: dict[str, int]
) -> list[SinglePending]:
    """Load an attempt's upload records and add ids to them. If one cannot be loaded, abort the others and raise."""
    prefix = measure.ctx.prefix

    def load_pending_file(path: str) -> SinglePending | HoldfastError:
        try:
            found = load_upload_record(measure, owner.job, path)
        except HoldfastError as error:
            return error
        counted = found.rows or rows.get(found.key.removeprefix(prefix), 0)
        return replace(found, job_id=owner.job, task_id=make_hadoop_attempt_id(owner), rows=counted)

    results = list(measure.ctx.runner.map(load_pending_file, paths))
    pendings = [found for found in results if isinstance(found, SinglePending)]
    errors = [found for found in results if isinstance(found, HoldfastError)]
    if not errors and len({pending.key for pending in pendings}) < len(pendings):
        errors.append(InvalidRequestError("two files of the attempt have the same target: rename one", job=owner.job))
    if errors:
        abort_all_uploads(measure, pendings)
        raise errors[0]
    return pendings


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit a job: complete the uploads of every pending set that a listing shows, write ``_SUCCESS``, then clean up.

    Only the listing decides which sets count. A set that a task report contains is not read from the store if the
    listing shows the same etag; if the set has been overwritten since, it is read.

    Guarantee: on return every file of the sets is visible. After an error, the files that became visible are
    deleted and the other uploads are aborted, as far as possible: run the job again.

    Raises:
        NotFoundError: the set of a task that reported does not exist, because the job was already committed or
            aborted, or the destination was renamed or deleted while the job ran; or an upload or a
            published file does not exist.
        CorruptDataError: a set cannot be parsed.

    Crash: see C4 at the top of this module.
    Source: paper 000, VI.A (commitJob); sets are loaded while earlier ones are being completed, not all in advance
    (HADOOP-16570).
    """
    reported = reports.check(job)
    with measure.stage("job_stage_load_manifests"):
        names = find_pendingset_etags(measure.ctx, job.job)
    missing = [commit.task for commit in reported if pendingset_path(job.job, commit.task) not in names]
    if missing:
        raise NotFoundError(
            "pending sets of committed tasks do not exist, because the destination was renamed or deleted "
            "while the job ran, or the job has ended: unless files of it are visible, run it again",
            url=measure.ctx.url,
            job=job.job,
            missing=missing[:5],
        )
    with measure.stage("job_stage_complete_uploads"):
        inlined = {
            pendingset_path(job.job, commit.task): commit
            for commit in reported
            if commit.etag and names.get(pendingset_path(job.job, commit.task)) == commit.etag
        }

        def load_set(path: str) -> PendingSet:
            data = inlined[path].manifest_data() if path in inlined else None
            return load_pendingset(measure, job.job, path, data)

        published = complete_all_uploads(measure, list(names), load_set)
    outcome = report_completion(measure, job, published)
    return clean_up_after_job(measure, outcome, partial(clean_up_magic_job, measure, job.job, with_sets=False))


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort a job: abort its pending uploads and delete its records. Visible files stay (paper 000, VI.A, abortJob).

    If ``_SUCCESS`` names the job, it is committed; then this only finishes its clean-up.
    """
    committed = False
    try:
        committed = has_job_succeeded(measure.ctx, job.job)
    except HoldfastError as error:  # continue: an abort only aborts pending uploads, which is safe
        _log.warning("_SUCCESS could not be read (%s)", error)
    outcome = JobOutcome(job=job.job, committed=committed)
    return clean_up_after_job(measure, outcome, partial(clean_up_magic_job, measure, job.job))


def open_file(scope: AttemptContext, path: str) -> UploadSink:
    """Open a new file of the attempt in `scope`: an upload to the target `path`, which the job commit will complete."""
    return open_magic_file(
        scope.measure, f"{magic_work_path(scope.owner)}/{path}", background=scope.background, budget=scope.budget
    )


def commit_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit the task attempt in `scope`: write the records of all its uploads as the task's pending set.

    Guarantee: the set is written by one atomic put, which replaces an earlier attempt's set. A listing of the
    attempt's directory decides which files count, so files that a program wrote through a file system are included.

    Raises:
        NotFoundError: the listing does not show a file that this attempt wrote, because the job has ended (scenario
            6) or the store's listings are not up to date. Nothing was committed.
        HoldfastError: a record could not be loaded, or the set could not be written. All loaded uploads are
            aborted.

    Crash: before the put, nothing is committed. After the put, the attempt's directory is left, and is deleted with
    the job's directory.
    """
    measure, owner = scope.measure, scope.owner
    ctx = measure.ctx
    with measure.stage("task_stage_scan_directory"):
        paths = list(iter_pending_paths(ctx, attempt_dir(owner)))
        pendings = _load_attempt_upload_records(measure, owner, paths, {file.path: file.rows for file in files})
    missing = {ctx.key(file.path) for file in files} - {pending.key for pending in pendings}
    if missing:
        raise NotFoundError(
            "records of the attempt's uploads do not exist, so its job was committed or aborted: run the job again",
            job=owner.job,
            key=min(missing),
        )
    with measure.stage("task_stage_save_manifest"):
        data = encode_pendingset(
            PendingSet(
                job_id=owner.job,
                commits=tuple(pendings),
                attempt=make_hadoop_attempt_id(owner),
                statistics=measure.statistics(),
            )
        )
        try:
            written = ctx.store.put(ctx.key(pendingset_path(owner.job, owner.task)), data)
        except HoldfastError:
            abort_all_uploads(measure, pendings)
            raise
    try:
        delete_dir(ctx, attempt_dir(owner), unfinished=False)
    except HoldfastError as error:  # the task is committed; the directory is deleted with the job's
        _log.warning(
            "the directory of a committed attempt could not be deleted and is left for the job's clean-up (%s)",
            error,
        )
    totals = count_totals(tuple(pending.file_entry(ctx.prefix) for pending in pendings))
    return TaskCommit(
        job=owner.job,
        task=owner.task,
        attempt=owner.attempt,
        totals=totals,
        inline=compress_record(ctx, data),
        etag=written.etag,
    )


def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Abort a task attempt: abort the uploads that it has recorded, then delete its directory. Idempotent."""
    measure = Measure(ctx)
    with measure.stage("task_stage_abort_task"):
        abort_all_uploads(
            measure, load_readable_uploads(measure, owner.job, iter_pending_paths(ctx, attempt_dir(owner)))
        )
        delete_dir(ctx, attempt_dir(owner), unfinished=False)


def find_magic_jobs(ctx: CommitContext) -> dict[JobId, float]:
    """Return the jobs that have a magic directory at the destination, with the time of the last write there."""
    jobs: dict[JobId, float] = {}
    start = ctx.key(MAGIC_JOB_PREFIX)
    for info in iter_objects(ctx.store, start):
        name = info.key[len(start) :].partition("/")[0]
        if is_job_id(name):
            jobs[JobId(name)] = max(jobs.get(JobId(name), 0.0), info.modified_at_s)
    return dict(sorted(jobs.items()))


def knows_job(ctx: CommitContext, job: JobId, folders: Sequence[str]) -> bool:
    """Check whether one of these folders, maybe of other destinations (C7), contains the job's magic directory."""

    def has_magic_directory_in(folder: str) -> bool:
        try:
            return next(iter_objects(ctx.store, f"{folder}{MAGIC_JOB_PREFIX}{job}/", page_size=2), None) is not None
        except AccessDeniedError:
            if folder.startswith(ctx.prefix):
                raise
            return False  # the credentials cover only this destination; see `holdfast.commit.two_phase.pending_uploads`

    return any(has_magic_directory_in(folder) for folder in folders)


def list_magic_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """List the leftover data of every job with a magic directory, including live jobs."""
    measure = Measure(ctx)
    jobs = [
        JobWithPendingSets(
            committer="magic",
            job=job,
            active_at_s=active_at_s,
            sets=partial(list_pendingsets, ctx, job),
            load=partial(_load_pending_uploads, measure, job),
            ids_of=lambda path: (job_in_file_name(path),),
            clean_up=partial(_clean_up_dead_job, job),
        )
        for job, active_at_s in find_magic_jobs(ctx).items()
    ]
    for one, found in zip(jobs, inspect_jobs(ctx, jobs), strict=True):
        yield make_leftover(ctx, one, found)


def _clean_up_dead_job(job: JobId, measure: Measure, found: JobUploadState) -> None:
    clean_up_magic_job(measure, job)


def _load_pending_uploads(measure: Measure, job: JobId, path: str) -> Sequence[SinglePending]:
    return load_pendingset(measure, job, path).commits


_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    **guarantees.AS_PAPERS,
    "speculative-tasks": yes("the uploads of an attempt that does not count stay pending"),
    "abortable-task": yes("its uploads are aborted", unless=guarantees.DIES_UPLOADING),
    "uncommitted-output-observable": no("it is a pending upload"),
    "committed-output-observable": no("its uploads are completed by the job commit"),
    "atomic-task-commit": yes("it is one put of a pending set"),
    "atomic-job-commit": no("it completes one upload after the other"),
    "partitioned-executor": yes("its uploads stay pending", unless=guarantees.PARTITIONED),
    "C1": yes("every task has one pending set, replaced in one step"),
    "C2": yes("a pending set belongs to one attempt"),
    "C5": yes("its uploads are aborted and its pending sets deleted", unless=guarantees.COMMIT_BEGUN),
    "C6": yes("what a slow attempt uploads stays pending", unless=guarantees.TWO_DRIVERS),
    "C7": yes("the names of its directory and uploads contain the job"),
    "C9": yes(
        "pending sets, uploads, and files with the job in their names show how far it came",
        unless=guarantees.TWO_DRIVERS,
    ),
    "replaced-data": no(guarantees.EMPTIED),
}

MAGIC = Committer(
    name="magic",
    summary="uploads to the final names, which the job commit completes one by one",
    source="papers 000 (VI.A) and 001",
    needs=(MULTIPART, CONSISTENT_LISTING),
    guarantees=_GUARANTEES,
    setup=start_truncating_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_file,
    commit_task=commit_task,
    abort_task=abort_task,
    find_leftovers=list_magic_leftovers,
    knows_job=knows_job,
)
