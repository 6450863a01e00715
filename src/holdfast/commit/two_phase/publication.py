"""Make a complete, hidden file visible: by completing an upload, by a rename, or in a transaction with all others.

A `PublicationMethod` bundles the steps that differ between these ways. One of them is the *sweep*, which aborts the
leftover uploads of jobs that have ended. Publishing and sweeping are idempotent: any process may run them, at any time
(C10).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, JobId, file_owner
from holdfast.commit.intents import announced_keys, find_abortable_and_contested_keys
from holdfast.commit.records import FileEntry, JobRecord
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import AttemptContext, complete_upload, ensure_file_moved, is_file_published, open_upload
from holdfast.commit.two_phase.pending_uploads import UploadRecords, find_uploads_to_keys, iter_reported_uploads
from holdfast.commit.two_phase.records import PUBLICATION_NAMES
from holdfast.errors import AccessDeniedError, CorruptDataError, UnsupportedError
from holdfast.stores.base import ObjectStore, UploadInfo, as_renaming, iter_uploads, multipart
from holdfast.stores.probe import UploadListingMode

_log = logging.getLogger(__name__)


HasEnded = Callable[[JobId, str], bool]
"""Called with a job and the key of one of its leftovers; returns whether the job can no longer be committed. See
`live_jobs`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationMethod:
    """The steps of one way to make files visible.

    Attributes:
        name: the publication's name in job records, so that recovery uses the same publication.
        open_file: opens a sink for a new file of an attempt.
        check: raises an error if one of the targets, relative to the destination, is blocked, so that `publish_file`
            would fail.
        publish_file: makes the file of an attempt visible; returns False if the file is neither pending nor visible.
        sweep: aborts the pending uploads of jobs for which `has_ended` returns True. Returns the number of aborted
            uploads, and whether some may be left, because a job that may still commit has announced them too, because
            they are beyond the limit, or because the store refused to abort them.
        at_once: whether one transaction decides the job and publishes its files (see `transaction`), so that nothing is
            left for `publish_file`.
    """

    name: str
    open_file: Callable[[AttemptContext, str], UploadSink | RenameSink]
    check: Callable[[CommitContext, Sequence[str]], None]
    publish_file: Callable[[CommitContext, FileEntry, AttemptId], bool]
    sweep: Callable[[CommitContext, HasEnded, UploadRecords], tuple[int, bool]]
    at_once: bool = False


# --- uploads ----------------------------------------------------------------------------------------------------------


def _open_announced_upload(scope: AttemptContext, path: str) -> UploadSink:
    needs_announcement = scope.job.announced or file_owner(path) is None
    return open_upload(scope, path, guard=scope.intents if needs_announcement else None)


def _accept_all_targets(ctx: CommitContext, targets: Sequence[str]) -> None:
    """Accept all targets: on an object store nothing can block a key, and a transaction checks the keys itself."""


def _sweep_uploads(ctx: CommitContext, has_ended: HasEnded, left: UploadRecords) -> tuple[int, bool]:
    """Abort the uploads that manifests name, then the uploads of dead attempts that the server lists."""
    aborted, refused = _abort_uploads(ctx, iter_reported_uploads(ctx, left.manifests), left)
    more, contested = _sweep_uploads_below(ctx, ctx.prefix, has_ended, left)
    return aborted + more, contested or refused


def _abort_uploads(ctx: CommitContext, uploads: Iterable[UploadInfo], left: UploadRecords) -> tuple[int, bool]:
    """Abort uploads; return their number, and whether access was denied. In recovery, raise that error instead."""
    store = multipart(ctx.store)

    def abort_upload(upload: UploadInfo) -> bool:
        try:
            store.abort_upload(upload.key, upload.upload_id)
        except AccessDeniedError as error:
            if left.limit is None:
                raise
            _log.warning("the store denies aborting a leftover upload, holdfast recover will retry: %s", error)
            return False
        return True

    aborted = list(ctx.runner.map(abort_upload, uploads))
    return sum(aborted), not all(aborted)


def _list_uploads_below(ctx: CommitContext, prefix: str, left: UploadRecords) -> list[UploadInfo] | None:
    """List pending uploads below a prefix; return None if access is denied. In recovery, raise that error instead."""
    try:
        return list(itertools.islice(iter_uploads(multipart(ctx.store), prefix), left.limit))
    except AccessDeniedError as error:
        if left.limit is None:
            raise
        _log.warning("the store denies listing pending uploads, so those of dead attempts remain: %s", error)
        return None


