"""Open and complete the pending uploads of task attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, file_owner
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import UploadGuard, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.errors import NotFoundError, OutcomeUnknownError
from holdfast.stores.base import Part, multipart

__all__ = ["ATTEMPT_METADATA", "complete_upload", "is_published", "open_upload", "settle"]

ATTEMPT_METADATA = "holdfast-attempt"
"""Metadata key of an upload: the attempt that made it. Whoever finds the object can tell it from another attempt's."""


def is_published(ctx: CommitContext, file: FileEntry, written_by: AttemptId | None = None) -> bool:
    """Whether the file stands at its final name: same size, and the same attempt where the store keeps metadata.

    Of a file that was renamed under a name of the caller's choice: whether it is the very file that was at the source.

    Args:
        written_by: whose file it is; None to take it from the name, where names are used once.
    """
    try:
        found = ctx.store.head(ctx.key(file.path))
    except NotFoundError:
        return False
    owner = file_owner(file.path)
    if written_by is None and owner is not None:
        written_by = owner.attempt
    if found.size_bytes != file.size_bytes:
        return False
    if file.etag:
        # A rename keeps both; where it was a copy to another file system, the time.
        return found.etag == file.etag or found.modified_at_s == file.modified_at_s
    # Names of ours are used once, so one that is there is ours; size and metadata guard against foreign hands. Other
    # names are used again: there only the attempt in the metadata, which every upload has, tells whose object it is.
    has_metadata = owner is None and bool(file.upload_id) and ctx.store.capabilities.metadata
    allowed = (written_by,) if has_metadata else (written_by, None)
    return written_by is None or found.metadata.get(ATTEMPT_METADATA) in allowed


def settle(ctx: CommitContext, file: FileEntry, publish: Callable[[], object], is_there: Callable[[], bool]) -> bool:
    """Publish, and find out what happened: a lost reply and a faster twin both answer "not found" the next time.

    HEAD tells; repeating alone is not portable: servers answer a second completion with 200, 404 or 500.
    """
    for attempt in range(3):
        if attempt:
            ctx.clock.sleep(0.2 * 2**attempt)
        try:
            publish()
            return True
        except NotFoundError:
            return is_there()
        except OutcomeUnknownError:
            continue  # again: if the first one worked, nothing waits any more and the object tells
    raise OutcomeUnknownError("a file was not confirmed as visible: run holdfast recover", path=file.path)


def open_upload(
    scope: TaskScope,
    path: str,
    *,
    at: str = "",
    guard: UploadGuard | None = None,
    on_uploaded: Callable[[FileEntry], None] | None = None,
) -> UploadSink:
    """An upload of an attempt, with the attempt in its metadata.

    Args:
        path: the file's target, relative to the destination.
        at: where the upload is to, if not there.
        guard, on_uploaded: see `UploadSink`.
    """
    ctx = scope.ctx
    return UploadSink(
        multipart(ctx.store),
        ctx.key(at or path),
        path,
        background=scope.background,
        budget=scope.budget,
        base_part_bytes=ctx.settings.part_size_bytes,
        metadata={ATTEMPT_METADATA: scope.owner.attempt},
        on_uploaded=on_uploaded,
        guard=guard,
    )


def complete_upload(
    ctx: CommitContext,
    file: FileEntry,
    written_by: AttemptId | None = None,
    checksums: Sequence[tuple[str, str]] = (),
    is_there: Callable[[], bool] | None = None,
) -> bool:
    """Make a pending upload visible; False if it is nowhere, neither waiting nor visible.

    An upload is used once: who comes late finds it gone, and never replaces what stands at the key now.

    Args:
        written_by: as for `is_published`.
        checksums: of the parts, as (algorithm, checksum), if the upload was made with any.
        is_there: asked in place of `is_published` whether the file is visible, once the upload is gone.

    Raises:
        OutcomeUnknownError: the store did not say, three times.
    """
    parts = [Part(number, etag, size) for number, (etag, size) in enumerate(file.parts, start=1)]
    if checksums:
        known = zip(parts, checksums, strict=True)
        parts = [replace(part, checksum_algorithm=kind, checksum=text) for part, (kind, text) in known]
    store = multipart(ctx.store)
    return settle(
        ctx,
        file,
        lambda: store.complete_upload(ctx.key(file.path), file.upload_id, parts),
        is_there or (lambda: is_published(ctx, file, written_by)),
    )
