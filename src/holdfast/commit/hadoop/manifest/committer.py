"""Define `manifest`: tasks list the files to rename, and the job commit renames all of them in parallel.

Stores without atomic rename, such as S3, are refused, whatever the settings are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from holdfast import guarantees
from holdfast.commit import layout
from holdfast.commit.codec import decode_job
from holdfast.commit.committer import CONSISTENT_LISTING, RENAME, Committer
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import REPLACING, delete_visible_files
from holdfast.commit.hadoop.files import delete_dir, file_info, list_files
from holdfast.commit.hadoop.manifest.format import TEMPORARY, job_dir, tasks_dir
from holdfast.commit.hadoop.manifest.job import (
    LoadedManifests,
    abort_job,
    commit_job,
    finish_job,
    is_renamed_file,
    load_manifests,
    rename_files,
    setup_job,
)
from holdfast.commit.hadoop.manifest.task import abort_task, commit_task, open_file
from holdfast.commit.ids import JobId, is_job_id, job_in_file_name
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.success_file import has_job_succeeded
from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.guarantees import GuaranteeAnswer, no, yes
from holdfast.stores.base import ObjectInfo

_COMMITTER = "manifest"
_JOB_DIR = re.compile(r"manifest_([^/]+)/(?:(\d\d)/job\.json$)?")


@dataclass(slots=True)
class _JobDirectory:
    """The directory of a job.

    Attributes:
        job_attempt: the number of the newest job attempt that has a record; None if there is no record.
    """

    job: JobId
    active_at_s: float = 0.0
    job_attempt: int | None = None


@dataclass(slots=True, kw_only=True)
class _FileCounts:
    """How many files of a job are in each state.

    Attributes:
        pending: files at their sources.
        visible: files at their targets, recognized by size and etag.
        missing: files at neither path.
        blocked: pending files whose target is taken by another file.
        unattributed: files in `visible` whose names do not carry the job's id.
        own: visible files whose names carry the job's id.
        orphans: files in `own` that no manifest names.
    """

    pending: int = 0
    visible: int = 0
    missing: int = 0
    blocked: int = 0
    unattributed: int = 0
    own: int = 0
    orphans: int = 0

    @property
    def visible_file_count(self) -> int:
        """Return the number of visible files that belong to the job, according to their names or to a manifest."""
        return self.own + self.unattributed


def find_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """List every job that has a directory below the destination, including live jobs, oldest first.

    A job without a record is over, and so is a job that ``_SUCCESS`` names. All other jobs died before the end of their
    job commit, or are alive. A job is rolled *forward* only if this is provably right. First, some files are at their
    targets, so the job commit had started and all tasks had committed. Second, the other files are pending and not
    blocked. Third, no other file of the job is visible; such a file would mean that a late attempt has replaced a
    manifest. A job that does not meet these conditions is rolled *back*: visible files whose names carry the job's id
    are deleted. Files whose names the caller chose are never deleted; a job with such files is *kept* until a user
    decides.

    A live job that is rolled back fails, and the files that it has renamed so far are deleted too.
    """
    for directory in _list_job_directories(ctx):
        try:
            leftover = _make_leftover(ctx, directory)
        except NotFoundError:
            continue  # the job has just ended
        yield leftover


def _list_job_directories(ctx: CommitContext) -> list[_JobDirectory]:
    found: dict[JobId, _JobDirectory] = {}
    for path, info in list_files(ctx, TEMPORARY):
        match = _JOB_DIR.match(path, len(TEMPORARY) + 1)
        if match is None or not is_job_id(match[1]):
            continue  # belongs to another committer, or to Hadoop
        job = JobId(match[1])
        directory = found.setdefault(job, _JobDirectory(job))
        directory.active_at_s = max(directory.active_at_s, info.modified_at_s)
        if match[2] is not None:
            directory.job_attempt = max(directory.job_attempt or 0, int(match[2]))
    return [directory for _job, directory in sorted(found.items())]


def _make_leftover(ctx: CommitContext, directory: _JobDirectory) -> Leftover:
    job, files = directory.job, 0
    record, loaded = None, None
    if directory.job_attempt is None:
        action, reason = RecoveryAction.CLEAN, "the job is over, only its directory is left"
    else:
        try:
            record = _read_record(ctx, job, directory.job_attempt)
            loaded = None if has_job_succeeded(ctx, job) else load_manifests(ctx, record)
        except NotFoundError:
            raise
        except (CorruptDataError, InvalidRequestError) as error:
            action, reason = RecoveryAction.KEEP, f"its records cannot be used: {error}"
        else:
            action, reason = RecoveryAction.CLEAN, "_SUCCESS names the job, so it is committed"
            if loaded is not None:
                counts = _count_files(ctx, record, loaded)
                files = counts.visible_file_count
                action, reason = _choose_recovery_action(counts)

    def recover_job() -> None:
        if action is RecoveryAction.KEEP or (
            action is RecoveryAction.BACK and not _is_action_still_needed(ctx, directory, action)
        ):
            return
        if action is RecoveryAction.BACK:
            delete_visible_files(ctx, lambda path: job_in_file_name(path) == job)
        if action is RecoveryAction.FORWARD and record is not None and loaded is not None:
            measure = Measure(ctx)
            rename_files(measure, record, loaded)
            if file_info(ctx, layout.SUCCESS) is None:  # else a later job wrote it (C6)
                finish_job(measure, record, loaded)
        delete_dir(ctx, job_dir(job))

    return Leftover(
        committer=_COMMITTER,
        job=job,
        active_at_s=directory.active_at_s,
        action=action,
        reason=reason,
        recover=recover_job,
        files=files,
    )


def _is_action_still_needed(ctx: CommitContext, directory: _JobDirectory, expected: RecoveryAction) -> bool:
    """Check whether the job still needs the recovery action `expected`: it may have made progress in the meantime."""
    try:
        found = _make_leftover(ctx, directory)
    except NotFoundError:
        return False  # another process has ended the job
    if found.action is not expected:
        raise ConflictError("the job has made progress: run recover again", job=directory.job, found=found.reason)
    return True


def _read_record(ctx: CommitContext, job: JobId, job_attempt: int) -> JobRecord:
    path = f"{job_dir(job)}/{job_attempt:02d}/job.json"
    return replace(decode_job(path, ctx.store.get(ctx.key(path))), job_attempt=job_attempt)


def _count_files(ctx: CommitContext, job: JobRecord, loaded: LoadedManifests) -> _FileCounts:
    """Count the job's files by state, with one listing of hidden files and one of visible files."""
    sources = dict(list_files(ctx, tasks_dir(job)))
    counts = _FileCounts()
    visible: dict[str, ObjectInfo] = {}
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        is_target = path in loaded.files
        if job_in_file_name(path) == job.job:
            counts.own += 1
            counts.orphans += not is_target
        if is_target:
            visible[path] = info
    for file in loaded.files.values():
        source, target = sources.get(file.source), visible.get(file.dest)
        is_own = job_in_file_name(file.dest) == job.job
        arrived = target is not None and is_renamed_file(file, target)
        if source is not None and is_renamed_file(file, source):
            counts.pending += 1
            counts.blocked += target is not None and not arrived and (is_own or job.mode not in REPLACING)
        elif arrived:
            counts.visible += 1
            counts.unattributed += not is_own
        else:
            counts.missing += 1
    return counts


