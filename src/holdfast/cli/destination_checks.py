"""Refuse urls with nothing to inspect, so that a mistyped url is not reported as a healthy destination."""

from __future__ import annotations

from holdfast.commit import CommitContext, History, read_history
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects, iter_uploads, multipart

NO_LOG = (
    "there is no decision log here: the data was not written by Holdfast, or with a committer that keeps no log: try "
    "holdfast show, or give the url of the directory that was written to"
)
EMPTY = "there are no files at this url either: check its spelling"
"""What is said about a place without what was looked for."""


def is_empty(ctx: CommitContext) -> bool:
    """Check whether the destination contains neither an object nor a pending upload."""
    if next(iter_objects(ctx.store, ctx.prefix, page_size=2), None) is not None:
        return False
    return ctx.store.capabilities.multipart is None or not any(iter_uploads(multipart(ctx.store), ctx.prefix))


def require_anything(ctx: CommitContext) -> None:
    """Refuse a destination that contains nothing at all, not even a pending upload.

    Raises:
        NotFoundError: the destination is empty: check the url.
        InvalidRequestError: the destination is a file.
    """
    if not is_empty(ctx):
        return
    if ctx.prefix:
        try:
            ctx.store.head(ctx.prefix.rstrip("/"))
        except NotFoundError:
            pass
        else:
            raise InvalidRequestError("this is a file: name the directory that holds it", url=ctx.url)
    raise NotFoundError("there is nothing at this url: check its spelling", url=ctx.url)


def require_history(ctx: CommitContext) -> History:
    """Read the history of a destination that Holdfast has written to.

    Raises:
        NotFoundError: the destination is empty.
        InvalidRequestError: the destination holds data but no decision log.
    """
    history = read_history(ctx)
    if not history.decisions and not history.open_jobs:
        require_anything(ctx)
        if next(iter_visible(ctx.store, ctx.prefix), None) is not None:
            raise InvalidRequestError(NO_LOG, url=ctx.url)
    return history


def has_history(ctx: CommitContext) -> bool:
    """Check whether a job has been decided or has begun at the destination."""
    history = read_history(ctx)
    return bool(history.decisions or history.open_jobs)
