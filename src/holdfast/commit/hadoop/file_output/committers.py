"""Implement ``file-v1`` and ``file-v2``, FileOutputCommitter's two algorithms, and recover their dead jobs.

With v1, tasks commit by renaming a directory, and the job by merging these directories. With v2, a task commits by
moving its files to their final paths. These guarantees do not hold, as the papers describe:

- C1 (v1): if an attempt dies or hangs while its commit replaces an earlier attempt's directory, that directory is
  already deleted, at least in part. If the job commits then, the task's output is missing, and nothing reports this.
- C2, C3 (v2): a task commit that fails or hangs halfway leaves some files visible. The next attempt replaces only the
  files with the same names, and a late attempt may replace some of them again.
- C3 (v1): if two attempts of one task both commit, the later commit counts, no matter which attempt the driver
  accepted, and even if it happens during the job commit.
- C4: with v1, files appear one by one during the job commit; a job commit that dies leaves some of them visible. With
  v2, the files of every committed task are visible while the job runs, and stay visible if it fails (C5).
- C5, C6: files that a failed job commit has merged stay visible. If an attempt of v1 commits after its job has ended,
  it leaves a directory that the next job in the destination mistakes for its own; one of v2 may replace files.
- C7: a job merges (v1) and then deletes everything below ``_temporary``, including the work of other jobs.
- C9: a job that died during its job commit cannot be completed (v1), and the files of a task that died during its
  commit cannot be distinguished from files of committed tasks (v2).

Recovery finds dead jobs by their records and the ids in directory names. A job without a record is over: files that its
attempts wrote after its end are deleted, and its visible files stay. A job with a record is rolled back, if its files
have names that identify the job. Rolling forward is never provably right: a late attempt may have replaced a committed
directory (v1) or its files (v2), and a job commit that died during its merge recorded no progress. The only jobs that
are known to be complete are jobs of v1 with visible files and no committed directory left to merge.

Sources: paper 000, III.B and III.C; paper 001, "Hadoop MR Commit algorithm 1", "v2 commit algorithm", "Job Recovery"
and "v2 Job Recovery"; cleaning up one job at a time is Holdfast's own addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast import guarantees
from holdfast.commit import layout
from holdfast.commit.committer import CONSISTENT_LISTING, HIDDEN_WRITES, RENAME, RENAME_DIR, Committer, TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible_files
from holdfast.commit.hadoop.file_output.directories import (
    TEMPORARY,
    abort_attempt,
    attempt_dir,
    committed_task_dir,
    delete_temporary_directory,
    job_attempt_dir,
    merge_paths_v1,
    merge_paths_v2,
    needs_task_commit,
    open_attempt_file,
    parse_job_record_path,
    parse_working_directory,
    require_job_record,
    start_file_job,
)
from holdfast.commit.hadoop.files import delete_dir, list_children, list_files, move_dir
from holdfast.commit.ids import FileOwner, JobId, is_job_id, job_in_file_name
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.success_file import FILENAME_LIMIT, has_job_succeeded, write_success_report
from holdfast.commit.task import AttemptContext, make_totals_commit, sum_reported_totals
from holdfast.errors import ConflictError, NotFoundError
from holdfast.guarantees import GuaranteeAnswer, no, yes
from holdfast.stores.base import iter_objects, iter_uploads, multipart


@dataclass(slots=True)
class _FileOutputJob:
    """A job's records, directories and uploads below ``_temporary``.

    Attributes:
        committer: the committer that the record names; empty if there is no record, which means that the job is over.
        records: paths of the job's records.
        directories: the directories of the job's tasks and attempts, relative to the destination.
        committed: those of `directories` that a task committed.
        unattributed: whether the name of any of the job's files lacks the job's id.
    """

    committer: str = ""
    records: list[str] = field(default_factory=list)
    active_at_s: float = 0.0
    directories: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    unattributed: bool = False
    uploads: int = 0


def list_file_output_leftovers(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """List the jobs that have data below ``_temporary``, including live jobs.

    Args:
        committer: ``file-v1`` or ``file-v2``. For ``file-v1``, jobs of either committer that are over are listed as
            well.
    """
    jobs = {
        job: found
        for job, found in _scan_temporary_directory(ctx).items()
        if (found.committer or "file-v1") == committer
    }
    if not jobs:
        return
    visible = dict.fromkeys(jobs, 0)
    for path, _info in layout.iter_visible(ctx.store, ctx.prefix):
        if (job := job_in_file_name(path)) in visible:
            visible[job] += 1
    for job, found in sorted(jobs.items()):
        action, reason = _choose_recovery_action(found, visible[job], is_success=has_job_succeeded(ctx, job))
        yield Leftover(
            committer=committer,
            job=job,
            active_at_s=found.active_at_s,
            action=action,
            reason=reason,
            recover=_make_recovery_function(ctx, job, found, action),
            files=visible[job],
            uploads=found.uploads,
        )


def _scan_temporary_directory(ctx: CommitContext) -> dict[JobId, _FileOutputJob]:
    jobs: dict[JobId, _FileOutputJob] = {}
    prefix = ctx.key(f"{TEMPORARY}/")

    def note_file(key: str, at_s: float) -> _FileOutputJob | None:
        place = parse_working_directory(key[len(ctx.prefix) :])
        if place is None or not is_job_id(place[0]):
            return None
        name, directory, _below, is_committed = place
        job = jobs.setdefault(JobId(name), _FileOutputJob())
        job.directories.add(directory)
        if is_committed:
            job.committed.add(directory)
        job.active_at_s = max(job.active_at_s, at_s)
        return job

    for info in iter_objects(ctx.store, prefix):
        if (record := parse_job_record_path(path := info.key[len(ctx.prefix) :])) is not None:
            of_record = jobs.setdefault(record[0], _FileOutputJob())
            of_record.committer = record[1]
            of_record.records.append(path)
            of_record.active_at_s = max(of_record.active_at_s, info.modified_at_s)
        elif (found := note_file(info.key, info.modified_at_s)) is not None:
            found.unattributed = found.unattributed or job_in_file_name(info.key) is None
    if ctx.store.capabilities.multipart is not None:
        for upload in iter_uploads(multipart(ctx.store), prefix):
            if (found := note_file(upload.key, upload.initiated_at_s)) is not None:
                found.uploads += 1
    return jobs


def _choose_recovery_action(found: _FileOutputJob, visible: int, *, is_success: bool) -> tuple[RecoveryAction, str]:
    if not found.committer:
        return RecoveryAction.CLEAN, "the job is over, but attempts continued to write"
    if is_success:
        return RecoveryAction.CLEAN, "_SUCCESS names the job, so it is committed; only its working directory is left"
    tasks = "no task has committed a directory, as none does in file-v2"
    if found.committed:
        tasks = f"a second attempt at the job could recover its {len(found.committed)} committed tasks"
    if found.unattributed:
        return RecoveryAction.KEEP, (
            f"the names of its files do not carry its id, so it is unknown which of them are visible; {tasks}"
        )
    if visible and found.committer == "file-v1" and not found.committed:
        return RecoveryAction.CLEAN, (
            f"all files that its tasks committed are visible ({visible}); it died before it wrote _SUCCESS"
        )
    if visible:
        return RecoveryAction.BACK, (
            f"{visible} of its files are visible without _SUCCESS, and a late attempt may have replaced the others"
        )
    return RecoveryAction.BACK, f"none of its files is visible; {tasks}"


def _make_recovery_function(
    ctx: CommitContext, job: JobId, found: _FileOutputJob, action: RecoveryAction
) -> Callable[[], None]:
    def finish_recovery() -> None:
        if action is RecoveryAction.KEEP:
            return
        if action is RecoveryAction.BACK:
            if not _is_action_still_needed(ctx, job, found, action):
                return
            delete_visible_files(ctx, lambda path: job_in_file_name(path) == job)
        # C7: delete only this job's directories, although the committers themselves delete all of _temporary. Records
        # are deleted last: until then the job counts as unfinished, and the next run comes to the same decision.
        for directory in sorted(found.directories):
            delete_dir(ctx, directory)
        for record in found.records:
            ctx.store.delete(ctx.key(record))

    return finish_recovery


def _is_action_still_needed(ctx: CommitContext, job: JobId, found: _FileOutputJob, expected: RecoveryAction) -> bool:
    """Check whether the job still needs the recovery action `expected`: it may have made progress in the meantime."""
    again = next((one for one in list_file_output_leftovers(ctx, committer=found.committer) if one.job == job), None)
    if again is not None and again.action is not expected:
        raise ConflictError("the job has made progress: run recover again", job=job, found=again.reason)
    return again is not None


# --- task -------------------------------------------------------------------------------------------------------------
def rename_attempt_to_task_dir(ctx: CommitContext, job: JobRecord, owner: FileOwner, written: int) -> None:
    """Commit a task attempt of v1: rename its directory to the task's directory.

    An attempt without files has nothing to commit.

    Guarantee: on a store that renames directories, the task's directory contains exactly the files of the last attempt
    to commit.

    Args:
        written: how many files the attempt has written, according to its own count.

    Raises:
        NotFoundError: the attempt wrote files, but they do not exist.
        PreconditionError: another attempt committed concurrently; the task counts as committed.

    Crash: an earlier attempt's directory may be deleted although this attempt's directory is not renamed yet.
    """
    if needs_task_commit(ctx, job, owner, written):
        target = committed_task_dir(job, owner.task)
        delete_dir(ctx, target)
        move_dir(ctx, attempt_dir(job, owner), target)


# --- job --------------------------------------------------------------------------------------------------------------
def list_v1_tasks(ctx: CommitContext, job: JobRecord) -> Iterator[str]:
    """List the directories of committed tasks by name: every directory of the job attempt except ``_temporary``."""
    directory = job_attempt_dir(job.job_attempt)
    for name, is_directory in list_children(ctx, directory):
        if is_directory and name != TEMPORARY:
            yield f"{directory}/{name}"


def commit_v1_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit a job of v1: merge the tasks' directories one by one, write ``_SUCCESS``, then delete ``_temporary``.

    Args:
        commits: the reports of the tasks that ran in this attempt at the job; recovered tasks do not report.

    Raises:
        NotFoundError: the job's record no longer exists, because the job was already committed or aborted (scenario
            8), or the destination was renamed or deleted; or tasks wrote files that no longer exist.

    Crash: some files are visible. The job commit cannot be repeated; `holdfast recover` deletes these files.
    """
    totals = sum_reported_totals(reports.check(job))
    require_job_record(measure.ctx, job)
    committed = list(list_v1_tasks(measure.ctx, job))
    if totals.files and not committed:
        raise NotFoundError(
            "no output of the job exists, because a late attempt is replacing it or the job has ended: run it again",
            url=measure.ctx.url,
            job=job.job,
        )
    names: list[str] = []
    with measure.stage("job_stage_rename_files"):
        for done, directory in enumerate(committed, start=1):
            if len(names) < FILENAME_LIMIT:
                names += [path[len(directory) + 1 :] for path, _info in list_files(measure.ctx, directory)]
            merge_paths_v1(measure.ctx, directory)
            measure.ctx.progress("tasks", done, len(committed))
    return delete_temporary_directory(
        measure, job, write_success_report(measure, job, totals=totals, tasks=len(committed), paths=names)
    )


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort a job: delete ``_temporary``. Files that a failed job commit (v1) or tasks (v2) have published stay."""
    committed = has_job_succeeded(measure.ctx, job.job)
    return delete_temporary_directory(measure, job, JobOutcome(job=job.job, committed=committed))


def commit_v1_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit a task attempt of v1: rename its directory to the task's, and return its report."""
    rename_attempt_to_task_dir(scope.ctx, scope.job, scope.owner, len(files))
    return make_totals_commit(scope.owner, files)


