"""``mergePaths`` of FileOutputCommitter: how a directory of files becomes part of the destination, in both algorithms.

Sources: paper 000, III.B and III.C; paper 001, "`mergePaths` Algorithm" and "v2 commit algorithm".
"""

from __future__ import annotations

from holdfast.commit.context import CommitContext
from holdfast.commit.moves import delete_dir, file_info, is_dir, list_children, move_dir, move_file
from holdfast.errors import NotFoundError

__all__ = ["merge_paths_v1", "merge_paths_v2"]


def merge_paths_v1(ctx: CommitContext, source: str) -> None:
    """Move what is in the directory `source` into the destination; a directory that is not there moves as a whole.

    Requires: nobody else writes into these directories: the rename of a directory is exclusive.
    Guarantee: a file replaces what has its path, file or directory; directories are merged, depth first.

    Raises:
        NotFoundError: somebody took `source`, or a part of it, away meanwhile; what has moved stays.

    Crash: some entries have moved and some have not, and nothing says which: it cannot simply be repeated.
    """
    # The destination itself is always there: `source` lies in it.
    for name, is_directory in _children(ctx, source):
        _merge_v1(ctx, f"{source}/{name}", is_directory, name)


def _children(ctx: CommitContext, source: str) -> list[tuple[str, bool]]:
    """As `list_children`, of a directory that was there before: a file system does not list one that is gone."""
    found = list_children(ctx, source)
    if not found:
        raise NotFoundError("a committed directory is gone, a late attempt replaces it: run the job again", path=source)
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
    """Move the files below the directory `source` into the destination one by one, as tasks can do it side by side.

    Guarantee: a file replaces what has its path, file or directory. Nothing more: readers see each file as it comes.

    Crash: some files have moved. Again, the rest moves.
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
