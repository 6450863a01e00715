"""Open and complete the pending uploads of task attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop_names import file_job
from holdfast.commit.ids import AttemptId, JobId, file_owner
from holdfast.commit.layout import is_hidden
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import UploadGuard, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.errors import NotFoundError, OutcomeUnknownError
from holdfast.stores.base import UploadInfo, iter_uploads, multipart

ATTEMPT_METADATA = "holdfast-attempt"
"""Metadata key of an upload, for the attempt that started it. Distinguishes the object from other attempts' objects."""


def is_published(ctx: CommitContext, file: FileEntry, written_by: AttemptId | None = None) -> bool:
    """Check whether a file is at its target, by size and, if the store supports metadata, by the attempt's id.

    For a renamed file whose name the caller chose, also check that the file at the target is the one from the source.

    Args:
        written_by: the attempt that wrote the file; None to parse it from a generated name.
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
        # A rename preserves etag and modification time; a copy to another file system preserves only the time.
        return found.etag == file.etag or found.modified_at_s == file.modified_at_s
    # Generated names are used only once, so an existing file is the job's own; size and metadata are checked in case
    # another tool has changed the file. Names that the caller chose may be used again, so only the attempt in the
    # metadata identifies the object.
    has_metadata = owner is None and bool(file.upload_id) and ctx.store.capabilities.metadata
    allowed = (written_by,) if has_metadata else (written_by, None)
    return written_by is None or found.metadata.get(ATTEMPT_METADATA) in allowed


def settle(ctx: CommitContext, file: FileEntry, publish: Callable[[], object], is_there: Callable[[], bool]) -> bool:
    """Publish a file, resolve lost replies, and return whether the file is visible.

    If a reply was lost, or another process has published the file, the next call of `publish` raises `NotFoundError`,
    and `is_there` then shows the outcome. The response to a repeated completion does not show it: servers respond with
    200, 404 or 500.
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
            continue  # if the lost call succeeded, the next one raises NotFoundError and `is_there` decides
    raise OutcomeUnknownError("a file was not confirmed as visible: run holdfast recover", path=file.path)


def open_upload(
    scope: TaskScope,
    path: str,
    *,
    at: str = "",
    guard: UploadGuard | None = None,
    on_uploaded: Callable[[FileEntry], None] | None = None,
) -> UploadSink:
    """Open an upload of an attempt, with the attempt's id in its metadata.

    Args:
        path: the file's target, relative to the destination.
        at: the path to upload to, if it is not the target.
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
    """Make a pending upload visible; return False if it is neither pending nor visible.

    An upload can be completed only once. So a late caller finds no upload, and never replaces a newer object at the
    key.

    Args:
        written_by: see `is_published`.
        checksums: (algorithm, checksum) of each part, if the upload has any.
        is_there: if the upload is missing, called instead of `is_published` to check whether the file is visible.

    Raises:
        OutcomeUnknownError: the reply was lost three times.
    """
    parts = file.upload_parts
    if checksums:
        known = zip(parts, checksums, strict=True)
        parts = tuple(replace(part, checksum_algorithm=kind, checksum=text) for part, (kind, text) in known)
    store = multipart(ctx.store)
    return settle(
        ctx,
        file,
        lambda: store.complete_upload(ctx.key(file.path), file.upload_id, parts),
        is_there or (lambda: is_published(ctx, file, written_by)),
    )


# --- uploads that only their names identify ---------------------------------------------------------------------------
def named_uploads(ctx: CommitContext) -> dict[JobId, list[UploadInfo]]:
    """Return pending uploads to visible paths, grouped by the job ids in Hadoop's file names.

    Uploads to hidden directories are left out: they belong to committers that later move the files.
    """
    jobs: dict[JobId, list[UploadInfo]] = {}
    for upload in iter_uploads(multipart(ctx.store), ctx.prefix):
        job = file_job(upload.key)
        if job is not None and not is_hidden(upload.key[len(ctx.prefix) :]):
            jobs.setdefault(job, []).append(upload)
    return jobs


def abort_named_uploads(ctx: CommitContext, job: JobId) -> None:
    """Abort the pending uploads whose file names contain the job's id. Idempotent."""
    store = multipart(ctx.store)
    pending = named_uploads(ctx).get(job, [])
    for _done in ctx.runner.map(lambda upload: store.abort_upload(upload.key, upload.upload_id), pending):
        pass
