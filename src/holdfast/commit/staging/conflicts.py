"""What `staging-*` does about data that its destination holds. Each mode decides at the moment that its paper says.

    staging-directory      fail: at job start, and again before the first completion; overwrite: before the first
                           completion, the whole directory
    staging-partitioned    fail: in the commit of a task that writes into a partition with data; overwrite: before the
                           first completion, the partitions that the job has written into and all below them
    append                 never looks (scenario 41)

A partition is a directory that holds a file of the job. Files at the top lie in none, so `staging-partitioned` takes
them only to append: Hadoop's committer would look for them in vain, or replace the whole destination for them.

Source: paper 000, VI.2; paper 001, "Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.job_ends import delete_visible
from holdfast.commit.two_phase.replacement import has_output
from holdfast.errors import DestinationExistsError, InvalidRequestError

__all__ = ["delete_partitions", "partitions_of", "refuse_data", "refuse_partitions_with_data"]


def refuse_data(ctx: CommitContext) -> None:
    """Go on only if the destination holds nothing.

    Raises:
        DestinationExistsError: it does.
    """
    if has_output(ctx):
        raise DestinationExistsError(
            "the destination holds data already: choose mode append or overwrite, or another destination", url=ctx.url
        )


def partitions_of(paths: Iterable[str]) -> set[str]:
    """The directories that hold `paths`.

    Raises:
        InvalidRequestError: one lies at the top.
    """
    found = set[str]()
    for path in paths:
        partition = path.rpartition("/")[0]
        if not partition:
            raise InvalidRequestError(
                "a file at the top of the destination lies in no partition: partition the data, append, or write with "
                "staging-directory",
                path=path,
            )
        found.add(partition)
    return found


def _inside(ctx: CommitContext, partition: str) -> CommitContext:
    return replace(ctx, prefix=ctx.key(f"{partition}/"), url=f"{ctx.url.rstrip('/')}/{partition}")


def refuse_partitions_with_data(ctx: CommitContext, partitions: Iterable[str]) -> None:
    """Go on only if there is no file in any of the partitions, nor below them.

    Raises:
        DestinationExistsError: there is one; names the partition (scenario 43).
    """
    for partition in sorted(partitions):
        if has_output(_inside(ctx, partition)):
            raise DestinationExistsError(
                "the partition holds data already: choose mode append or overwrite-partitions",
                url=ctx.url,
                partition=partition,
            )


def delete_partitions(ctx: CommitContext, partitions: Iterable[str]) -> None:
    """Delete what readers see in the partitions and below them; neither siblings nor parents (scenario 45).

    Crash: some are gone, and what replaces them is not there (C9 does not hold).

    Raises:
        HoldfastError: not all of it could be deleted (scenario 46).
    """

    def delete(partition: str) -> int:
        return delete_visible(_inside(ctx, partition))

    found = sorted(partitions)
    for done, _deleted in enumerate(ctx.runner.map(delete, found), start=1):
        ctx.progress("partitions", done, len(found))