def _sweep_uploads_below(ctx: CommitContext, prefix: str, has_ended: HasEnded, left: UploadRecords) -> tuple[int, bool]:
    """Abort uploads below a prefix whose key or intent record names a job that has ended (C7)."""

    def list_uploads() -> list[UploadInfo]:
        found = _list_uploads_below(ctx, prefix, left) if left.listing is UploadListingMode.BY_DIRECTORY else None
        return list(find_uploads_to_keys(ctx, sorted(announced_keys(ctx, left.unreported)))) if found is None else found

    def list_leftovers() -> tuple[list[UploadInfo], bool]:
        found: list[UploadInfo] = []
        unnamed: list[UploadInfo] = []
        uploads = list_uploads()
        for upload in uploads:
            if layout.is_job_record(upload.key):
                continue  # only on a file system: the job is writing its record at this moment, so it is alive
            job = layout.job_in_key(upload.key)
            if job is None:
                unnamed.append(upload)
            elif has_ended(job, upload.key):
                found.append(upload)
        cut_off = len(uploads) == left.limit  # beyond the limit there may be uploads that intents name
        if not (unnamed and left.intents):
            return found, cut_off
        keys, contested = find_abortable_and_contested_keys(
            ctx, left.intents, {upload.key for upload in unnamed}, has_ended
        )
        return found + [upload for upload in unnamed if upload.key in keys], bool(contested) or cut_off

    aborted, contested = 0, False
    # A part that was in flight while its upload was aborted can keep the upload alive, so list again, a few times.
    for _ in range(3):
        found, contested = list_leftovers()
        if not found:
            break
        count, refused = _abort_uploads(ctx, found, left)
        aborted += count
        if refused:
            return aborted, True
    return aborted, contested


# --- renames ----------------------------------------------------------------------------------------------------------
def _open_attempt_file(scope: AttemptContext, path: str) -> RenameSink:
    owner = scope.owner
    source = layout.attempt_file_path(owner.job, owner.task, owner.attempt, path)
    return RenameSink(as_renaming(scope.ctx.store), scope.ctx.key(source), source, path, background=scope.background)


def _check_targets(ctx: CommitContext, targets: Sequence[str]) -> None:
    as_renaming(ctx.store).check_targets([ctx.key(target) for target in targets])


def _rename_file(ctx: CommitContext, file: FileEntry, written_by: AttemptId) -> bool:
    """Rename an attempt's file to its target.

    A source can be renamed only once. So a late caller finds no source, and cannot replace a newer file at the target.
    """
    store = as_renaming(ctx.store)
    return ensure_file_moved(
        ctx,
        file.path,
        lambda: store.rename(ctx.key(file.source), ctx.key(file.path)),
        lambda is_retry: is_file_published(ctx, file, written_by),
    )


def _sweep_unfinished_files(ctx: CommitContext, has_ended: HasEnded, left: UploadRecords) -> tuple[int, bool]:
    """Abort unfinished writes of killed attempts. Their complete files are deleted with the job's folder."""
    if ctx.store.capabilities.multipart is None:
        return 0, False
    return _sweep_uploads_below(ctx, ctx.key(layout.JOBS), has_ended, replace(left, intents={}))


UPLOADS = PublicationMethod(
    name="upload",
    open_file=_open_announced_upload,
    check=_accept_all_targets,
    publish_file=complete_upload,
    sweep=_sweep_uploads,
)
RENAMES = PublicationMethod(
    name="rename",
    open_file=_open_attempt_file,
    check=_check_targets,
    publish_file=_rename_file,
    sweep=_sweep_unfinished_files,
)
TRANSACTION = replace(UPLOADS, name="transaction", at_once=True)
_BY_NAME = {publication.name: publication for publication in (UPLOADS, RENAMES, TRANSACTION)}
assert tuple(_BY_NAME) == PUBLICATION_NAMES


def find_job_publication(job: JobRecord) -> PublicationMethod:
    """Return the publication that makes the job's files visible.

    Raises:
        CorruptDataError: this version does not know the publication that the job's record names.
    """
    found = _BY_NAME.get(job.publication)
    if found is None:
        raise CorruptDataError(
            "the record of a job names an unknown publication: use the version of Holdfast that wrote it, or restore "
            "the record",
            job=job.job,
            publication=job.publication,
        )
    return found


def choose_publication(store: ObjectStore) -> PublicationMethod:
    """Choose a transaction if the store supports it; else atomic rename, because it writes no byte twice; else uploads.

    Raises:
        UnsupportedError: the store has neither rename nor uploads.
    """
    if store.capabilities.transactions:
        return TRANSACTION
    if store.capabilities.rename:
        return RENAMES
    if store.capabilities.multipart is not None:
        return UPLOADS
    raise UnsupportedError("two_phase needs a store with multipart uploads or atomic rename: choose another store")
