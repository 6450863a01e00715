"""Verify a destination against its log, ``_SUCCESS`` and pending uploads."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop_jobs import QUIET_S, describe, find_hadoop_jobs
from holdfast.commit.ids import JobId, file_owner
from holdfast.commit.intents import find_announcers
from holdfast.commit.records import Kind, Totals
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.success_file import read_success, report_seq
from holdfast.commit.two_phase.history import Decision, History, read_history
from holdfast.commit.two_phase.live_jobs import LiveJobs
from holdfast.commit.two_phase.pending_uploads import find_uploads
from holdfast.commit.two_phase.publication import UPLOADS
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.wording import counted

__all__ = ["VerifyReport", "verify"]


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """The result of `verify`.

    Attributes:
        problems: one sentence for each problem; empty if there are none.
        notes: one sentence for each fact that is not a problem but worth knowing.
        totals: number and bytes of the visible files; rows are not counted.
        jobs: how many committed jobs were checked.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    jobs: int = 0
    pending_uploads: int = 0

    @property
    def verified(self) -> bool:
        return not self.problems


def verify(ctx: CommitContext) -> VerifyReport:
    """Compare the log with the listing, ``_SUCCESS`` and pending uploads.

    Guarantee: this only reads. Every job in the log must have exactly the files and bytes that it committed, except for
    files that later jobs replaced; aborted and undecided jobs must have none.
    """
    history = read_history(ctx)
    found, foreign = _count_files(ctx)
    report = VerifyReport()
    expected = _expected(history)
    for job, (files, size) in expected.items():
        has = found.pop(job, Totals())
        report.jobs += 1
        if (has.files, has.size_bytes) != (files, size):
            report.problems.append(
                f"job {job} should have {counted(files, 'file')} and {size:,} bytes and has "
                f"{counted(has.files, 'file')} and {has.size_bytes:,} bytes: restore the difference, or use mode "
                "overwrite, which deletes all that is there"
            )
        report.totals += has
    _judge_others(history, found, report)
    if foreign.files:
        chosen = any(decision.entry.chosen.files for decision in history.decisions)
        report.notes.append(
            f"the names of {counted(foreign.files, 'file')} do not contain a job id"
            + ("" if chosen else ": no job in Holdfast's log wrote them")
        )
        report.totals += foreign
    for decision in history.decisions:
        if decision.state != "done":
            report.problems.append(_unfinished(ctx, decision))
    _judge_success(ctx, history, report)
    _judge_pending(ctx, history, report)
    _judge_hadoop(ctx, report)
    return report


def _unfinished(ctx: CommitContext, decision: Decision) -> str:
    entry = decision.entry
    sentence = f"job {entry.job} is {entry.kind.value}ted but not finished"
    if decision.state == "decided" and entry.kind is Kind.COMMIT and entry.record.publication == UPLOADS.name:
        hours = int((ctx.clock.now_s() - entry.decided_at_s) / 3600)
        age = f" for {hours} h" if hours > 0 else ""
        sentence += (
            f", its files have been pending uploads{age}, and servers abort idle uploads (MinIO after 24 hours, others "
            "by a lifecycle rule of the bucket)"
        )
    return f"{sentence}: run holdfast recover"


def _count_files(ctx: CommitContext) -> tuple[dict[JobId, Totals], Totals]:
    found: dict[JobId, Totals] = {}
    foreign = Totals()
    for file in read_snapshot(ctx).files:
        one = Totals(files=1, size_bytes=file.size_bytes)
        owner = file_owner(file.path)
        if owner is None:
            foreign += one
        else:
            found[owner.job] = found.get(owner.job, Totals()) + one
    return found, foreign


def _expected(history: History) -> dict[JobId, tuple[int, int]]:
    """Compute the number of files and bytes that each committed job must have, by replaying the log."""
    expected: dict[JobId, tuple[int, int]] = {}
    for decision in history.decisions:
        entry = decision.entry
        if entry.kind is not Kind.COMMIT or decision.state == "decided":
            continue
        if entry.record.mode is SaveMode.OVERWRITE:
            expected = dict.fromkeys(expected, (0, 0))
        for job, (files, size) in entry.replaced_by_job.items():
            if (had := expected.get(JobId(job))) is not None:
                expected[JobId(job)] = (had[0] - files, had[1] - size)
        named = entry.totals.files - entry.chosen.files, entry.totals.size_bytes - entry.chosen.size_bytes
        expected[entry.job] = named
    return expected


def _judge_others(history: History, found: dict[JobId, Totals], report: VerifyReport) -> None:
    decided = {decision.entry.job: decision for decision in history.decisions}
    complete = not history.decisions or history.decisions[0].entry.seq == 1
    overwritten = any(
        decision.entry.record.mode is SaveMode.OVERWRITE and decision.entry.kind is Kind.COMMIT
        for decision in history.decisions
    )
    undecided = {job.job for job in history.open_jobs}
    for job, totals in found.items():
        report.totals += totals
        if job in decided or job in undecided or complete or overwritten:
            report.problems.append(
                f"{totals.files} of the visible files belong to job {job}, which did not commit them"
            )
        else:
            report.notes.append(
                f"{totals.files} of the visible files belong to job {job}, whose log entry has been trimmed"
            )


def _judge_success(ctx: CommitContext, history: History, report: VerifyReport) -> None:
    commits = [d.entry for d in history.decisions if d.entry.kind is Kind.COMMIT and d.state == "done"]
    if not commits:
        return
    success = read_success(ctx)
    newest = commits[-1]
    if success is None:
        report.problems.append("_SUCCESS is missing although a job committed: something deleted it")
    elif report_seq(success) == 0:
        report.notes.append("_SUCCESS was written by another tool after the last job")
    elif success.get("jobId") != newest.job:
        report.problems.append(f"_SUCCESS describes job {success.get('jobId')}, but the last job is {newest.job}")


def _judge_pending(ctx: CommitContext, history: History, report: VerifyReport) -> None:
    for job in history.open_jobs:
        report.notes.append(
            f"job {job.job} is undecided: running, or dead (then run holdfast recover, with --older-than 0s to end it "
            "at once)"
        )
    if ctx.store.capabilities.multipart is None:
        return
    jobs = LiveJobs(ctx)
    found = find_uploads(ctx)
    report.pending_uploads = len(found.uploads)
    if found.note:
        report.notes.append(found.note)
    announcers = find_announcers(ctx, found.uploads)
    for upload in found.uploads:
        owner = layout.job_of(upload.key)
        owners = sorted(announcers.get(upload.key, ()) if owner is None else (owner,))
        if owners and all(jobs.has_ended(one, upload.key) for one in owners):
            report.notes.append(f"an upload of finished job {owners[0]} is pending: run holdfast recover")


def _judge_hadoop(ctx: CommitContext, report: VerifyReport) -> None:
    """Report Hadoop's jobs: as problems if they are partly visible or dead, as notes if they may be running."""
    for found in find_hadoop_jobs(ctx):
        if not found.is_over:
            left = found.leftover
            is_dead = ctx.clock.now_s() - left.active_at_s >= QUIET_S
            (report.problems if left.files or is_dead else report.notes).append(describe(left))
