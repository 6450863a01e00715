"""Check a destination before a job writes to it, and set up a job that has no decision log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, file_owner, new_job_id
from holdfast.commit.nested_destinations import refuse_nested_destination
from holdfast.commit.records import JobRecord, SaveMode, Totals
from holdfast.commit.success_file import read_success_file
from holdfast.errors import CorruptDataError, DestinationExistsError, InvalidRequestError, NotFoundError
from holdfast.stores.base import RenameStore, as_transactional, batched_keys

T = TypeVar("T")


def make_durable_and_search_again(ctx: CommitContext, found: T, look: Callable[[], T]) -> T:
    """Make what was found at the destination durable, before a caller relies on it; repeat the search.

    The process that wrote it may have died before its transaction was durable. On a store without transactions, or if
    nothing was found, return `found` at once.

    Args:
        found: what a search has found; falsy for nothing.
        look: repeats the search, because a database that crashed meanwhile may have lost it.
    """
    if not found or not ctx.store.capabilities.transactions:
        return found
    as_transactional(ctx.store).make_durable()
    return look()


def has_output(ctx: CommitContext) -> bool:
    """Check whether a plain reader sees any file at the destination."""
    return next(layout.iter_visible(ctx.store, ctx.prefix), None) is not None


def count_job_files(ctx: CommitContext, job: JobId) -> Totals:
    """Count the visible files whose names contain the job's id, and their bytes; rows are not counted."""
    totals = Totals()
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        owner = file_owner(path)
        if owner is not None and owner.job == job:
            totals += Totals(files=1, size_bytes=info.size_bytes)
    return totals


def delete_visible_files(ctx: CommitContext, in_scope: Callable[[str], bool] = lambda path: True) -> int:
    """Delete the visible files whose path `in_scope` accepts, and return their number.

    Raises:
        HoldfastError: some files could not be deleted; others may already be deleted.
    """
    paths = (path for path, _info in layout.iter_visible(ctx.store, ctx.prefix) if in_scope(path))
    deleted = 0
    for batch in batched_keys([ctx.key(path) for path in paths]):
        ctx.store.delete_many(batch)
        deleted += len(batch)
    return deleted


def refuse_file_destination(ctx: CommitContext) -> None:
    """Check that the destination is not a file.

    Raises:
        InvalidRequestError: the destination is a file.
    """
    if not ctx.prefix:
        return
    try:
        ctx.store.head(ctx.prefix.rstrip("/"))
    except NotFoundError:
        return
    raise InvalidRequestError("the destination is a file: name a directory", url=ctx.url)


def refuse_taken_paths(ctx: CommitContext, paths: Sequence[str] = (layout.SUCCESS,)) -> None:
    """Check, before any task runs, that each of `paths` can be written; by default ``_SUCCESS``.

    Raises:
        HoldfastError: a file cannot be created, for instance because a directory has the same name.
    """
    if ctx.store.capabilities.rename or ctx.store.capabilities.transactions:
        cast("RenameStore", ctx.store).check_targets([ctx.key(path) for path in paths])


def is_job_to_be_skipped(ctx: CommitContext, mode: SaveMode) -> bool:
    """Check whether the destination contains data and the mode is ``ignore``.

    Guarantee: on a store with transactions, the data are durable.

    Raises:
        DestinationExistsError: the destination contains data and the mode is ``fail``.
    """
    if mode not in (SaveMode.FAIL, SaveMode.IGNORE):
        return False
    if not make_durable_and_search_again(ctx, has_output(ctx), lambda: has_output(ctx)):
        return False
    if mode is SaveMode.FAIL:
        raise DestinationExistsError(
            "the destination already contains data: choose mode append or overwrite, or another destination",
            url=ctx.url,
        )
    return True


REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
"""Modes that delete existing data. Jobs in these modes always check for nested destinations, so that they delete no
other data.
"""


def start_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination, delete an old ``_SUCCESS`` there, and return the record of a new job.

    The job id is unique even if another job starts in the same second (SPARK-33402, HADOOP-17318). Mode ``fail``
    refuses a destination that contains data; mode ``ignore`` skips it. An old ``_SUCCESS`` is deleted because it would
    describe files that are about to change.

    Returns:
        None if the job is to be skipped.

    Raises:
        DestinationExistsError: the mode is ``fail`` and the destination contains data.
        InvalidRequestError: the destination is a file, or it lies inside another destination or contains one.
    """
    refuse_file_destination(ctx)
    refuse_taken_paths(ctx)
    if ctx.settings.check_nesting:
        refuse_nested_destination(ctx, first=mode in REPLACING or not _has_success_report(ctx))
    if is_job_to_be_skipped(ctx, mode):
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
        return bool(read_success_file(ctx))
    except CorruptDataError:
        return False


def start_truncating_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Create a job like `start_job`; in mode ``overwrite``, delete the destination's data before any task runs.

    Spark truncates a destination at the same moment.

    Crash: the old data is deleted and the new data does not exist yet (C9 does not hold).
    """
    job = start_job(ctx, committer, mode, details)
    if job is not None and mode is SaveMode.OVERWRITE:
        delete_visible_files(ctx)
    return job
