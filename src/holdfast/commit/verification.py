"""Verify a destination against its log, ``_SUCCESS``, pending uploads and, on request, the checksums of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, file_owner
from holdfast.commit.intents import find_owning_jobs
from holdfast.commit.leftovers import FOREIGN_QUIET_S
from holdfast.commit.records import Kind, SaveMode, Totals
from holdfast.commit.registry import FOREIGN
from holdfast.commit.success_file import get_decision_number, read_success_file
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.pending_uploads import LiveJobs, find_uploads
from holdfast.commit.two_phase.publication import UPLOADS
from holdfast.commit.two_phase.recovery import Decision, History, read_history
from holdfast.commit.two_phase.snapshot import VisibleFile, find_damaged_files, read_checksums, read_snapshot
from holdfast.errors import CorruptDataError, NotFoundError, UnavailableError
from holdfast.wording import format_count

_ATTEMPTS = 50


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """The result of `verify`.

    Attributes:
        problems: one sentence for each problem; empty if there are none.
        notes: one sentence for each fact that is not a problem but worth knowing.
        totals: number and bytes of the visible files; rows are not counted.
        jobs: how many committed jobs were checked.
        files_read: how many files were read and compared with their checksums.
        without_checksum: how many files were not read, because no job in the log wrote them.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    jobs: int = 0
    pending_uploads: int = 0
    files_read: int = 0
    without_checksum: int = 0

    @property
    def verified(self) -> bool:
        return not self.problems


def verify(ctx: CommitContext, *, read: bool = False) -> VerifyReport:
    """Compare the log with the listing, ``_SUCCESS`` and pending uploads.

    Guarantee: this only reads. Every job in the log must have exactly the files and bytes that it committed, except for
    files that later jobs replaced; aborted and undecided jobs must have none.

    Args:
        read: read the files, and compare them with the checksums that their tasks computed when they wrote them.

    Raises:
        UnavailableError: jobs are decided faster than the log and the files can be listed. Call this again.
        CorruptDataError: a log record cannot be read.
    """
    history, listed, success = _read_consistently(ctx)
    found, foreign = _count_files(listed)
    report = VerifyReport()
    expected = _compute_expected_totals(history)
    for job, (files, size) in expected.items():
        has = found.pop(job, Totals())
        report.jobs += 1
        if (has.files, has.size_bytes) != (files, size):
            report.problems.append(
                f"job {job} should have {format_count(files, 'file')} and {size:,} bytes and has "
                f"{format_count(has.files, 'file')} and {has.size_bytes:,} bytes: restore the difference, or use mode "
                "overwrite, which deletes all that is there"
            )
        report.totals += has
    _judge_uncommitted_files(history, found, report)
    if foreign.files:
        chosen = any(decision.entry.chosen.files for decision in history.decisions)
        report.notes.append(
            f"the names of {format_count(foreign.files, 'file')} do not contain a job id"
            + ("" if chosen else ": no job in Holdfast's log wrote them")
        )
        report.totals += foreign
    for decision in history.decisions:
        if decision.state != "done":
            report.problems.append(_describe_unfinished(ctx, decision))
    _judge_success_file(success, history, report)
    _judge_pending_uploads(ctx, history, report)
    _judge_foreign_jobs(ctx, report)
    if read:
        _judge_contents(ctx, history, listed, report)
    return report


def _read_consistently(ctx: CommitContext) -> tuple[History, tuple[VisibleFile, ...], Mapping[str, object] | None]:
    """Return the decisions, the files and ``_SUCCESS`` of one moment: the log did not change while they were read."""
    for _ in range(_ATTEMPTS):
        before = read_log(ctx)
        try:
            found = read_history(ctx), read_snapshot(ctx).files, read_success_file(ctx)
        except NotFoundError:
            if read_log(ctx) == before:
                raise
            continue  # an entry was trimmed after it was listed
        if read_log(ctx) == before:
            return found
    raise UnavailableError("jobs are decided faster than the destination is listed: verify again", url=ctx.url)


