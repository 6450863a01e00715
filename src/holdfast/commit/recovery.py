"""Recovery: bring every job of a destination to its end, whichever committer it had (C9). Safe to run at any time.

Jobs of the decision log are finished or aborted by it. Committers that keep no log say what they find below the
destination and what may be done about it (paper 001, "Job Driver failure during Job Commit" and "Cleaning up after
complete job failure").
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

__all__ = ["find_leftovers", "recover"]

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
    """Bring every job of the destination to its end.

    Guarantee: afterwards each decided job of the log is wholly there (commit) or wholly absent (abort), each undecided
    job that was quiet for `older_than_s` is aborted, and none of these has a pending upload left. A job without a log
    goes forward only where its committer can prove that nothing is missing or replaced; what nobody can tell is kept.
    One job's trouble does not keep the others from their end. Again does nothing.

    Args:
        ctx: with `CommitContext.staging`, or jobs of `staging-*` are not looked for.
        older_than_s: leave jobs without a decision alone that wrote something more recently. For jobs of the log that
            is only a courtesy: a live one that is aborted fails, it does not corrupt anything. For others it is what
            keeps recovery and a live driver apart.
        dry_run: only report.
        accept_damage: finish committed jobs although files of theirs are lost, and note which; commit jobs of Hadoop
            although tasks of theirs may be missing.
        foreign: what becomes of dead jobs of Hadoop's own committers; None: they are not looked for.
        committers: whose jobs without a decision are looked for.

    Raises:
        HoldfastError: the store cannot be looked at.

    Crash: anywhere; run it again.
    """
    report = RecoveryReport()
    recover_log(ctx, report, older_than_s=older_than_s, dry_run=dry_run, accept_damage=accept_damage)
    for committer in committers:
        try:
            leftovers = find_leftovers(ctx, committer)
        except HoldfastError as error:
            report.damaged[committer.name] = str(error)
            continue
        for leftover in leftovers:
            told = {job.job for job in report.jobs} | report.damaged.keys() | report.pending.keys()
            if leftover.job not in told:
                quiet = is_quiet(leftover.active_at_s, ctx.clock.now_s(), older_than_s)
                end_leftover(report, leftover, is_alive=not quiet, dry_run=dry_run)
    if foreign is not None:
        end_hadoop_jobs(ctx, report, foreign, dry_run=dry_run, insist=accept_damage)
    return report


def find_leftovers(ctx: CommitContext, committer: Committer) -> list[Leftover]:
    """What a committer that keeps no log finds below the destination; nothing where it can never have run.

    Raises:
        CorruptDataError: it cannot tell, because a record cannot be read.
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
