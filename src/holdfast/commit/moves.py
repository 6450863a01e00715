"""What the classic committers do with files and directories, on any store: move, delete, list, write whole files.

All paths are relative to the destination. A directory is what has files below it: an empty one is not there.

A store with directory renames moves a directory in one step, any other file by file, as a connector to GCS or S3 does
it: then a crash, or somebody else in the same directories, meets the half of it (paper 000, V; paper 002, "Problem").
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

from holdfast.commit.context import CommitContext
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.uploads import complete_upload, open_upload
from holdfast.errors import ConflictError, NotFoundError, OutcomeUnknownError, UnsupportedError
from holdfast.stores.base import CopyStore, ObjectInfo, batched_keys, iter_objects, iter_uploads, multipart, rename

__all__ = [
    "delete_dir",
    "file_info",
    "is_dir",
    "list_children",
    "list_files",
    "move_dir",
    "move_file",
    "open_uploaded_file",
    "open_whole_file",
]

_ATTEMPTS = 3


def file_info(ctx: CommitContext, path: str) -> ObjectInfo | None:
    """The file at `path`; None if there is none."""
    try:
        return ctx.store.head(ctx.key(path))
    except NotFoundError:
        return None


def is_dir(ctx: CommitContext, path: str) -> bool:
    """Whether there is a file below `path`."""
    # Two, for the first may be the directory's own marker.
    return next(iter_objects(ctx.store, ctx.key(f"{path}/"), page_size=2), None) is not None


def list_files(ctx: CommitContext, path: str) -> Iterator[tuple[str, ObjectInfo]]:
    """Every file below the directory `path`, as (path relative to the destination, info)."""
    for info in iter_objects(ctx.store, ctx.key(f"{path}/")):
        yield info.key[len(ctx.prefix) :], info


def list_children(ctx: CommitContext, path: str) -> list[tuple[str, bool]]:
    """The names in the directory `path`, sorted, each with whether it is a directory."""
    found: dict[str, bool] = {}
    for below, _info in list_files(ctx, path):
        name, slash, _rest = below[len(path) + 1 :].partition("/")
        found[name] = bool(slash)
    return sorted(found.items())


def move_file(ctx: CommitContext, source: str, target: str) -> None:
    """Move a file; whatever file is at `target` is replaced.

    Guarantee: one atomic step on a store with rename. Else a copy by the store, then a deletion: a reader may see both
    files. A lost reply is settled: when the source is gone after one, the file at `target` is taken for it.

    Raises:
        NotFoundError: there is no file at `source`.
        OutcomeUnknownError: the store did not answer; look at both places.
        UnsupportedError: the store neither renames nor copies.

    Crash: before or after on a store with rename; else both files may be there.
    """
    if ctx.store.capabilities.rename:
        store = rename(ctx.store)
        step: Callable[[], None] = lambda: store.rename(ctx.key(source), ctx.key(target))  # noqa: E731  # one of two
    elif ctx.store.capabilities.copy:
        step = lambda: _copy_and_delete(ctx, source, target)  # noqa: E731  # one of two
    else:
        raise UnsupportedError("the store neither renames nor copies files: choose another committer", url=ctx.url)
    _settled(ctx, target, step, lambda: file_info(ctx, target) is not None)


def _copy_and_delete(ctx: CommitContext, source: str, target: str) -> None:
    found = ctx.store.head(ctx.key(source))
    cast("CopyStore", ctx.store).copy(found, ctx.key(target))
    ctx.store.delete(ctx.key(source))


def move_dir(ctx: CommitContext, source: str, target: str) -> None:
    """Move everything below `source` to `target`.

    Guarantee: one atomic step where the store renames directories, unless a symbolic link leads to another file system,
    and then `target` has to be free. Else file by file,
    replacing what is there, each as `move_file` does: nothing keeps two callers, or a reader, from meeting halfway.

    Raises:
        NotFoundError: there is nothing below `source`.
        PreconditionError: something is at `target`; only where the store renames directories.
        OutcomeUnknownError: the store did not answer; look at both places.

    Crash: before or after where the store renames directories; else anything between.
    """
    if ctx.store.capabilities.rename_dir:
        store = rename(ctx.store)
        move: Callable[[], None] = lambda: store.rename_dir(ctx.key(source), ctx.key(target))  # noqa: E731  # a step
        with contextlib.suppress(UnsupportedError):  # the target is on another file system, behind a link
            _settled(ctx, target, move, lambda: is_dir(ctx, target))
            return
    paths = [path for path, _info in list_files(ctx, source)]
    if not paths:
        raise NotFoundError("there is no such directory: it may have been moved before", path=source)
    for path in paths:
        move_file(ctx, path, target + path[len(source) :])


def _settled(ctx: CommitContext, target: str, move: Callable[[], None], arrived: Callable[[], bool]) -> None:
    """Move, and find out what happened when the reply is lost: the next try then finds no source."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            ctx.clock.sleep(0.2 * 2**attempt)
        try:
            move()
            return
        except NotFoundError:
            if attempt and arrived():
                return
            raise
        except OutcomeUnknownError:
            continue
    raise OutcomeUnknownError("a rename was not confirmed: look at its target before anything else", path=target)


def delete_dir(ctx: CommitContext, path: str, *, unfinished: bool = True) -> None:
    """Delete everything below `path`, page by page; again is harmless, nothing there is no error.

    Args:
        unfinished: give up the pending uploads and unfinished files below it as well. Only for directories in which
            nobody else works.

    Raises:
        HoldfastError: some could not be deleted; those before are gone.
    """
    prefix = ctx.key(f"{path}/")
    for batch in batched_keys(info.key for info in iter_objects(ctx.store, prefix, markers=True)):
        ctx.store.delete_many(batch)
    if unfinished and ctx.store.capabilities.multipart is not None:
        store = multipart(ctx.store)
        for upload in list(iter_uploads(store, prefix)):
            store.abort_upload(upload.key, upload.upload_id)


def open_whole_file(scope: TaskScope, path: str, target: str) -> UploadSink | RenameSink:
    """A sink whose file is at `path` as soon as it is closed and the background is drained; nothing is there before.

    Args:
        target: what the sink calls its file: where it is meant to end up.

    Raises (also later, from the background):
        ConflictError: somebody aborted the upload; only on a store without rename.
        PreconditionError: there is a file at `path` already; only on a store with rename.
    """
    if scope.ctx.store.capabilities.rename:
        return RenameSink(rename(scope.ctx.store), scope.ctx.key(path), path, target, background=scope.background)
    return open_uploaded_file(scope, path, target)


def open_uploaded_file(scope: TaskScope, path: str, target: str) -> UploadSink:
    """As `open_whole_file`, by an upload that is completed when all its bytes are up: it replaces what is at `path`."""
    ctx, attempt = scope.ctx, scope.owner.attempt

    def complete(file: FileEntry) -> None:
        if not complete_upload(ctx, replace(file, path=path), attempt):
            raise ConflictError("somebody aborted the upload of a file: run the task again", url=ctx.url, path=path)

    return open_upload(scope, target, at=path, on_uploaded=complete)
