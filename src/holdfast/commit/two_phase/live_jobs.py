"""Find out which jobs may still commit (live jobs), so that cleanup spares them (C7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.two_phase.codec import decode_open_job
from holdfast.commit.two_phase.records import StreamMark
from holdfast.commit.two_phase.streams import is_dead
from holdfast.errors import AccessDeniedError, CorruptDataError, NotFoundError

_NONE: Mapping[str, StreamMark] = {}


class LiveJobs:
    """Looks up whether a job may still commit, and caches the answer.

    A job's record is written before its first upload and deleted when nothing of the job is pending, so cleanup never
    touches a job that has a record. The record is in the job's destination, which may be any folder above the key of an
    upload: uploads of a job that writes to ``s3://bucket/flights`` are found by a cleanup of ``s3://bucket``, and by a
    cleanup of ``s3://bucket/flights/month=1``.

    Args:
        ctx: the destination that is cleaned up.
        ended: jobs that have ended even if they have a record, such as the job that is being rolled forward.
        dead: maps each stream to a batch. All jobs that wrote this batch or an earlier one have ended even if they have
            a record (see `dead_batches`): they are left from before a restart, or belong to zombies.
    """

    def __init__(self, ctx: CommitContext, ended: Iterable[JobId] = (), dead: Mapping[str, StreamMark] = _NONE) -> None:
        self._ctx = ctx
        self._ended = frozenset(ended)
        self._dead = dead
        self._live: dict[str, bool] = {}

    def has_ended(self, job: JobId, key: str) -> bool:
        """Check whether `job` can no longer be committed.

        Args:
            key: the key of any object that belongs to the job, below the context's prefix.
        """
        if job in self._ended:
            return True
        return not any(self._is_live_in(folder, job) for folder in layout.folders(key))

    def _is_live_in(self, folder: str, job: JobId) -> bool:
        key = folder + layout.job_record(job)
        if key not in self._live:
            # `_dead` comes from the log of the context's own destination, so it applies only there.
            with_stream = bool(self._dead) and folder == self._ctx.prefix
            self._live[key] = self._may_commit(key) if with_stream else self._exists(folder, key)
        return self._live[key]

    def _exists(self, folder: str, key: str) -> bool:
        try:
            self._ctx.store.head(key)
        except NotFoundError:
            return False
        except AccessDeniedError:
            if len(folder) >= len(self._ctx.prefix):
                raise
            return False  # the credentials cover only this destination: assume that no job above writes into it
        return True

    def _may_commit(self, key: str) -> bool:
        try:
            return not is_dead(decode_open_job(key, self._ctx.store.get(key)), self._dead)
        except NotFoundError:
            return False
        except CorruptDataError:
            return True  # it is unknown whether this job has ended: do not clean up
