"""Decide every batch of a stream only once (C8): the newest log entry contains the progress of each stream.

After a crash Spark replays a batch, with new attempts and a new job. Only the batch number and the checkpoint's id link
the new job to the old one, so the decision contains both: the record that commits a batch also says which batch is
committed. A stream's *mark* is its last committed batch with the checkpoint's id. Every entry, even one that aborts a
job, copies the marks of its predecessor. So trimming the log loses no mark, and each entry contains one mark per
stream, no matter how long the stream runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit.records import JobRecord, Kind
from holdfast.commit.two_phase.records import LogEntry, StreamMark
from holdfast.errors import InvalidRequestError


def is_committed_batch(job: JobRecord, streams: Mapping[str, StreamMark]) -> bool:
    """Check whether the batch that `job` writes is already committed.

    Raises:
        InvalidRequestError: the job's stream has another checkpoint. Its batch numbers start from 0 again, so comparing
            them with the old numbers would silently drop data.
    """
    if job.stream is None or (mark := streams.get(job.stream.stream)) is None:
        return False
    if mark.checkpoint != job.stream.checkpoint:
        raise InvalidRequestError(
            "the stream was written here with another checkpoint: continue with that checkpoint; with another "
            "streamId, all of the query's input is written a second time",
            stream=job.stream.stream,
            known=mark.checkpoint,
            given=job.stream.checkpoint,
        )
    return job.stream.batch <= mark.batch


def advance_streams(job: JobRecord, streams: Mapping[str, StreamMark]) -> Mapping[str, StreamMark]:
    """Return the marks of all streams as they are once `job` is committed."""
    if job.stream is None:
        return streams
    mark = StreamMark(batch=job.stream.batch, checkpoint=job.stream.checkpoint)
    return {**streams, job.stream.stream: mark}


# --- leftovers --------------------------------------------------------------------------------------------------------
def dead_batches(entry: LogEntry) -> Mapping[str, StreamMark]:
    """Return, for each stream, the last batch whose jobs have all ended, apart from the job of `entry` itself.

    A batch is committed only once, so after its commit no other job that wrote the batch can be committed. The
    committed job itself is rolled forward before the stream's next batch is decided, but may not be published yet. So a
    stream's newest batch is returned only if `entry` decided it; for other streams the batch before is returned,
    because a cleanup must not abort the uploads of a job that is still to be published.
    """
    own = entry.record.stream if entry.kind is Kind.COMMIT else None
    return {
        name: mark if own is not None and own.stream == name else replace(mark, batch=mark.batch - 1)
        for name, mark in entry.state.streams.items()
    }


def is_dead(job: JobRecord, dead: Mapping[str, StreamMark]) -> bool:
    """Check whether `job` writes a batch whose jobs have all ended (see `dead_batches`)."""
    if job.stream is None or (mark := dead.get(job.stream.stream)) is None:
        return False
    return mark.checkpoint == job.stream.checkpoint and job.stream.batch <= mark.batch
