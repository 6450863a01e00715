"""What became of a write: found by the name that its caller gave it, whichever committer it had."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import is_job_id
from holdfast.commit.log import read_entry, read_log
from holdfast.commit.records import Kind, Totals
from holdfast.commit.success import read_success
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.seams import Ids

__all__ = ["JobIds", "Written", "find_files", "find_written", "is_job_of"]

_TOKEN = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A job that is committed.

    Attributes:
        totals: what it wrote; no rows if nobody counted them.
        finished: whether all work after the commit is done.
    """

    job: str
    totals: Totals
    finished: bool = True


class JobIds:
    """Ids for the process that starts the job of a write: the job's id ends in the write's name, if that is a token.

    Committers that keep no record of their jobs can be asked by it for what a write has left.

    Args:
        write_id: of the write.
        ids: where all other tokens come from.
    """

    def __init__(self, write_id: str, ids: Ids) -> None:
        self._first = [write_id] if _TOKEN.fullmatch(write_id) else []
        self._ids = ids

    def token(self) -> str:
        """The write's id, once; then others."""
        return self._first.pop() if self._first else self._ids.token()


def is_job_of(job: str, write_id: str) -> bool:
    """Whether the job's id was made for the write: where no record names the write, the id does."""
    return is_job_id(job) and job.endswith(f"-{write_id}")


def find_written(ctx: CommitContext, write_id: str) -> Written | None:
    """The committed job of a write: from the log, else from ``_SUCCESS``; None if neither tells of one.

    Args:
        write_id: what the job's details hold as ``write_id``.
    """
    view = read_log(ctx)
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            break  # trimmed meanwhile, and all before it
        if entry.kind is Kind.COMMIT and entry.record.details.get("write_id") == write_id:
            return Written(job=entry.job, totals=entry.totals, finished=seq in view.done)
    return _in_report(ctx, write_id)


def _in_report(ctx: CommitContext, write_id: str) -> Written | None:
    try:
        report = read_success(ctx) or {}
    except CorruptDataError:
        return None  # somebody else's
    if _mapping(report, "diagnostics").get("holdfast.write_id") != write_id or report.get("success") is not True:
        return None
    metrics = _mapping(report, "metrics")
    files, size_bytes, rows = (_count(metrics.get(name)) for name in ("files", "bytes", "rows"))
    return Written(job=str(report.get("jobId")), totals=Totals(files=files, size_bytes=size_bytes, rows=rows))


def find_files(ctx: CommitContext, write_id: str) -> Written | None:
    """The visible files of a write, by the job in their names: for a job that left neither log entry nor ``_SUCCESS``.

    Guarantee: of another write only if it was given the same id.
    """
    name = re.compile(rf"\d{{17}}-{re.escape(write_id)}(?![0-9a-f])")
    totals, job = Totals(), ""
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        found = name.search(path.rpartition("/")[2])
        if found is not None:
            job, totals = found[0], totals + Totals(files=1, size_bytes=info.size_bytes)
    return Written(job=job, totals=totals) if job else None


def _mapping(report: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
