"""Recover a destination: end every interrupted job of every committer (C9). Safe to run at any time.

For jobs in the decision log, the log shows which ones to roll forward and which ones to abort. Committers without a log
search the destination for leftover data of jobs, and report which action is safe (paper 001, "Job Driver failure
during Job Commit" and "Cleaning up after complete job failure").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.commit.committer import Committer, Leftover
from holdfast.commit.context import CommitContext, CommitSettings
from holdfast.commit.hadoop_jobs import ForeignJobPolicy, end_hadoop_jobs
from holdfast.commit.ids import JobId
from holdfast.commit.recovery_report import RecoveryReport, end_leftover, is_quiet
from holdfast.commit.registry import COMMITTERS
from holdfast.commit.two_phase.recovery import recover_log
from holdfast.errors import HoldfastError

_ANYTHING = CommitSettings(allow_unsafe=True, allow_unfenced=True)


def recover(
    ctx: CommitContext,
    *,
    older_than_s: float = 0.0,
    dry_run: bool = False,
    accept_damage: bool = False,
    foreign: ForeignJobPolicy | None = None,
    committers: Iterable[Committer] = tuple(COMMITTERS.values()),
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
            commit Hadoop jobs even if some of their tasks may be missing.
        foreign: how to end dead jobs of Hadoop's own committers; None to ignore them.
        committers: search for undecided jobs of these committers.

    Raises:
        HoldfastError: the store cannot be read.

    Crash: anywhere; run it again.
    """
    report = RecoveryReport()
    recover_log(ctx, report, older_than_s=older_than_s, dry_run=dry_run, accept_damage=accept_damage)
    for committer in committers:
        try:
            leftovers = find_leftovers(ctx, committer)
        except HoldfastError as error:
            report.add_failure(committer.name, error)
            continue
        for leftover in leftovers:
            reported = {job.job for job in report.jobs} | report.damaged.keys() | report.pending.keys()
            if leftover.job not in reported:
                quiet = is_quiet(leftover.active_at_s, ctx.clock.now_s(), older_than_s)
                end_leftover(report, leftover, is_alive=not quiet, dry_run=dry_run)
    if foreign is not None:
        end_hadoop_jobs(ctx, report, foreign, dry_run=dry_run, insist=accept_damage)
    return report


def find_leftovers(ctx: CommitContext, committer: Committer) -> list[Leftover]:
    """List the leftovers that a committer without a log finds; none if the committer cannot run on this store.

    Raises:
        CorruptDataError: a record that the committer needs cannot be read.
    """
    if committer.refusal(ctx.store.capabilities, _ANYTHING):
        return []
    if committer.staging and ctx.staging is None:
        return []
    recorded = frozenset(_recorded_jobs(ctx)) if committer.adopts_uploads else frozenset()
    return list(committer.find_leftovers(ctx, recorded))


def _recorded_jobs(ctx: CommitContext) -> Iterator[JobId]:
    for committer in COMMITTERS.values():
        yield from committer.recorded_jobs(ctx)
