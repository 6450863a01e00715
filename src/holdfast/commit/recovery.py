"""Recover a destination: end every interrupted job of every committer (C9). Safe to run at any time.

For jobs in the decision log, the log shows which ones to roll forward and which ones to abort. Committers without a log
search the destination for leftover data of jobs, and report which action is safe (paper 001, "Job Driver failure
during Job Commit" and "Cleaning up after complete job failure").
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator
from functools import partial

from holdfast.commit.committer import UNFENCED, Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.layout import iter_folders_above
from holdfast.commit.leftovers import (
    ForeignJobPolicy,
    Leftover,
    RecoveryAction,
    RecoveryReport,
    end_leftover_job,
    is_job_quiet,
)
from holdfast.commit.registry import FOREIGN, installed_committers
from holdfast.commit.task import abort_uploads_with_job_id, group_uploads_by_job_id
from holdfast.commit.two_phase.recovery import recover_logged_jobs
from holdfast.errors import HoldfastError

UNKNOWN = "unknown"
"""Stands for the committer of a job of which only uploads are left."""


def recover(
    ctx: CommitContext,
    *,
    older_than_s: float = 0.0,
    dry_run: bool = False,
    accept_damage: bool = False,
    foreign: ForeignJobPolicy | None = None,
    committers: Collection[Committer] | None = None,
) -> RecoveryReport:
    """End every interrupted job of the destination.

    Guarantee: afterwards the output of every job that the log has decided is completely visible (commit) or completely
    absent (abort), every undecided job of the log that was quiet for `older_than_s` is aborted, and none of these jobs
    has a pending upload left. A job of a committer without a log is rolled forward only if the committer can prove that
    no file is missing or replaced; if its outcome is unknown, recovery leaves it for a person to decide. If ending one
    job fails, the others are still ended. Idempotent.

    Args:
        ctx: the destination. Jobs of `staging-*` are found only if `CommitContext.staging` is set.
        older_than_s: spare undecided jobs that wrote something more recently. For jobs of the log this is only a
            courtesy: if a live job is aborted, it fails and corrupts nothing. For other jobs, nothing else prevents
            recovery from interfering with a live driver.
        dry_run: change nothing, and report what recovery would do.
        accept_damage: roll committed jobs forward even if some of their files are lost, and record the lost files;
            abort foreign jobs even if some of their records are lost.
        foreign: whether to abort dead jobs of other systems' committers, such as Hadoop's own; None to ignore them.
        committers: search for undecided jobs of these committers; None for all.

    Raises:
        HoldfastError: the store cannot be read.

    Crash: anywhere; run it again.
    """
    report = RecoveryReport()
    recover_logged_jobs(ctx, report, older_than_s=older_than_s, dry_run=dry_run, accept_damage=accept_damage)
    for leftover in find_leftovers(ctx, committers, on_error=report.add_failure):
        reported = {job.job for job in report.jobs} | report.damaged.keys() | report.pending.keys()
        if leftover.job not in reported:
            quiet = is_job_quiet(leftover.active_at_s, ctx.clock.now_s(), older_than_s)
            end_leftover_job(report, leftover, is_alive=not quiet, dry_run=dry_run)
    if foreign is not None:
        for system in FOREIGN:
            system.end(ctx, report, foreign, dry_run, accept_damage)
    return report


def _raise_error(what: str, error: HoldfastError) -> None:
    raise error


def find_leftovers(
    ctx: CommitContext,
    committers: Collection[Committer] | None = None,
    *,
    on_error: Callable[[str, HoldfastError], None] = _raise_error,
) -> Iterator[Leftover]:
    """List the leftovers of committers without a log, then jobs of which only uploads are left (`_find_orphaned_jobs`).

    Committers that cannot run on this store are skipped.

    Args:
        committers: the committers to ask; None for all.
        on_error: called with the name of a committer whose search failed, and the error; if it returns, the search
            continues with the next one. The error is `CorruptDataError` if a record that the committer needs cannot be
            read.
    """
    asked = list(installed_committers().values() if committers is None else committers)
    able = [
        one
        for one in asked
        if not one.explain_misfit(ctx.store.capabilities, UNFENCED) and (ctx.staging is not None or not one.staging)
    ]
    searches = [(one.name, one.find_leftovers) for one in able] + [("uploads", partial(_find_orphaned_jobs, able))]
    for name, search in searches:
        try:
            found = list(search(ctx))
        except HoldfastError as error:
            on_error(name, error)
            continue
        yield from found


def _find_orphaned_jobs(committers: Collection[Committer], ctx: CommitContext) -> Iterator[Leftover]:
    """List jobs that have only uploads: the names of their files contain a job's id, and no committer has records.

    A job that is alive may look the same before its first task commit, and so does a job of `staging-*` whose shared
    directory is not accessible. Only the age of the uploads distinguishes them.
    """
    if ctx.store.capabilities.multipart is None:
        return
    for job, uploads in sorted(group_uploads_by_job_id(ctx).items()):
        above = list(iter_folders_above(posixpath.commonprefix([upload.key for upload in uploads])))
        if not any(committer.knows_job(ctx, job, above) for committer in committers):
            yield Leftover(
                committer=UNKNOWN,
                job=job,
                active_at_s=max(upload.initiated_at_s for upload in uploads),
                action=RecoveryAction.BACK,
                reason="its uploads are pending and it has no records",
                recover=partial(abort_uploads_with_job_id, ctx, job),
                uploads=len(uploads),
            )