def _describe_unfinished(ctx: CommitContext, decision: Decision) -> str:
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


def _count_files(files: Iterable[VisibleFile]) -> tuple[dict[JobId, Totals], Totals]:
    found: dict[JobId, Totals] = {}
    foreign = Totals()
    for file in files:
        one = Totals(files=1, size_bytes=file.size_bytes)
        owner = file_owner(file.path)
        if owner is None:
            foreign += one
        else:
            found[owner.job] = found.get(owner.job, Totals()) + one
    return found, foreign


def _compute_expected_totals(history: History) -> dict[JobId, tuple[int, int]]:
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


def _judge_uncommitted_files(history: History, found: dict[JobId, Totals], report: VerifyReport) -> None:
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


def _judge_success_file(success: Mapping[str, object] | None, history: History, report: VerifyReport) -> None:
    commits = [d.entry for d in history.decisions if d.entry.kind is Kind.COMMIT and d.state == "done"]
    if not commits:
        return
    newest = commits[-1]
    if success is None:
        report.problems.append("_SUCCESS is missing although a job committed: something deleted it")
    elif get_decision_number(success) == 0:
        report.notes.append("_SUCCESS was written by another tool after the last job")
    elif success.get("jobId") != newest.job:
        report.problems.append(f"_SUCCESS describes job {success.get('jobId')}, but the last job is {newest.job}")


def _judge_pending_uploads(ctx: CommitContext, history: History, report: VerifyReport) -> None:
    for job in history.open_jobs:
        report.notes.append(
            f"job {job.job} is undecided: running, or dead (then run holdfast recover; --older-than 0s ends it at "
            "once, and every other undecided job)"
        )
    if ctx.store.capabilities.multipart is None:
        return
    jobs = LiveJobs(ctx)
    found, note = find_uploads(ctx)
    report.pending_uploads = len(found)
    if note:
        report.notes.append(note)
    owners_of = find_owning_jobs(ctx, found)
    for upload in found:
        owners = owners_of(upload.key)
        if owners and all(jobs.has_ended(one, upload.key) for one in owners):
            report.notes.append(f"an upload of finished job {owners[0]} is pending: run holdfast recover")


def _judge_foreign_jobs(ctx: CommitContext, report: VerifyReport) -> None:
    """Report other systems' jobs: as problems if they are partly visible or dead, as notes if they may be running."""
    for system in FOREIGN:
        for found in system.find(ctx, False, False):
            if not found.is_over:
                left = found.leftover
                is_dead = ctx.clock.now_s() - left.active_at_s >= FOREIGN_QUIET_S
                (report.problems if left.files or is_dead else report.notes).append(system.describe(left))


def _judge_contents(ctx: CommitContext, history: History, files: Sequence[VisibleFile], report: VerifyReport) -> None:
    """Read the files whose checksums the log has. A file that has been replaced since it was listed does not count."""
    visible = {file.path for file in files}
    checksums: dict[str, int] = {}
    for decision in history.decisions:
        if decision.entry.kind is Kind.COMMIT and decision.state != "decided":
            try:
                sums = read_checksums(ctx, decision.entry.seq)
                checksums.update((path, crc32) for path, crc32 in sums if path in visible)
            except CorruptDataError as error:
                report.problems.append(f"the checksums of job {decision.entry.job} cannot be read: {error}")
    changed = list(find_damaged_files(ctx, (file for file in files if file.path in checksums), checksums))
    still = {(file.path, file.etag) for file in read_snapshot(ctx).files} if changed else set()
    report.problems += [
        f"the bytes of {file.path} are not those that were committed: restore the file, or write its rows again in "
        "place of the old ones"
        for file in changed
        if (file.path, file.etag) in still
    ]
    report.files_read = len(checksums)
    report.without_checksum = len(files) - len(checksums)
    if report.without_checksum:
        report.notes.append(
            f"{format_count(report.without_checksum, 'file')} of {len(files):,} have no checksum and were not read: no "
            "job that is still in the log wrote them"
        )
