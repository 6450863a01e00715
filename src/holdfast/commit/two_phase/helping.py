"""Helping: earlier decisions are finished before the next one is made; what cannot be finished stops only who meets it.

A decision stands whatever happens to the work after it. A directory that somebody put where a file has to go, a lost
upload, a permission that was taken away: such work stays pending, is told, and is tried again by every later job.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobRecord, Kind, SaveMode
from holdfast.commit.two_phase.decision_log import read_entry, record_exists
from holdfast.commit.two_phase.manifests import Prepared, committed_manifests
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import load_replaced
from holdfast.commit.two_phase.roll_forward import finish_decision
from holdfast.errors import ConflictError, HoldfastError, NotFoundError
from holdfast.versioned_log import LogView

__all__ = ["Stuck", "finish_earlier", "refuse_touched", "still_to_delete"]

_log = logging.getLogger(__name__)
_NEED_ALL = (SaveMode.OVERWRITE, SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A decision that could not be finished now, and why."""

    entry: LogEntry
    error: HoldfastError


def finish_earlier(ctx: CommitContext, view: LogView) -> list[Stuck]:
    """Finish every decision that is not done yet, oldest first.

    Ensures: when the next decision is made, all earlier ones are done, or are returned here. So an object that a
    decision's completion does not find can be explained only by that decision being done already: who would replace it
    has to wait (`refuse_touched`).

    Raises:
        CorruptDataError: a record of the log cannot be read, so nobody can say what it touches.
    """
    stuck = []
    for seq in view.unfinished:
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            continue  # others have finished it, and the log has dropped it since
        try:
            finish_decision(Measure(ctx), entry, visible=seq in view.visible)
        except HoldfastError as error:
            _log.warning("job %s is %sted, what is left of it is pending: %s", entry.job, entry.kind.value, error)
            stuck.append(Stuck(entry, error))
    return stuck


def still_to_delete(ctx: CommitContext, stuck: Sequence[Stuck]) -> frozenset[str]:
    """Files that stuck decisions have replaced and not deleted yet.

    Raises:
        CorruptDataError: a list of them cannot be read.
    """
    visible = (
        found.entry
        for found in stuck
        if found.entry.replaced is not None and record_exists(ctx, found.entry.seq, "visible")
    )
    return frozenset(file.path for entry in visible for file in load_replaced(ctx, entry))


def refuse_touched(ctx: CommitContext, job: JobRecord, prepared: Prepared, stuck: Sequence[Stuck]) -> None:
    """Refuse a job that meets what an earlier one has still to do: the order of the log would be lost.

    Raises:
        ConflictError: with the earlier job and what keeps it. Undecided.
    """
    for earlier in stuck:
        if earlier.entry.kind is Kind.COMMIT and _touches(ctx, job, prepared, earlier.entry):
            raise ConflictError(
                "an earlier job is committed and cannot be finished, and this one touches the same files: remove what "
                "keeps it, run holdfast recover, then run the job again",
                url=ctx.url,
                earlier=earlier.entry.job,
                reason=str(earlier.error),
            ) from earlier.error


def _touches(ctx: CommitContext, job: JobRecord, prepared: Prepared, entry: LogEntry) -> bool:
    streams = [one.stream.stream for one in (job, entry.record) if one.stream is not None]
    if len(streams) == 2 and streams[0] == streams[1]:
        return True  # the clean-up of a batch takes what all earlier ones have waiting
    try:
        if record_exists(ctx, entry.seq, "visible"):
            # It may still delete what it has replaced, and equal bytes look like the file that it means.
            return bool(prepared.chosen) and any(file.path in prepared.chosen for file in load_replaced(ctx, entry))
        if job.mode in _NEED_ALL or entry.record.mode is SaveMode.OVERWRITE:
            return True
        by_partition = SaveMode.OVERWRITE_PARTITIONS in (job.mode, entry.record.mode)
        if not by_partition and not prepared.chosen:
            return False  # names of ours are never used twice
        files = (file for manifest in committed_manifests(ctx, entry) for file in manifest.files)
        return any(_meets(ctx, file.path, prepared, by_partition) for file in files)
    except HoldfastError:
        return True  # its records are lost or cannot be read now: nobody can say


def _meets(ctx: CommitContext, path: str, prepared: Prepared, by_partition: bool) -> bool:
    if by_partition and ctx.partition(path.rpartition("/")[0]) in prepared.partitions:
        return True
    # A chosen name may also be a directory of the other job's, or lie below one of its files.
    return any(
        path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in prepared.chosen
    )
