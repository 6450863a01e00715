"""Let only one driver end a job (``+claim``).

Closes the hole "two drivers".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit.committer import CONDITIONAL_WRITES, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.job_success import has_succeeded
from holdfast.commit.records import JobOutcome, JobRecord, TaskCommit
from holdfast.errors import FencedError, OutcomeUnknownError
from holdfast_checker.committers.variants.variant import Variant


def _claim(ctx: CommitContext, job: JobId, intent: str) -> tuple[bool, str]:
    """Claim a job for `intent`; return whether this call was the first, and the intent of the first claim."""
    mine = f"{intent} {ctx.ids.token()}".encode()
    found = ctx.records.create(f"_claims/{job}", mine)
    return found == mine, found.decode().partition(" ")[0]


def _claim_and_finish(ctx: CommitContext, found: Leftover) -> None:
    _claim(ctx, JobId(found.job), "abort")
    found.recover()


class Claims(Variant):
    """The variant ``+claim``: only the first driver that claims a job may end it."""

    def __init__(self, base: Committer, suffix: str, summary: str) -> None:
        super().__init__(base, suffix, summary)
        self.needs = (*base.needs, CONDITIONAL_WRITES)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Commit if this driver claims the job first.

        Hadoop does the same (``COMMIT_STARTED``, paper 001, "AM: Job Commit").
        """
        first, intent = _claim(ctx, job.job, "commit")
        if intent == "abort":
            raise FencedError("another process is aborting the job: run it again", job=job.job)
        if not first:
            raise OutcomeUnknownError("another driver is committing the job: run holdfast recover", job=job.job)
        return self.base.commit_job(ctx, job, commits, tasks)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Abort, unless a driver has started to commit.

        Only recovery, which inspects all of a job, may end a job whose commit has started.
        """
        _first, intent = _claim(ctx, job.job, "abort")
        if intent == "commit" and not has_succeeded(ctx, job.job):
            raise OutcomeUnknownError("a driver has started to commit the job: run holdfast recover", job=job.job)
        return self.base.abort_job(ctx, job)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        for found in self.base.find_leftovers(ctx, recorded):
            yield replace(found, recover=partial(_claim_and_finish, ctx, found))
