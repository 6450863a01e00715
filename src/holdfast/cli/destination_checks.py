"""A mistyped url names an empty place: commands that look at one say so instead of finding it in order."""

from __future__ import annotations

from holdfast.commit import CommitContext, History, read_history
from holdfast.commit.layout import iter_visible
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects, iter_uploads, multipart

__all__ = ["is_empty", "require_anything", "require_history"]


def is_empty(ctx: CommitContext) -> bool:
    """Whether there is neither an object nor a pending upload."""
    if next(iter_objects(ctx.store, ctx.prefix, page_size=2), None) is not None:
        return False
    return ctx.store.capabilities.multipart is None or not any(iter_uploads(multipart(ctx.store), ctx.prefix))


def require_anything(ctx: CommitContext) -> None:
    """Refuse a destination where there is nothing at all, not even a pending upload.

    Raises:
        NotFoundError: check the url.
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
    """What was decided at a destination that Holdfast has written to.

    Raises:
        NotFoundError: there is nothing at all.
        InvalidRequestError: there is data, but Holdfast never wrote here.
    """
    history = read_history(ctx)
    if not history.decisions and not history.open_jobs:
        require_anything(ctx)
        if next(iter_visible(ctx.store, ctx.prefix), None) is not None:
            raise InvalidRequestError(
                "there is no decision log here: not written by Holdfast, or with a committer that keeps none: look "
                "with holdfast show, or name the directory that was written to",
                url=ctx.url,
            )
    return history
