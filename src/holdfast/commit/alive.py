"""Which jobs are over, and which may still commit: what a sweep has to know before it takes anything away (C7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.errors import NotFoundError

__all__ = ["OverJobs"]


class OverJobs:
    """Tells jobs that are over from those that may still commit; remembers what it has looked up.

    A job's record comes before its first upload and goes when nothing of it waits: a job that has one is never touched.
    The record lies in the job's destination, which may be any folder between the context's prefix and the key: a sweep
    of ``s3://bucket`` meets the uploads of a job that writes to ``s3://bucket/flights``.

    Args:
        ctx: where the sweep looks.
        known: jobs that are over whatever the store says: the one that is being finished.
    """

    def __init__(self, ctx: CommitContext, known: Iterable[JobId] = ()) -> None:
        self._ctx = ctx
        self._known = frozenset(known)
        self._records: dict[str, bool] = {}

    def is_over(self, job: JobId, key: str) -> bool:
        """Whether nobody can commit `job` any more.

        Args:
            key: of something that belongs to the job, below the context's prefix.
        """
        if job in self._known:
            return True
        return not any(self._exists(folder + layout.job_record(job)) for folder in _folders(self._ctx.prefix, key))

    def _exists(self, key: str) -> bool:
        if key not in self._records:
            try:
                self._ctx.store.head(key)
                self._records[key] = True
            except NotFoundError:
                self._records[key] = False
        return self._records[key]


def _folders(prefix: str, key: str) -> Iterator[str]:
    """Every folder from `prefix` down to the one that holds `key`."""
    yield prefix
    for position, character in enumerate(key):
        if character == "/" and position >= len(prefix):
            yield key[: position + 1]