def commit_v2_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit a job of v2: write ``_SUCCESS``, then delete ``_temporary``. The tasks have made the files visible.

    ``_SUCCESS`` names no files, because the driver does not know them. While it names the job, the call is
    idempotent.

    Raises:
        NotFoundError: the job's record no longer exists, because the destination was renamed or deleted, or a job
            ended in it. Files of the tasks stay visible, wherever they are now.
    """
    present = reports.check(job)
    if not has_job_succeeded(measure.ctx, job.job):
        require_job_record(measure.ctx, job)
    outcome = write_success_report(measure, job, totals=sum_reported_totals(present), tasks=len(present), paths=())
    return delete_temporary_directory(measure, job, outcome)


def commit_v2_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit a task attempt of v2: move its files into the destination, where they become visible immediately.

    Crash: some of the files are visible, and nothing ever deletes them.
    """
    if needs_task_commit(scope.ctx, scope.job, scope.owner, len(files)):
        with scope.measure.stage("task_stage_rename_files"):
            merge_paths_v2(scope.ctx, attempt_dir(scope.job, scope.owner))
    return make_totals_commit(scope.owner, files)


_V1_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    **guarantees.AS_PAPERS,
    "speculative-tasks": yes(
        "each attempt has its own directory, and one per task remains", unless=guarantees.BOTH_COMMIT
    ),
    "recoverable-job": yes("the next attempt at the job reuses the directories of committed tasks"),
    "abortable-task": yes("its directory is deleted"),
    "uncommitted-output-observable": no("it is in a hidden directory"),
    "committed-output-observable": no("its files are renamed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a directory", unless=guarantees.BOTH_COMMIT),
    "atomic-job-commit": no("it renames one file after the other"),
    "partitioned-executor": yes("its files stay in its directory", unless=guarantees.PARTITIONED),
    "C1": yes("every task has one directory", unless=f"{guarantees.DISPLACED}{guarantees.OR}{guarantees.TWO_DRIVERS}"),
    "C2": yes("a directory belongs to one attempt", unless=guarantees.DISPLACED),
    "C5": yes("its directory is deleted", unless=guarantees.COMMIT_BEGUN),
    "C6": yes("what a slow attempt writes stays hidden", unless=guarantees.ANOTHER_ENDS),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C9": no("each rename loses where a file was and whose it is"),
    "replaced-data": no(guarantees.EMPTIED),
}

