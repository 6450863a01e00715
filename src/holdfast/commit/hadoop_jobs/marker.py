"""``_SUCCESS`` of a job that is committed long after it died."""

from __future__ import annotations

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.errors import NotFoundError

__all__ = ["save_first_marker"]


def save_first_marker(ctx: CommitContext, data: bytes) -> None:
    """Put ``_SUCCESS`` unless there is one: S3A's committers delete it when a job starts, so a later job has put it."""
    try:
        ctx.store.head(ctx.key(layout.SUCCESS))
    except NotFoundError:
        ctx.store.put(ctx.key(layout.SUCCESS), data)
