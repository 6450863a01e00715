"""Measure a job's commit or abort, and save its report."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord, JobReport
from holdfast.commit.success_file import encode_report
from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
)

_log = logging.getLogger(__name__)


def failure_report(measure: Measure, committer: str, job: JobRecord, error: BaseException) -> JobReport:
    """Return the report of a failed job: its last stage, the error and the metrics so far (scenario 74)."""
    return JobReport(
        job=job.job,
        committer=committer,
        mode=job.mode,
        at_s=measure.ctx.clock.now_s(),
        success=False,
        stage=measure.stage_name,
        metrics=measure.metrics(),
        diagnostics={
            "exception": f"{type(error).__name__}: {error}",
            "stacktrace": "".join(traceback.format_tb(error.__traceback__)),
        },
        statistics=measure.statistics(),
    )


def save_report(ctx: CommitContext, report: JobReport) -> None:
    """Save a report in the report directory, if there is one. An error is logged, never raised."""
    if ctx.reports is None:
        return
    try:
        ctx.reports.store.put(f"{ctx.reports.prefix}summary-{report.job}.json", encode_report(report))
    except HoldfastError as error:
        _log.warning("the report of job %s could not be saved in %s: %s", report.job, ctx.reports.url, error)


@contextlib.contextmanager
def measured_commit(ctx: CommitContext, committer: str, job: JobRecord) -> Iterator[Measure]:
    """Measure a job commit; save a report if it fails. Pass the outcome to `report_commit` after the ``with`` block."""
    measure = Measure(ctx)
    try:
        with measure.recorder.timed("committer_commit_job"):
            yield measure
    except Exception as error:
        save_report(ctx, failure_report(measure, committer, job, error))
        raise


def report_commit(ctx: CommitContext, measure: Measure, outcome: JobOutcome) -> JobOutcome:
    """Save the report of a job commit, and return its outcome with the statistics of all of the driver's work."""
    if outcome.report is not None:
        save_report(ctx, outcome.report)
    return replace(outcome, statistics=measure.statistics())


@contextlib.contextmanager
def measured_abort(ctx: CommitContext) -> Iterator[Measure]:
    """Measure the abort of a job. Pass the outcome to `report_abort` after the ``with`` block."""
    measure = Measure(ctx)
    with measure.stage("job_stage_abort"):
        yield measure


def report_abort(
    ctx: CommitContext, measure: Measure, committer: str, job: JobRecord, outcome: JobOutcome
) -> JobOutcome:
    """Save the report of an aborted job, unless it turned out to be committed; return the outcome."""
    if not outcome.committed:
        save_report(ctx, failure_report(measure, committer, job, InvalidRequestError("the job was aborted")))
    return outcome
