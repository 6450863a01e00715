"""Check that every task of a job reported exactly once, and build the parts of a task's report."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit, Totals
from holdfast.errors import InvalidRequestError


def check_messages(
    job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> list[TaskCommit]:
    """Return one commit message per task, in order of tasks; check that none is missing or duplicate (C1, C3).

    Args:
        tasks: the numbers of all tasks, or just the number of tasks if they are numbered from 0.

    Raises:
        InvalidRequestError: a task is missing or reported twice. The job is undecided.
    """
    present = [commit for commit in commits if commit is not None]
    wanted = sorted(range(tasks) if isinstance(tasks, int) else tasks)
    found = sorted(commit.task for commit in present)
    if found != wanted:
        missing = sorted(set(wanted) - set(found))
        raise InvalidRequestError(
            "the job cannot be committed because not every task reported exactly once: run the job again",
            job=job.job,
            tasks=len(wanted),
            reported=len(found),
            missing=missing[:5],
        )
    others = [commit.job for commit in present if commit.job != job.job]
    if others:
        raise InvalidRequestError("a task reported for another job: run the job again", job=job.job, other=others[0])
    return sorted(present, key=lambda commit: commit.task)


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
