"""Write and read job reports, in the JSON format of Hadoop's S3A and manifest committers and their tools.

A successful job writes its report to ``_SUCCESS``. Every job also writes a report to the report directory, if there is
one.
"""

from __future__ import annotations

import itertools
import json
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.records import JobOutcome, JobRecord, JobReport, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics, encode_statistics
from holdfast.errors import (
    MALFORMED,
    CorruptDataError,
    HoldfastError,
    NotFoundError,
    PreconditionError,
    UnsupportedError,
)
from holdfast.stores.base import Create, Overwrite, PutMode, Update
from holdfast.wording import parse_digits

FILENAME_LIMIT = 100
"""The most files that a report lists, as in Hadoop (SUCCESS_MARKER_FILE_LIMIT)."""

_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
_log = logging.getLogger(__name__)

SuccessReport = Mapping[str, object]


def encode_report(report: JobReport) -> bytes:
    """Encode a report as Hadoop's ``SuccessData``, with the fields and types that its reader expects."""
    when = datetime.fromtimestamp(report.at_s, tz=timezone.utc)
    totals = report.totals
    counted = {
        "committer_files_committed": totals.files,
        "committer_bytes_committed": totals.size_bytes,
        "committer_jobs_completed": int(report.success),
        "committer_jobs_failed": int(not report.success),
    }
    statistics = encode_statistics(report.statistics)
    document = {
        "name": _NAME,
        "timestamp": int(report.at_s * 1000),
        "success": report.success,
        "date": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "hostname": socket.gethostname(),
        "committer": report.committer,
        "description": "Holdfast",
        "jobId": report.job,
        "jobIdSource": "holdfast",
        "state": "committed" if report.success else "failed",
        "stage": report.stage,
        "metrics": {
            "files": totals.files,
            "bytes": totals.size_bytes,
            "rows": totals.rows,
            "tasks": report.tasks,
            **report.metrics,
        },
        "diagnostics": {"holdfast.mode": report.mode.value, **report.diagnostics},
        "filenames": list(report.filenames),
        "iostatistics": {**statistics, "counters": {**statistics["counters"], **counted}},
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def read_success_file(ctx: CommitContext) -> SuccessReport | None:
    """Read the report in ``_SUCCESS``; None if there is no file, an empty mapping if the file is empty.

    Hadoop's FileOutputCommitter writes an empty file.

    Raises:
        CorruptDataError: the file is not a report in this format.
    """
    try:
        data = ctx.store.get(ctx.key(layout.SUCCESS))
    except NotFoundError:
        return None
    return parse_success_file(layout.SUCCESS, data)


def parse_success_file(key: str, data: bytes) -> SuccessReport:
    """Parse a report and keep unknown fields; raise `CorruptDataError`, with `key`, if it is not in Hadoop's format."""
    if not data.strip():
        return {}
    try:
        report = json.loads(data)
        if not isinstance(report, dict) or not str(report["name"]).startswith(_NAME.rpartition("/")[0]):
            raise ValueError("not a success report")
    except MALFORMED as error:
        raise CorruptDataError("the success report cannot be read; its bytes are kept", key=key) from error
    return report


def get_decision_number(report: SuccessReport | None) -> int:
    """Return the number of the decision that a report describes; 0 if another tool wrote the report."""
    diagnostics = (report or {}).get("diagnostics")
    text = diagnostics.get("holdfast.seq") if isinstance(diagnostics, dict) else None
    return (parse_digits(text) if isinstance(text, str) else None) or 0


def write_success_file(ctx: CommitContext, report: JobReport, seq: int) -> None:
    """Write ``_SUCCESS`` for decision `seq`, unless the file already describes a later decision (C6).

    So a slow process that rolls an earlier decision forward does not replace the report of a later job.

    Requires: every file of the job is visible.
    """
    key = ctx.key(layout.SUCCESS)
    data = encode_report(report)
    if ctx.settings.allow_unfenced:
        ctx.store.put(key, data, Overwrite())
        return
    # Before a destination's first decision there is rarely a report, so try to create it without reading.
    mode: PutMode | None = Create() if seq == 1 else _choose_put_mode(ctx, key, seq, "")
    for _ in range(8):
        if mode is None:
            return
        try:
            ctx.store.put(key, data, mode)
            return
        except PreconditionError:
            mode = _choose_put_mode(ctx, key, seq, mode.etag if isinstance(mode, Update) else "")
        except UnsupportedError:
            if not isinstance(mode, Update):
                raise
            mode = Overwrite()  # the server supports only Create: rely on the check above
    # Another process keeps rewriting the file. Give up: the log is authoritative, this file is only informational.


def _choose_put_mode(ctx: CommitContext, key: str, seq: int, refused: str) -> PutMode | None:
    """Return the put mode that replaces the report at `key`; None if the report is that of a later decision.

    Args:
        refused: the etag for which the store has just refused a put; empty if there is none.
    """
    try:
        found = ctx.store.head(key)
        if get_decision_number(_parse_report_leniently(key, ctx.store.get(key))) > seq:
            return None
    except NotFoundError:
        return Create()
    # Some servers refuse even the current etag (radosgw 16.2). If the etag has not changed since, overwrite.
    return Overwrite() if found.etag == refused else Update(found.etag)


def _parse_report_leniently(key: str, data: bytes) -> SuccessReport | None:
    """Parse a report; return None if it is damaged, so that a commit replaces it instead of failing."""
    try:
        return parse_success_file(key, data)
    except CorruptDataError:
        return None


def write_success_report(
    measure: Measure,
    job: JobRecord,
    *,
    totals: Totals,
    tasks: int,
    paths: Iterable[str],
    statistics: Statistics = NO_STATISTICS,
    limit: int = FILENAME_LIMIT,
) -> JobOutcome:
    """Write the report of a successful job to ``_SUCCESS``, and return the outcome.

    Args:
        tasks: the number of committed tasks.
        paths: the job's files, relative to the destination. The report names only the first `limit`.
        statistics: the statistics of the tasks.
    """
    ctx = measure.ctx
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
            filenames=tuple("/" + ctx.key(path).lstrip("/") for path in itertools.islice(paths, limit)),
            metrics=measure.metrics(),
            diagnostics={f"holdfast.{name}": str(job.details[name]) for name in ("token",) if name in job.details},
            statistics=statistics + measure.statistics(),
        )
        ctx.store.put(ctx.key(layout.SUCCESS), encode_report(report))
    return JobOutcome(job=job.job, committed=True, totals=totals, report=report)


def clean_up_after_job(measure: Measure, outcome: JobOutcome, clean_up: Callable[[], object]) -> JobOutcome:
    """Clean up after a job that has ended, and return its outcome.

    An error is not raised but added to the outcome: an abort must not hide the error that caused it, and a committed
    job stays committed (paper 000, XI).
    """
    try:
        with measure.recorder.time_block("job_stage_cleanup"):  # a failed job's report names the stage before
            clean_up()
    except HoldfastError as error:
        _log.warning("the cleanup of job %s in %s is incomplete (%s)", outcome.job, measure.ctx.url, error)
        reason = f"cleanup is incomplete, run holdfast recover: {error.message}"
        return replace(outcome, finished=False, pending_reason=reason)
    return outcome


def is_job_named_in_report(report: SuccessReport | None, job: str) -> bool:
    """Check whether a ``_SUCCESS`` report names `job`; if so, the job has finished all but its cleanup."""
    return report is not None and report.get("jobId") == job


def has_job_succeeded(ctx: CommitContext, job: str) -> bool:
    """Check whether ``_SUCCESS`` names this job. A report that cannot be parsed names no job."""
    try:
        return is_job_named_in_report(read_success_file(ctx), job)
    except CorruptDataError:
        return False
