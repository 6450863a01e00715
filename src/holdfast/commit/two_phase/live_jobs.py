"""Which jobs are over, and which may still commit: what a sweep has to know before it takes anything away (C7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.commit import layout
from holdfast.commit.codec import decode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.two_phase.records import StreamMark
from holdfast.commit.two_phase.streams import is_dead
from holdfast.errors import AccessDeniedError, CorruptDataError, NotFoundError

_NONE: Mapping[str, StreamMark] = {}

__all__ = ["OverJobs"]


class OverJobs:
    """Tells jobs that are over from those that may still commit; remembers what it has looked up.

    A job's record comes before its first upload and goes when nothing of it waits: a job that has one is never touched.
    The record lies in the job's destination, which may be any folder above the key: a sweep of ``s3://bucket`` meets
    the uploads of a job that writes to ``s3://bucket/flights``, and one of ``s3://bucket/flights/month=1`` does, too.

    Args:
        ctx: where the sweep looks.
        known: jobs that are over whatever the store says: the one that is being finished.
        dead: up to which batch each stream's jobs are over although they have a record: attempts that a restart left
            behind, and zombies of theirs.
    """

    def __init__(self, ctx: CommitContext, known: Iterable[JobId] = (), dead: Mapping[str, StreamMark] = _NONE) -> None:
        self._ctx = ctx
        self._known = frozenset(known)
        self._dead = dead
        self._records: dict[str, bool] = {}

    def is_over(self, job: JobId, key: str) -> bool:
        """Whether nobody can commit `job` any more.

        Args:
            key: of something that belongs to the job, below the context's prefix.
        """
        if job in self._known:
            return True
        return not any(self._is_protected(folder, job) for folder in layout.folders(key))

    def _is_protected(self, folder: str, job: JobId) -> bool:
        key = folder + layout.job_record(job)
        if key not in self._records:
            # The log that says how far streams have come is that of the context's own destination.
            with_stream = bool(self._dead) and folder == self._ctx.prefix
            self._records[key] = self._may_commit(key) if with_stream else self._exists(folder, key)
        return self._records[key]

    def _exists(self, folder: str, key: str) -> bool:
        try:
            self._ctx.store.head(key)
        except NotFoundError:
            return False
        except AccessDeniedError:
            if len(folder) >= len(self._ctx.prefix):
                raise
            return False  # credentials for this destination alone: the jobs that they cannot see are not above it
        return True

    def _may_commit(self, key: str) -> bool:
        try:
            return not is_dead(decode_job(key, self._ctx.store.get(key)), self._dead)
        except NotFoundError:
            return False
        except CorruptDataError:
            return True  # nobody can say what it was: hands off
