"""Recovery: finish what is decided, abort what is not, remove what belongs to nobody (C9). Safe to run at any time.

A live job that recovery takes for dead is fenced by the abort entry and fails cleanly; it can never half commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.alive import OverJobs
from holdfast.commit.codec import decode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.finish import finish_decision, reap_uploads, remove_job_dirs
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.job import abort_job
from holdfast.commit.log import read_entry, read_log
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobRecord, Kind
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import iter_objects

__all__ = ["OpenJob", "RecoveryReport", "open_jobs", "recover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job that has announced itself and is not over.

    Attributes:
        record: None if its ``job.json`` cannot be read.
        active_at_s: when the store last saw the job write, seconds since the epoch.
        manifests: task attempts that have reported.
    """

    job: JobId
    record: JobRecord | None
    active_at_s: float
    manifests: int


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """What recovery did, or would do.

    Attributes:
        rolled_forward: committed jobs that are finished now.
        rolled_back: undecided jobs that are aborted now, and aborts that are finished now.
        left_alone: undecided jobs that were active too recently.
        damaged: job to sentence: committed jobs with lost files, records that cannot be read. Nothing was deleted.
        uploads_aborted, folders_removed: leftovers of jobs that were over before.
    """

    rolled_forward: list[JobId] = field(default_factory=list)
    rolled_back: list[JobId] = field(default_factory=list)
    left_alone: list[JobId] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    uploads_aborted: int = 0
    folders_removed: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing needs a person."""
        return not self.damaged


def open_jobs(ctx: CommitContext) -> Iterator[OpenJob]:
    """Jobs with a ``job.json``, oldest first. Those that are decided are among them until they are finished."""
    prefix = ctx.key(layout.JOBS)
    jobs: dict[JobId, tuple[float, int, bool]] = {}
    for info in iter_objects(ctx.store, prefix):
        name, _, rest = info.key[len(prefix) :].partition("/")
        if is_job_id(name):
            active, manifests, announced = jobs.get(JobId(name), (0.0, 0, False))
            jobs[JobId(name)] = (
                max(active, info.modified_at_s),
                manifests + rest.endswith(".jsonl") * rest.startswith("attempts/"),
                announced or rest == "job.json",
            )
    for job, (active, manifests, announced) in sorted(jobs.items()):
        if announced:
            path = layout.job_record(job)
            try:
                record = decode_job(path, ctx.store.get(ctx.key(path)))
            except NotFoundError:
                continue
            except CorruptDataError:
                record = None
            yield OpenJob(job=job, record=record, active_at_s=active, manifests=manifests)


def recover(
    ctx: CommitContext, *, older_than_s: float = 0.0, dry_run: bool = False, accept_damage: bool = False
) -> RecoveryReport:
    """Bring every job of the destination to its end.

    Guarantee: afterwards each decided job is wholly there (commit) or wholly absent (abort), each undecided job that
    was quiet for `older_than_s` is aborted, and none of these has a pending upload left. Again does nothing.

    Args:
        older_than_s: leave undecided jobs alone that wrote something more recently. Only a courtesy to live jobs:
            a live job that is aborted fails, it does not corrupt anything.
        dry_run: only report.
        accept_damage: finish committed jobs although files of theirs are lost, and note which.

    Crash: anywhere; run it again.
    """
    report = RecoveryReport()
    _finish_decided(ctx, report, dry_run, accept_damage)
    now_s = ctx.clock.now_s()
    for found in open_jobs(ctx):
        if found.job in report.damaged or found.job in report.rolled_forward or found.job in report.rolled_back:
            continue
        if found.record is None:
            report.damaged[found.job] = f"its record cannot be read, its bytes are kept: {layout.job_record(found.job)}"
        elif now_s - found.active_at_s < older_than_s:
            report.left_alone.append(found.job)
        elif dry_run:
            report.rolled_back.append(found.job)
        else:
            _end_open_job(ctx, found.record, report)
    if not dry_run:
        report.folders_removed = remove_job_dirs(ctx, OverJobs(ctx))
        report.uploads_aborted = reap_uploads(ctx)
    return report


def _finish_decided(ctx: CommitContext, report: RecoveryReport, dry_run: bool, accept_damage: bool) -> None:
    view = read_log(ctx)
    for done, seq in enumerate(view.unfinished, start=1):
        try:
            entry = read_entry(ctx, seq)
        except CorruptDataError as error:
            report.damaged[layout.log_entry(seq)] = str(error)
            continue
        try:
            if not dry_run:
                finish_decision(Measure(ctx), entry, visible=seq in view.visible, accept_damage=accept_damage)
        except CorruptDataError as error:
            report.damaged[entry.job] = str(error)
            continue
        (report.rolled_forward if entry.kind is Kind.COMMIT else report.rolled_back).append(entry.job)
        ctx.progress("decisions", done, len(view.unfinished))


def _end_open_job(ctx: CommitContext, record: JobRecord, report: RecoveryReport) -> None:
    try:
        outcome = abort_job(Measure(ctx), record)
    except CorruptDataError as error:
        report.damaged[record.job] = str(error)
        return
    (report.rolled_forward if outcome.committed else report.rolled_back).append(record.job)
