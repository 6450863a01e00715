"""Summarize a committed job for the report in ``_SUCCESS``."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobReport
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT
from holdfast.commit.two_phase.checksums import ChecksumList
from holdfast.commit.two_phase.manifests import committed_manifests
from holdfast.commit.two_phase.records import LogEntry, TaskManifest
from holdfast.errors import CorruptDataError, NotFoundError


@dataclass(slots=True)
class JobSummary:
    """The facts that the job's report and its mark ``visible`` take from the committed manifests.

    Attributes:
        names: keys of the first files.
        statistics: the statistics of all tasks.
        checksums: the checksums of all files, for the mark ``visible``.
        lost: files that are neither pending nor visible, and manifests that cannot be read.
    """

    names: list[str] = field(default_factory=list)
    statistics: Statistics = NO_STATISTICS
    checksums: ChecksumList = field(default_factory=ChecksumList)
    lost: list[str] = field(default_factory=list)

    def note(self, ctx: CommitContext, manifest: TaskManifest) -> None:
        """Add the files and the statistics of a task."""
        self.statistics += manifest.statistics
        for file in manifest.files:
            self.checksums.add(file)
        for file in manifest.files[: FILENAME_LIMIT - len(self.names)]:
            self.names.append("/" + ctx.key(file.path).lstrip("/"))


def summarize(ctx: CommitContext, entry: LogEntry) -> JobSummary:
    """Read the committed manifests for the report; return an empty summary if any is already deleted or damaged."""
    summary = JobSummary()
    try:
        for manifest in committed_manifests(ctx, entry):
            summary.note(ctx, manifest)
    except (NotFoundError, CorruptDataError):
        return JobSummary()
    return summary


def report_job(measure: Measure, entry: LogEntry, summary: JobSummary, lost: int = 0) -> JobReport:
    """Return the report of a committed job.

    Args:
        measure: measures the job commit or recovery that writes the report.
        lost: how many files are lost.
    """
    return JobReport(
        job=entry.job,
        committer=entry.record.committer,
        mode=entry.record.mode,
        at_s=entry.decided_at_s,
        success=True,
        stage="job_stage_save_success_marker",
        totals=entry.totals,
        tasks=entry.tasks,
        filenames=tuple(summary.names),
        metrics={**measure.metrics(), "files_lost": lost},
        diagnostics={"holdfast.seq": str(entry.seq), "holdfast.publication": entry.record.publication},
        statistics=summary.statistics + measure.statistics(),
    )
