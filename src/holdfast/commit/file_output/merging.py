"""Merge a directory of files into the destination: ``mergePaths`` of FileOutputCommitter's two algorithms.

Sources: paper 000, III.B and III.C; paper 001, "`mergePaths` Algorithm" and "v2 commit algorithm".
"""

from __future__ import annotations

from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, file_info, is_dir, list_children, move_dir, move_file
from holdfast.errors import NotFoundError


def merge_paths_v1(ctx: CommitContext, source: str) -> None:
    """Move the content of the directory `source` to the destination; move a directory as a whole if its target is free.

    Requires: no other process writes in these directories.
    Guarantee: a file replaces the file or directory at its target; directories are merged, depth first.

    Raises:
        NotFoundError: another process moved or deleted `source`, or a part of it. Files that have already moved stay at
            their targets.

    Crash: some files and directories have moved, and no record says which: the merge cannot simply be repeated.
    """
    # The destination itself always exists: `source` is in it.
    for name, is_directory in _children(ctx, source):
        _merge_v1(ctx, f"{source}/{name}", is_directory, name)


def _children(ctx: CommitContext, source: str) -> list[tuple[str, bool]]:
    """List a directory that must exist; `list_children` would return an empty list for a deleted one."""
    found = list_children(ctx, source)
    if not found:
        raise NotFoundError(
            "a committed directory does not exist, because a late attempt is replacing it: run the job again",
            path=source,
        )
    return found


def _merge_v1(ctx: CommitContext, source: str, is_directory: bool, target: str) -> None:
    if not is_directory:
        _move_over(ctx, source, target)
    elif file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
        move_dir(ctx, source, target)
    elif is_dir(ctx, target):
        for name, below in _children(ctx, source):
            _merge_v1(ctx, f"{source}/{name}", below, f"{target}/{name}")
    else:
        move_dir(ctx, source, target)


def merge_paths_v2(ctx: CommitContext, source: str) -> None:
    """Move the files below the directory `source` to the destination one by one; tasks can do so concurrently.

    Guarantee: a file replaces the file or directory at its target. Readers see each file as soon as it is moved.

    Crash: some files have moved. A second call moves the rest.
    """
    for name, is_directory in list_children(ctx, source):
        _merge_v2(ctx, f"{source}/{name}", is_directory, name)


def _merge_v2(ctx: CommitContext, source: str, is_directory: bool, target: str) -> None:
    if not is_directory:
        _move_over(ctx, source, target)
        return
    if file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
    for name, below in list_children(ctx, source):
        _merge_v2(ctx, f"{source}/{name}", below, f"{target}/{name}")


def _move_over(ctx: CommitContext, source: str, target: str) -> None:
    if file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
    elif is_dir(ctx, target):
        delete_dir(ctx, target, unfinished=False)
    move_file(ctx, source, target)
