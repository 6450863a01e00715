"""Build the parts of a task's report."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner
from holdfast.commit.records import FileEntry, TaskCommit, Totals


def inline_record(ctx: CommitContext, data: bytes) -> bytes | None:
    """Compress a record of the attempt for its commit message; return None if it is too large."""
    packed = zlib.compress(data, level=1)  # names repeat, so records shrink to a third or less
    return packed if len(packed) <= ctx.settings.inline_manifest_bytes else None


def totals_of(files: tuple[FileEntry, ...]) -> Totals:
    """Return the numbers of an attempt's files, bytes and rows."""
    totals = Totals()
    for file in files:
        totals += Totals(files=1, size_bytes=file.size_bytes, rows=file.rows)
    return totals


def report_task(owner: FileOwner, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Return a report that contains only counts, for a committer whose driver finds the files itself."""
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals_of(files))


def reported_totals(commits: Sequence[TaskCommit]) -> Totals:
    """Return the sum of the totals that tasks reported. Use this sum only for reports, never for a decision."""
    totals = Totals()
    for commit in commits:
        totals += commit.totals
    return totals
