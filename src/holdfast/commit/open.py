"""From what a person writes to what a step needs."""

from __future__ import annotations

from holdfast.commit.context import CommitContext, CommitSettings, Progress, silent
from holdfast.seams import ThreadRunner
from holdfast.stores.s3_options import S3Options
from holdfast.stores.url import open_destination

__all__ = ["open_context"]


def open_context(
    url: str,
    *,
    s3: S3Options | None = None,
    settings: CommitSettings | None = None,
    threads: int = 32,
    progress: Progress = silent,
) -> CommitContext:
    """A context for the destination at `url`. Opens no connection yet; the caller closes ``ctx.store``.

    Args:
        s3: endpoint and credentials for ``s3://`` urls; None leaves both to boto3's own chain.
        threads: calls to the store that run side by side during job commit.

    Raises:
        InvalidRequestError: the url cannot be understood; says why.
    """
    destination = open_destination(url, s3)
    return CommitContext(
        store=destination.store,
        prefix=f"{destination.prefix}/" if destination.prefix else "",
        url=destination.url,
        runner=ThreadRunner(threads),
        settings=settings or CommitSettings(),
        progress=progress,
    )
