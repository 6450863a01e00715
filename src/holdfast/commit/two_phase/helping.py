"""Help earlier jobs: roll their decisions forward before the next job is decided.

A decision stands even if the work after it fails, for example because a directory blocks a file name, an upload is
lost, or a permission has been revoked. Such work stays pending, a warning is logged, and every later job retries the
work. Pending work blocks only jobs that conflict with it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobRecord, Kind
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.two_phase.decision_log import read_entry, record_exists
from holdfast.commit.two_phase.manifests import Prepared, committed_manifests
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import load_replaced
from holdfast.commit.two_phase.roll_forward import roll_forward
from holdfast.errors import ConflictError, HoldfastError, NotFoundError
from holdfast.versioned_log import LogView

_log = logging.getLogger(__name__)
_NEED_ALL = (SaveMode.OVERWRITE, SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckDecision:
    """A decision that could not be rolled forward.

    Attributes:
        error: why it could not be rolled forward.
        is_visible: whether the decision is marked visible; None if the store did not answer.
    """

    entry: LogEntry
    error: HoldfastError
    is_visible: bool | None


def help_earlier_jobs(ctx: CommitContext, view: LogView) -> list[StuckDecision]:
    """Roll forward every decision that is not done, oldest first, and return the decisions that are stuck.

    Ensures: when the next job is decided, every earlier decision is done or is returned here. A job that would replace
    the output of a returned decision has to wait (`refuse_conflicts`). So if a roll forward does not find a pending
    upload or file, the only explanation is that its decision is already done.

    Raises:
        CorruptDataError: a log entry cannot be read, so its conflicts are unknown.
    """
    stuck = []
    for seq in view.unfinished:
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            continue  # another process has completed the decision, and its entry has been trimmed
        try:
            roll_forward(Measure(ctx), entry, visible=seq in view.visible)
        except HoldfastError as error:
            _log.warning("job %s is %sted, the remaining work is pending: %s", entry.job, entry.kind.value, error)
            stuck.append(StuckDecision(entry=entry, error=error, is_visible=_is_visible(ctx, view, entry)))
    return stuck


def _is_visible(ctx: CommitContext, view: LogView, entry: LogEntry) -> bool | None:
    """Check whether a stuck decision is visible; the failed roll forward may just have marked it."""
    if entry.kind is Kind.ABORT:
        return False
    if entry.seq in view.visible:
        return True
    try:
        return record_exists(ctx, entry.seq, "visible")
    except HoldfastError:
        return None


def refuse_conflicts(ctx: CommitContext, job: JobRecord, prepared: Prepared, stuck: Sequence[StuckDecision]) -> None:
    """Refuse a job that conflicts with an earlier job's pending work, because the new job would take effect first.

    Raises:
        ConflictError: the jobs conflict; the error names the earlier job and the cause. The new job is undecided.
    """
    for earlier in stuck:
        if earlier.entry.kind is Kind.COMMIT and _conflicts(ctx, job, prepared, earlier):
            raise ConflictError(
                "an earlier job is committed but cannot be rolled forward, and this one touches the same files: fix "
                "the cause, run holdfast recover, then run the job again",
                url=ctx.url,
                earlier=earlier.entry.job,
                reason=str(earlier.error),
            ) from earlier.error


def _conflicts(ctx: CommitContext, job: JobRecord, prepared: Prepared, earlier: StuckDecision) -> bool:
    """Check whether a job conflicts with files that a stuck decision must still publish or delete; if in doubt, yes."""
    entry = earlier.entry
    streams = [one.stream.stream for one in (job, entry.record) if one.stream is not None]
    if len(streams) == 2 and streams[0] == streams[1]:
        return True  # cleaning up after a batch also aborts the pending uploads of earlier batches
    if earlier.is_visible is None:
        return True
    try:
        if earlier.is_visible:
            # The decision may still delete files that it replaces, and a new file with the same bytes has the same
            # etag.
            return bool(prepared.chosen) and any(file.path in prepared.chosen for file in load_replaced(ctx, entry))
        if job.mode in _NEED_ALL or entry.record.mode is SaveMode.OVERWRITE:
            return True
        by_partition = SaveMode.OVERWRITE_PARTITIONS in (job.mode, entry.record.mode)
        if not by_partition and not prepared.chosen:
            return False  # generated names are never used twice
        files = (file for manifest in committed_manifests(ctx, entry) for file in manifest.files)
        return any(_overlaps(ctx, file.path, prepared, by_partition) for file in files)
    except HoldfastError:
        return True  # the decision's records are lost, or cannot be read at the moment


def _overlaps(ctx: CommitContext, path: str, prepared: Prepared, by_partition: bool) -> bool:
    if by_partition and ctx.partition(path.rpartition("/")[0]) in prepared.partitions:
        return True
    # A name that the caller chose may also be a directory of the other job, or lie below one of its files.
    return any(
        path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in prepared.chosen
    )
