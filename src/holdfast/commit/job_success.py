"""Write a job's report to ``_SUCCESS``, and check which job ``_SUCCESS`` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord, JobReport, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT, SuccessReport, encode_report, read_success
from holdfast.errors import CorruptDataError


def succeed(
    measure: Measure,
    job: JobRecord,
    *,
    totals: Totals,
    tasks: int,
    paths: Iterable[str],
    statistics: Statistics = NO_STATISTICS,
    save: Callable[[CommitContext, bytes], None] | None = None,
) -> JobOutcome:
    """Write the report of a successful job to ``_SUCCESS``, unless the settings disable it; return the outcome.

    Args:
        tasks: the number of committed tasks.
        paths: the job's files, relative to the destination. The report names only the first hundred.
        statistics: the statistics of the tasks.
        save: writes the report; if None, a plain put does.
    """
    ctx = measure.ctx
    names: list[str] = []
    for path in paths:
        if len(names) == FILENAME_LIMIT:
            break
        names.append("/" + ctx.key(path).lstrip("/"))
    with measure.stage("job_stage_save_success_marker"):
        report = JobReport(
            job=job.job,
            committer=job.committer,
            mode=job.mode,
            at_s=round(ctx.clock.now_s(), 3),
            success=True,
            stage=measure.stage_name,
            totals=totals,
            tasks=tasks,
            filenames=tuple(names),
            metrics=measure.metrics(),
            diagnostics={f"holdfast.{name}": str(job.details[name]) for name in ("token",) if name in job.details},
            statistics=statistics + measure.statistics(),
        )
        if ctx.settings.hadoop.mark_successful_jobs:
            (save or _put_report)(ctx, encode_report(report))
    return JobOutcome(job=job.job, committed=True, totals=totals, report=report)


def _put_report(ctx: CommitContext, data: bytes) -> None:
    ctx.store.put(ctx.key(layout.SUCCESS), data)


def names_job(report: SuccessReport | None, job: str) -> bool:
    """Check whether a ``_SUCCESS`` report names `job`, which has then finished everything except its cleanup."""
    return report is not None and report.get("jobId") == job


def has_succeeded(ctx: CommitContext, job: str) -> bool:
    """Check whether ``_SUCCESS`` names this job. A report that cannot be parsed names no job."""
    try:
        return names_job(read_success(ctx), job)
    except CorruptDataError:
        return False
