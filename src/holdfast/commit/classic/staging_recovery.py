"""What dead `staging-*` jobs left, as far as the shared directory tells; `judge` says what may be done about each.

Without the shared directory a job's uploads are all that is found, by their names (`emr` lists those).

Source: paper 001, "Job Driver failure before Job Commit", "… during Job Commit".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.classic.judge import SetStore, judge_job
from holdfast.commit.classic.staging_cleanup import clean_up
from holdfast.commit.classic.staging_layout import find_jobs, list_pendingsets, load_pendingset
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.records import SaveMode

__all__ = ["directory_leftovers", "partitioned_leftovers"]

_SETS = SetStore(
    names=list_pendingsets,
    load=lambda measure, job, name: load_pendingset(measure, job.job, name),
    clean_up=clean_up,
)


def directory_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """One for each job of ``staging-directory`` in the shared directory; live jobs are among them."""
    return _leftovers(ctx, "staging-directory")


def partitioned_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """One for each job of ``staging-partitioned`` in the shared directory; live jobs are among them."""
    return _leftovers(ctx, "staging-partitioned")


def _leftovers(ctx: CommitContext, committer: str) -> Iterator[Leftover]:
    if ctx.scratch is None or ctx.store.capabilities.multipart is None:
        return
    for destination, job, active_at_s in find_jobs(ctx):
        if job.committer != committer:
            continue
        found = judge_job(destination, job, active_at_s, _SETS)
        replaces = job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
        if replaces and found.action is Action.BACK:
            # Paper 001: nothing tells how far the deletions before the first completion came.
            found = replace(found, reason=f"{found.reason}; what it was to replace may be gone")
        yield found
