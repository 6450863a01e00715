"""Committers as values: a name, what the store must offer, and the steps of each phase."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.job import JobOutcome, abort_job, commit_job, start_job
from holdfast.commit.records import JobRecord, SaveMode, TaskCommit
from holdfast.commit.recovery import RecoveryReport, recover
from holdfast.commit.task import TaskAttempt
from holdfast.errors import InvalidRequestError

__all__ = ["COMMITTERS", "TWO_PHASE", "Committer", "get_committer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """How a job's output is held and shown.

    Attributes:
        name: as in the option ``committer``.
        needs: what a store must offer, in words.
        start_job: check and announce; None if there is nothing to do.
        start_task: an attempt that writes hidden files and reports.
        commit_job: decide and show, from what the accepted attempts reported and the number of tasks.
        abort_job: give the job up, or carry out its decision if it has one.
        recover: bring every job of a destination to its end.
    """

    name: str
    summary: str
    needs: str
    source: str
    start_job: Callable[[CommitContext, SaveMode, Mapping[str, object] | None], JobRecord | None]
    start_task: Callable[[CommitContext, JobRecord, int], TaskAttempt]
    commit_job: Callable[[CommitContext, JobRecord, Sequence[TaskCommit | None], int], JobOutcome]
    abort_job: Callable[[CommitContext, JobRecord], JobOutcome]
    recover: Callable[..., RecoveryReport]


TWO_PHASE = Committer(
    name="two_phase",
    summary="hidden files, one decision record, then all of them visible",
    needs="conditional writes, and multipart uploads or atomic file rename",
    source="ours; papers 000 (VI, VIII, XI, XIII) and 002",
    start_job=start_job,
    start_task=TaskAttempt,
    commit_job=commit_job,
    abort_job=abort_job,
    recover=recover,
)

COMMITTERS: Mapping[str, Committer] = {committer.name: committer for committer in (TWO_PHASE,)}


def get_committer(name: str) -> Committer:
    """The committer of that name.

    Raises:
        InvalidRequestError: unknown; offers the nearest name.
    """
    found = COMMITTERS.get(name.replace("-", "_").lower())
    if found is None:
        near = difflib.get_close_matches(name, COMMITTERS, n=1, cutoff=0.0)
        raise InvalidRequestError(f"unknown committer, did you mean {near[0]!r}", committer=name)
    return found
