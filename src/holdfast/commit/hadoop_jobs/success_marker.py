"""Write ``_SUCCESS`` for a job that is committed long after its driver died."""

from __future__ import annotations

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.errors import NotFoundError


def save_first_marker(ctx: CommitContext, data: bytes) -> None:
    """Put ``_SUCCESS`` unless it exists.

    S3A's committers delete it when a job starts, so an existing ``_SUCCESS`` belongs to a later job.
    """
    try:
        ctx.store.head(ctx.key(layout.SUCCESS))
    except NotFoundError:
        ctx.store.put(ctx.key(layout.SUCCESS), data)
