"""Batches of streams are decided once (C8): the log's newest entry says how far each stream has come.

Spark replays a batch after a crash, with new attempts and a new job. The number of the batch and the identity of the
checkpoint that counts it are all that links the two, so they stand in the decision itself: one record makes a batch
visible and known. Every entry, also an abort's, carries the marks of its predecessor on: the log may be trimmed, and
holds one mark a stream however long the streams run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit.records import JobRecord, Kind
from holdfast.commit.two_phase.records import LogEntry, StreamMark
from holdfast.errors import InvalidRequestError

__all__ = ["advance_streams", "dead_batches", "is_committed_batch", "is_dead"]


def is_committed_batch(job: JobRecord, streams: Mapping[str, StreamMark]) -> bool:
    """Whether `job` writes a batch that is committed already: it, or one before the last.

    Raises:
        InvalidRequestError: another checkpoint counts the stream's batches. Its numbers start anew, and taking them
            for the old ones would drop data without a word.
    """
    if job.stream is None or (mark := streams.get(job.stream.stream)) is None:
        return False
    if mark.checkpoint != job.stream.checkpoint:
        raise InvalidRequestError(
            "the stream was written here with another checkpoint: go on with that checkpoint, or choose another "
            "streamId",
            stream=job.stream.stream,
            known=mark.checkpoint,
            given=job.stream.checkpoint,
        )
    return job.stream.batch <= mark.batch


def advance_streams(job: JobRecord, streams: Mapping[str, StreamMark]) -> Mapping[str, StreamMark]:
    """The marks after `job` is committed."""
    if job.stream is None:
        return streams
    mark = StreamMark(batch=job.stream.batch, checkpoint=job.stream.checkpoint)
    return {**streams, job.stream.stream: mark}


# --- leftovers --------------------------------------------------------------------------------------------------------
def dead_batches(entry: LogEntry) -> Mapping[str, StreamMark]:
    """Up to which batch a stream's jobs are over, the decision's own aside; for whoever finishes `entry`.

    A batch is committed once, so every other job that wrote it can never be. The committed one itself is finished
    before the stream's next batch is decided, hence the last batch counts only where `entry` is the one that decided
    it: the others' clean-up must not take the uploads of a job that waits to be published.
    """
    own = entry.record.stream if entry.kind is Kind.COMMIT else None
    return {
        name: mark if own is not None and own.stream == name else replace(mark, batch=mark.batch - 1)
        for name, mark in entry.state.streams.items()
    }


def is_dead(job: JobRecord, dead: Mapping[str, StreamMark]) -> bool:
    """Whether `job` wrote a batch of which the log says that it is over (see `dead_batches`)."""
    if job.stream is None or (mark := dead.get(job.stream.stream)) is None:
        return False
    return mark.checkpoint == job.stream.checkpoint and job.stream.batch <= mark.batch
