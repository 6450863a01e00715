"""Move, delete, list and write whole files and directories on any store.

All paths are relative to the destination. A directory exists while files exist below it; empty directories do not
count.

A store with directory renames moves a directory in one atomic step. On any other store the files are moved one by one,
like in the GCS and S3 connectors. A crash can then leave a directory that is only partly moved, and another process can
see one (paper 000, V; paper 002, "Problem").
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import cast

from holdfast.commit.context import CommitContext
from holdfast.commit.task import ensure_file_moved
from holdfast.errors import NotFoundError, UnsupportedError
from holdfast.stores.base import CopyStore, ObjectInfo, as_renaming, batched_keys, iter_objects, iter_uploads, multipart


# --- listing ----------------------------------------------------------------------------------------------------------
def file_info(ctx: CommitContext, path: str) -> ObjectInfo | None:
    """Return the metadata of the file at `path`; None if it does not exist."""
    try:
        return ctx.store.head(ctx.key(path))
    except NotFoundError:
        return None


def is_dir(ctx: CommitContext, path: str) -> bool:
    """Check whether a file exists below `path`."""
    # Ask for two keys: the first one may be the marker of the directory itself.
    return next(iter_objects(ctx.store, ctx.key(f"{path}/"), page_size=2), None) is not None


def list_files(ctx: CommitContext, path: str) -> Iterator[tuple[str, ObjectInfo]]:
    """List every file below the directory `path`, as (path relative to the destination, metadata)."""
    for info in iter_objects(ctx.store, ctx.key(f"{path}/")):
        yield info.key[len(ctx.prefix) :], info


def list_children(ctx: CommitContext, path: str) -> list[tuple[str, bool]]:
    """Return the sorted names in the directory `path`, each with a flag that is True for a directory."""
    found: dict[str, bool] = {}
    for below, _info in list_files(ctx, path):
        name, slash, _rest = below[len(path) + 1 :].partition("/")
        found[name] = bool(slash)
    return sorted(found.items())


# --- moving -----------------------------------------------------------------------------------------------------------
def read_listed_file(ctx: CommitContext, path: str, kind: str) -> bytes:
    """Return the content of a record of a task that a listing has shown.

    Args:
        kind: names the record in the error.

    Raises:
        NotFoundError: the record was deleted after the listing: a late attempt at the task deletes it before it renames
            its own, and the end of the job deletes all of them.
    """
    try:
        return ctx.store.get(ctx.key(path))
    except NotFoundError as error:
        raise NotFoundError(
            f"a listed {kind} does not exist, because a late attempt is replacing it or the job has ended: run the job "
            "again",
            path=path,
        ) from error


def move_file(ctx: CommitContext, source: str, target: str) -> None:
    """Move a file; replace any file at `target`.

    Guarantee: one atomic step on a store with rename. On other stores the store copies the file and deletes the source:
    a reader may see both files. If a reply is lost and the source no longer exists, the file at `target` is assumed to
    be the moved file.

    Raises:
        NotFoundError: no file exists at `source`.
        OutcomeUnknownError: the store did not answer. Check both paths.
        UnsupportedError: the store can neither rename nor copy files.

    Crash: before or after the move on a store with rename; on other stores both files may exist.
    """
    if ctx.store.capabilities.rename:
        store = as_renaming(ctx.store)
        step: Callable[[], None] = lambda: store.rename(ctx.key(source), ctx.key(target))  # noqa: E731  # one of two
    elif ctx.store.capabilities.copy:
        step = lambda: _copy_and_delete(ctx, source, target)  # noqa: E731  # one of two
    else:
        raise UnsupportedError("the store neither renames nor copies files: choose another committer", url=ctx.url)
    if not ensure_file_moved(ctx, target, step, lambda is_retry: is_retry and file_info(ctx, target) is not None):
        raise NotFoundError("the file does not exist: it may have been moved before", path=source)


def _copy_and_delete(ctx: CommitContext, source: str, target: str) -> None:
    found = ctx.store.head(ctx.key(source))
    cast("CopyStore", ctx.store).copy(found, ctx.key(target))
    ctx.store.delete(ctx.key(source))


def move_dir(ctx: CommitContext, source: str, target: str) -> None:
    """Move everything below `source` to `target`.

    Guarantee: if the store renames directories, the move is one atomic step, and `target` must not exist. On other
    stores, and if a symbolic link leads to another file system, `move_file` moves the files one by one; they replace
    existing files, and concurrent callers and readers can see a partial move.

    Raises:
        NotFoundError: nothing exists below `source`.
        PreconditionError: `target` exists. Only on a store that renames directories.
        OutcomeUnknownError: the store did not answer. Check both paths.

    Crash: if the store renames directories, everything or nothing has moved; on other stores, some files may have
    moved.
    """
    if ctx.store.capabilities.rename_dir:
        store = as_renaming(ctx.store)
        move: Callable[[], None] = lambda: store.rename_dir(ctx.key(source), ctx.key(target))  # noqa: E731  # a step
        with contextlib.suppress(UnsupportedError):  # a link leads to another file system
            if ensure_file_moved(ctx, target, move, lambda is_retry: is_retry and is_dir(ctx, target)):
                return
            raise NotFoundError("the directory does not exist: it may have been moved before", path=source)
    paths = [path for path, _info in list_files(ctx, source)]
    if not paths:
        raise NotFoundError("the directory does not exist: it may have been moved before", path=source)
    for path in paths:
        move_file(ctx, path, target + path[len(source) :])


# --- deleting ---------------------------------------------------------------------------------------------------------
def delete_dir(ctx: CommitContext, path: str, *, unfinished: bool = True) -> None:
    """Delete everything below `path`, page by page. Idempotent; it is not an error if nothing is below `path`.

    Args:
        unfinished: also abort pending uploads and discard unfinished files below `path`. Only for directories in which
            no other process works.

    Raises:
        HoldfastError: some objects could not be deleted; others may already be deleted.
    """
    prefix = ctx.key(f"{path}/")
    for batch in batched_keys(info.key for info in iter_objects(ctx.store, prefix, markers=True)):
        ctx.store.delete_many(batch)
    if unfinished and ctx.store.capabilities.multipart is not None:
        store = multipart(ctx.store)
        for upload in list(iter_uploads(store, prefix)):
            store.abort_upload(upload.key, upload.upload_id)
