"""Set up a job of a committer that has no decision log."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import is_to_be_skipped, refuse_file, refuse_taken
from holdfast.commit.file_operations import delete_visible
from holdfast.commit.ids import new_job_id
from holdfast.commit.nesting import refuse_nested
from holdfast.commit.records import JobRecord
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.success_file import read_success
from holdfast.errors import CorruptDataError

_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
"""Modes that delete existing data. Jobs in these modes always check for nested destinations, so that they delete no
other data.
"""


def new_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination, delete an old ``_SUCCESS`` and return a new job.

    The job id is unique even if another job starts in the same second (SPARK-33402, HADOOP-17318). Mode ``fail``
    refuses a destination that contains data; mode ``ignore`` skips it. An old ``_SUCCESS`` is deleted because it would
    describe files that are about to change (scenario 73).

    Returns:
        None if the job is to be skipped.

    Raises:
        DestinationExistsError: the mode is ``fail`` and the destination contains data.
        InvalidRequestError: the destination is a file, or it lies inside another destination or contains one.
    """
    refuse_file(ctx)
    refuse_taken(ctx)
    if ctx.settings.check_nesting:
        refuse_nested(ctx, first=mode in _REPLACING or not _has_success_report(ctx))
    if is_to_be_skipped(ctx, mode):
        return None
    ctx.store.delete(ctx.key(layout.SUCCESS))
    return JobRecord(
        job=new_job_id(ctx.clock, ctx.ids),
        committer=committer,
        mode=mode,
        started_at_s=round(ctx.clock.now_s(), 3),
        details=details,
    )


def _has_success_report(ctx: CommitContext) -> bool:
    """Check whether an earlier job wrote its report here; if so, that job already checked for nested destinations."""
    try:
        return bool(read_success(ctx))
    except CorruptDataError:
        return False


def new_truncating_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Return a new job like `new_job`; in mode ``overwrite``, also empty the destination, before any task runs.

    Spark truncates a destination at the same moment.

    Crash: the old data is deleted and the new data does not exist yet (C9 does not hold).
    """
    job = new_job(ctx, committer, mode, details)
    if job is not None and mode is SaveMode.OVERWRITE:
        delete_visible(ctx)
    return job
