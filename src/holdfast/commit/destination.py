"""Check a destination before a job writes to it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.durability import durably
from holdfast.commit.ids import JobId, file_owner
from holdfast.commit.records import Totals
from holdfast.commit.save_mode import SaveMode
from holdfast.errors import DestinationExistsError, InvalidRequestError, NotFoundError
from holdfast.stores.base import rename


def has_output(ctx: CommitContext) -> bool:
    """Check whether a plain reader sees any file at the destination."""
    return next(layout.iter_visible(ctx.store, ctx.prefix), None) is not None


def written_by(ctx: CommitContext, job: JobId) -> Totals:
    """Count the visible files whose names contain the job's id, and their bytes; rows are not counted."""
    totals = Totals()
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        owner = file_owner(path)
        if owner is not None and owner.job == job:
            totals += Totals(files=1, size_bytes=info.size_bytes)
    return totals


def refuse_file(ctx: CommitContext) -> None:
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


def refuse_taken(ctx: CommitContext, paths: Sequence[str] = (layout.SUCCESS,)) -> None:
    """Check, before any task runs, that each of `paths` can be written. The default is the file that every job writes.

    Raises:
        HoldfastError: a file cannot be created, for instance because a directory has the same name.
    """
    if ctx.store.capabilities.rename:
        rename(ctx.store).check_targets([ctx.key(path) for path in paths])


def is_to_be_skipped(ctx: CommitContext, mode: SaveMode) -> bool:
    """Check whether the destination contains data and the mode is ``ignore``.

    Guarantee: on a store with transactions, the data are durable.

    Raises:
        DestinationExistsError: the destination contains data and the mode is ``fail``.
    """
    if mode not in (SaveMode.FAIL, SaveMode.IGNORE):
        return False
    if not durably(ctx, has_output(ctx), lambda: has_output(ctx)):
        return False
    if mode is SaveMode.FAIL:
        raise DestinationExistsError(
            "the destination already contains data: choose mode append or overwrite, or another destination",
            url=ctx.url,
        )
    return True
