"""Reports of jobs, in the JSON that Hadoop's S3A and manifest committers write and their tools read.

One goes to ``_SUCCESS`` when a job has ended well, one to the report directory, if there is one, however it ended.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from datetime import datetime, timezone

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.statistics import encode_statistics
from holdfast.commit.records import JobReport
from holdfast.errors import CorruptDataError, NotFoundError, PreconditionError, UnsupportedError
from holdfast.stores.base import Create, Overwrite, PutMode, Update

__all__ = [
    "FILENAME_LIMIT",
    "SuccessReport",
    "encode_report",
    "parse_success",
    "read_success",
    "report_seq",
    "write_success",
]

FILENAME_LIMIT = 100
"""Hadoop lists at most this many files (SUCCESS_MARKER_FILE_LIMIT)."""

_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
_log = logging.getLogger(__name__)

SuccessReport = Mapping[str, object]


def encode_report(report: JobReport) -> bytes:
    """A report as Hadoop's ``SuccessData``: the fields and types that its reader asks for."""
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


def read_success(ctx: CommitContext) -> SuccessReport | None:
    """The destination's report: None if there is none, empty if it is the empty file of a classic committer.

    Raises:
        CorruptDataError: it is not JSON of this kind.
    """
    try:
        data = ctx.store.get(ctx.key(layout.SUCCESS))
    except NotFoundError:
        return None
    return parse_success(layout.SUCCESS, data)


def parse_success(key: str, data: bytes) -> SuccessReport:
    """The report in `data`, checked; unknown fields are kept."""
    if not data.strip():
        return {}
    try:
        report = json.loads(data)
        if not isinstance(report, dict) or not str(report["name"]).startswith(_NAME.rpartition("/")[0]):
            raise ValueError("not a success report")
    except (ValueError, KeyError, RecursionError) as error:
        raise CorruptDataError("the success report cannot be read; its bytes are kept", key=key) from error
    return report


def report_seq(report: SuccessReport | None) -> int:
    """The decision that a report is about; 0 for a report of somebody else's."""
    diagnostics = (report or {}).get("diagnostics")
    text = diagnostics.get("holdfast.seq", "0") if isinstance(diagnostics, dict) else "0"
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0


def write_success(ctx: CommitContext, report: JobReport, seq: int) -> None:
    """Write ``_SUCCESS`` of decision `seq` unless a later one's stands there: a slow helper must not turn it back (C6).

    Requires: every file of the job is visible.
    """
    key = ctx.key(layout.SUCCESS)
    data = encode_report(report)
    if ctx.settings.allow_unfenced:
        ctx.store.put(key, data, Overwrite())
        return
    # The first decision of a destination seldom meets a report, and need not look before it writes.
    mode: PutMode | None = Create() if seq == 1 else _mode_over(ctx, key, seq, "")
    for _ in range(8):
        if mode is None:
            return
        try:
            ctx.store.put(key, data, mode)
            return
        except PreconditionError:
            mode = _mode_over(ctx, key, seq, mode.etag if isinstance(mode, Update) else "")
        except UnsupportedError:
            if not isinstance(mode, Update):
                raise
            mode = Overwrite()  # a server that knows Create alone: the look before has to do
    # Somebody keeps rewriting it; the log is the truth, this file is a courtesy.


def _mode_over(ctx: CommitContext, key: str, seq: int, refused: str) -> PutMode | None:
    """How to replace what stands at `key` now; None if it is a later decision's report.

    Args:
        refused: an etag under which a put was refused, or empty.
    """
    try:
        found = ctx.store.head(key)
        if report_seq(_lenient(key, ctx.store.get(key))) > seq:
            return None
    except NotFoundError:
        return Create()
    # Some servers refuse the right etag as well (radosgw 16.2): when nothing changed in between, write.
    return Overwrite() if found.etag == refused else Update(found.etag)


def _lenient(key: str, data: bytes) -> SuccessReport | None:
    """A report that somebody else broke does not stop a commit: it is replaced."""
    try:
        return parse_success(key, data)
    except CorruptDataError:
        return None