_V2_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    "speculative-tasks": yes("each attempt has its own directory until it commits", unless=guarantees.BOTH_COMMIT),
    "recoverable-job": yes("the output of committed tasks is in place"),
    "abortable-task": yes("its directory is deleted", unless=guarantees.IN_TASK_COMMIT),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=guarantees.UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is in a hidden directory", unless=guarantees.IN_TASK_COMMIT),
    "committed-output-observable": yes("the task commit renames its files into the destination"),
    "atomic-task-commit": no("it renames one file after the other"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("its task commit renames into the destination, even after the job's end"),
    "C1": no("a cleanup at the same time deletes files that a task commit has not renamed yet, unnoticed"),
    "C2": no("a task commit that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts that commit are mixed"),
    "C4": no("files appear with each task commit"),
    "C5": no("committed output stays, and a slow task may commit afterwards"),
    "C6": no("a slow task commit renames into the destination"),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C8": no(guarantees.NO_RECORD),
    "C9": no(guarantees.UNKNOWN),
    "C10": no("a task commit that is run again fails, because its files are already renamed"),
    "replaced-data": no(guarantees.EMPTIED),
}

_committer = partial(
    Committer,
    setup=start_file_job,
    abort=abort_job,
    open_file=open_attempt_file,
    abort_task=abort_attempt,
)
FILE_V1 = _committer(
    name="file-v1",
    summary="directories renamed at task commit, merged one by one at job commit; one job at a time in a destination",
    source="papers 000 (III.B) and 001 (algorithm 1)",
    needs=(RENAME_DIR, CONSISTENT_LISTING, RENAME, HIDDEN_WRITES),
    guarantees=_V1_GUARANTEES,
    commit=commit_v1_job,
    commit_task=commit_v1_task,
    find_leftovers=partial(list_file_output_leftovers, committer="file-v1"),
)
FILE_V2 = _committer(
    name="file-v2",
    summary="files renamed to their final names at task commit, where readers see them before the job commits",
    source="papers 000 (III.C) and 001 (v2 commit algorithm)",
    needs=(CONSISTENT_LISTING, RENAME, HIDDEN_WRITES),
    guarantees=_V2_GUARANTEES,
    commit=commit_v2_job,
    commit_task=commit_v2_task,
    find_leftovers=partial(list_file_output_leftovers, committer="file-v2"),
)
