"""Run whole jobs with a specimen."""

from __future__ import annotations

from holdfast_checker.specimens import SPECIMENS
from tests.unit.commit.committer_jobs import Bucket

__all__ = ["bucket_of"]


def bucket_of(name: str) -> Bucket:
    """Return an empty bucket for jobs of a specimen."""
    return Bucket(name, known=SPECIMENS)
