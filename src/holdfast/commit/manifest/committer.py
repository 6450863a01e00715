"""`manifest`: tasks leave their files and say what to rename, the job commit renames all of them side by side."""

from __future__ import annotations

from holdfast.commit.committer import CONSISTENT_LISTING, RENAME, Committer
from holdfast.commit.manifest.job import abort_job, commit_job, start_job
from holdfast.commit.manifest.recovery import find_leftovers
from holdfast.commit.manifest.task import MANIFEST_TASK
from holdfast.commit.records import SaveMode

__all__ = ["MANIFEST"]

MANIFEST = Committer(
    name="manifest",
    summary="one record a task of what to rename, all renames at job commit",
    source="paper 002",
    needs=(RENAME, CONSISTENT_LISTING),
    modes=frozenset(SaveMode),
    start=start_job,
    task=MANIFEST_TASK,
    commit=commit_job,
    abort=abort_job,
    leftovers=find_leftovers,
)
"""Refused where a rename is no atomic step, as on S3, whatever the user accepts (scenario 63)."""
