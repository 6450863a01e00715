"""How a file that is complete but hidden becomes visible: the one thing in which stores differ.

A `Publication` is a value of five steps. Each step may be run again by anybody, at any time (C10).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, JobId, file_owner
from holdfast.commit.intents import announced_keys, judge_keys
from holdfast.commit.records import FileEntry, JobRecord
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.two_phase.pending_uploads import list_keys, reported_uploads
from holdfast.commit.two_phase.records import PUBLICATION_NAMES
from holdfast.commit.uploads import complete_upload, is_published, open_upload, settle
from holdfast.errors import AccessDeniedError, CorruptDataError, UnsupportedError
from holdfast.stores.base import ObjectStore, UploadInfo, iter_uploads, multipart, rename
from holdfast.stores.probe import UploadListing

__all__ = ["RENAMES", "UPLOADS", "IsOver", "Leftovers", "Publication", "choose_publication", "publication_of"]

_log = logging.getLogger(__name__)


IsOver = Callable[[JobId, str], bool]
"""Told (job, key of its leftover): whether nobody can commit the job any more. See `live_jobs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What the folders of jobs that are over tell a sweep.

    Attributes:
        listing: how the server lists pending uploads.
        manifests: those of attempts that do not count: when each was written, by key.
        intents: keys of records of intents.
        unreported: those of them whose attempts have not reported.
        limit: how many uploads of the server's listing are looked at after a decision, where what the store refuses is
            logged; None for all, where it is raised.
    """

    listing: UploadListing
    manifests: Mapping[str, float] = field(default_factory=dict)
    intents: Sequence[str] = ()
    unreported: Sequence[str] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Steps on one file.

    Attributes:
        name: kept in records, so that whoever recovers uses the same.
        open_file: a sink for a new file of an attempt.
        check: refuse targets, relative to the destination, that `publish_file` could not make visible as things are.
        publish_file: make the file of an attempt visible; False if it is nowhere, neither waiting nor visible.
        sweep: give up everything that the jobs for which `is_over` holds still have waiting, with the help of what
            their folders hold. Returns how many uploads went, and whether some may be left: because a job that may
            still commit has announced the same keys, or beyond the limit.
    """

    name: str
    open_file: Callable[[TaskScope, str], UploadSink | RenameSink]
    check: Callable[[CommitContext, Sequence[str]], None]
    publish_file: Callable[[CommitContext, FileEntry, AttemptId], bool]
    sweep: Callable[[CommitContext, IsOver, Leftovers], tuple[int, bool]]


# --- uploads ----------------------------------------------------------------------------------------------------------


def _open_announced_upload(scope: TaskScope, path: str) -> UploadSink:
    has_to_be_announced = scope.job.announced or file_owner(path) is None
    return open_upload(scope, path, guard=scope.intents if has_to_be_announced else None)


def _accept_any(ctx: CommitContext, targets: Sequence[str]) -> None:
    """Every key can be an object, whatever else is there."""


def _sweep_uploads(ctx: CommitContext, is_over: IsOver, left: Leftovers) -> tuple[int, bool]:
    """What attempts have reported goes by their manifests; what is listed behind that belongs to those that died."""
    aborted, refused = _abort(ctx, reported_uploads(ctx, left.manifests), left)
    more, contested = _sweep_below(ctx, ctx.prefix, is_over, left)
    return aborted + more, contested or refused


def _abort(ctx: CommitContext, uploads: Iterable[UploadInfo], left: Leftovers) -> tuple[int, bool]:
    """Abort uploads; how many went, and whether the store refused to abort one, which only recovery raises."""
    store = multipart(ctx.store)

    def abort(upload: UploadInfo) -> bool:
        try:
            store.abort_upload(upload.key, upload.upload_id)
        except AccessDeniedError as error:
            if left.limit is None:
                raise
            _log.warning("a leftover upload may not be aborted, and is left to holdfast recover: %s", error)
            return False
        return True

    went = list(ctx.runner.map(abort, uploads))
    return sum(went), not all(went)


def _list_below(ctx: CommitContext, prefix: str, left: Leftovers) -> list[UploadInfo] | None:
    """Pending uploads below a prefix; None if they may not be listed, which only recovery raises."""
    try:
        return list(itertools.islice(iter_uploads(multipart(ctx.store), prefix), left.limit))
    except AccessDeniedError as error:
        if left.limit is None:
            raise
        _log.warning("pending uploads may not be listed, so those of attempts that died stay: %s", error)
        return None


def _sweep_below(ctx: CommitContext, prefix: str, is_over: IsOver, left: Leftovers) -> tuple[int, bool]:
    """C7: only uploads below this destination that belong to jobs that are over, as their keys or intents say."""

    def listed() -> list[UploadInfo]:
        found = _list_below(ctx, prefix, left) if left.listing is UploadListing.BY_DIRECTORY else None
        return list(list_keys(ctx, sorted(announced_keys(ctx, left.unreported)))) if found is None else found

    def leftovers() -> tuple[list[UploadInfo], bool]:
        found: list[UploadInfo] = []
        unnamed: list[UploadInfo] = []
        uploads = listed()
        for upload in uploads:
            if layout.is_job_record(upload.key):
                continue  # on a file system: a job is announcing itself, and nothing tells yet that it is alive
            job = layout.job_of(upload.key)
            if job is None:
                unnamed.append(upload)
            elif is_over(job, upload.key):
                found.append(upload)
        cut_off = len(uploads) == left.limit  # what intents name may lie behind
        if not (unnamed and left.intents):
            return found, cut_off
        keys, contested = judge_keys(ctx, left.intents, {upload.key for upload in unnamed}, is_over)
        return found + [upload for upload in unnamed if upload.key in keys], bool(contested) or cut_off

    aborted, contested = 0, False
    # A part that was on its way while its upload was aborted can leave the upload alive: look again, a few times.
    for _ in range(3):
        found, contested = leftovers()
        if not found:
            break
        count, refused = _abort(ctx, found, left)
        aborted += count
        if refused:
            return aborted, True
    return aborted, contested


# --- renames ----------------------------------------------------------------------------------------------------------
def _open_attempt_file(scope: TaskScope, path: str) -> RenameSink:
    owner = scope.owner
    source = layout.attempt_file(owner.job, owner.task, owner.attempt, path)
    return RenameSink(rename(scope.ctx.store), scope.ctx.key(source), source, path, background=scope.background)


def _check_targets(ctx: CommitContext, targets: Sequence[str]) -> None:
    rename(ctx.store).check_targets([ctx.key(target) for target in targets])


def _rename_file(ctx: CommitContext, file: FileEntry, written_by: AttemptId) -> bool:
    """A source is used once: who comes late finds it gone, and never replaces what stands at the target now."""
    store = rename(ctx.store)
    return settle(
        ctx,
        file,
        lambda: store.rename(ctx.key(file.source), ctx.key(file.path)),
        lambda: is_published(ctx, file, written_by),
    )


def _sweep_unfinished_files(ctx: CommitContext, is_over: IsOver, left: Leftovers) -> tuple[int, bool]:
    """Files of attempts lie in their job's folder and go with it; what a killed attempt was writing is listed apart."""
    if ctx.store.capabilities.multipart is None:
        return 0, False
    return _sweep_below(ctx, ctx.key(layout.JOBS), is_over, replace(left, intents=()))


UPLOADS = Publication(
    name="upload",
    open_file=_open_announced_upload,
    check=_accept_any,
    publish_file=complete_upload,
    sweep=_sweep_uploads,
)
RENAMES = Publication(
    name="rename",
    open_file=_open_attempt_file,
    check=_check_targets,
    publish_file=_rename_file,
    sweep=_sweep_unfinished_files,
)
_BY_NAME = {publication.name: publication for publication in (UPLOADS, RENAMES)}
assert tuple(_BY_NAME) == PUBLICATION_NAMES


def publication_of(job: JobRecord) -> Publication:
    """Return the publication by which the job's files become visible.

    Raises:
        CorruptDataError: the job's record names none that this version knows.
    """
    found = _BY_NAME.get(job.publication)
    if found is None:
        raise CorruptDataError(
            "the record of a job names no way of publication: another version wrote it, use that one, or restore it",
            job=job.job,
            publication=job.publication,
        )
    return found


def choose_publication(store: ObjectStore) -> Publication:
    """Choose atomic rename where the store has it (no byte is written twice), otherwise delayed uploads.

    Raises:
        UnsupportedError: the store has neither.
    """
    if store.capabilities.rename:
        return RENAMES
    if store.capabilities.multipart is not None:
        return UPLOADS
    raise UnsupportedError("two_phase needs a store with multipart uploads or atomic rename: choose another store")