def _choose_recovery_action(counts: _FileCounts) -> tuple[RecoveryAction, str]:
    visible, pending = counts.visible, counts.pending
    total = visible + pending + counts.missing
    if not visible and not counts.own:
        return RecoveryAction.BACK, f"none of its {total} files is visible: it is not committed"
    if visible == total and not counts.orphans:
        return RecoveryAction.CLEAN, f"all {total} files are visible"
    if visible and not (counts.missing or counts.blocked or counts.orphans):
        return RecoveryAction.FORWARD, f"its job commit had started: {visible} files are visible, {pending} are pending"
    summary = (
        f"of {total} files {visible} are visible, {pending} are pending, {counts.missing} are missing, "
        f"{counts.blocked} are blocked, and {counts.orphans} other files of the job are visible"
    )
    if counts.unattributed:
        return RecoveryAction.KEEP, f"{summary}: file names do not carry the job's id, inspect the files"
    if visible == total:
        return RecoveryAction.KEEP, f"{summary}: it is unknown which of them belong to the job, inspect the files"
    return RecoveryAction.BACK, f"{summary}: it cannot be completed"


_GUARANTEES: Mapping[str, GuaranteeAnswer] = {
    **guarantees.AS_PAPERS,
    "speculative-tasks": yes(
        "each attempt has its own directory, and one manifest per task remains", unless=guarantees.BOTH_COMMIT
    ),
    "abortable-task": yes("its directory is deleted"),
    "uncommitted-output-observable": no("it is in a hidden directory"),
    "committed-output-observable": no("its files are renamed by the job commit"),
    "atomic-task-commit": yes("it is one rename of a manifest", unless=guarantees.BOTH_COMMIT),
    "atomic-job-commit": no("it renames one file after the other"),
    "partitioned-executor": yes("its files stay in its directory", unless=guarantees.PARTITIONED),
    "C1": yes("a task that has reported but has no manifest fails the job", unless=guarantees.TWO_DRIVERS),
    "C2": yes("a manifest belongs to one attempt"),
    "C5": yes("its directory is deleted", unless=guarantees.COMMIT_BEGUN),
    "C6": yes("what a slow attempt writes stays in its directory", unless=guarantees.TWO_DRIVERS),
    "C7": yes("the name of its directory contains the job"),
    "C9": no("files that a failed job commit has renamed stay, and its abort deletes the manifests"),
    "replaced-data": no(guarantees.DELETED),
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
