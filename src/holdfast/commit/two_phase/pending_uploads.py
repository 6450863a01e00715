"""Find out which jobs may still commit, so that cleanup spares them (C7), and which uploads are pending.

Some servers list uploads only for a given key, or not at all (MinIO: minio/minio#20989), and a listing may not be up to
date. So jobs record their uploads themselves: manifests name the uploads of attempts that have reported, and if the
server cannot list uploads, every attempt also announces the uploads that it is about to start
(`holdfast.commit.intents`).
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.intents import announced_keys, is_intent_record
from holdfast.commit.records import FileEntry, JobRecord
from holdfast.commit.two_phase.records import (
    StreamMark,
    TaskManifest,
    decode_leftover_manifest,
    decode_open_job,
    is_job_dead,
)
from holdfast.errors import AccessDeniedError, CorruptDataError, NotFoundError, UnsupportedError
from holdfast.stores.base import ObjectInfo, Support, UploadInfo, iter_uploads, iter_uploads_of, multipart
from holdfast.stores.probe import UploadListingMode, find_upload_listing_mode, make_probe_upload_key

_NONE: Mapping[str, StreamMark] = {}


class LiveJobs:
    """Looks up whether a job may still commit, and caches the answer.

    A job's record is written before its first upload and deleted when nothing of the job is pending, so cleanup never
    touches a job that has a record. The record is in the job's destination, which may be any folder above the key of an
    upload: uploads of a job that writes to ``s3://bucket/flights`` are found by a cleanup of ``s3://bucket``, and by a
    cleanup of ``s3://bucket/flights/month=1``.

    Args:
        ctx: the destination that is cleaned up.
        ended: jobs that have ended even if they have a record, such as the job that is being rolled forward.
        dead: maps each stream to a batch. All jobs that wrote this batch or an earlier one have ended even if they have
            a record (see `dead_batches`): they are left from before a restart, or belong to zombies.
    """

    def __init__(self, ctx: CommitContext, ended: Iterable[JobId] = (), dead: Mapping[str, StreamMark] = _NONE) -> None:
        self._ctx = ctx
        self._ended = frozenset(ended)
        self._dead = dead
        self._live: dict[str, bool] = {}

    def has_ended(self, job: JobId, key: str) -> bool:
        """Check whether `job` can no longer be committed.

        Args:
            key: the key of any object that belongs to the job, below the context's prefix.
        """
        if job in self._ended:
            return True
        return not any(self._is_job_live_in(folder, job) for folder in layout.iter_folders_above(key))

    def _is_job_live_in(self, folder: str, job: JobId) -> bool:
        key = folder + layout.job_record_path(job)
        if key not in self._live:
            # `_dead` comes from the log of the context's own destination, so it applies only there.
            with_stream = bool(self._dead) and folder == self._ctx.prefix
            self._live[key] = self._job_may_commit(key) if with_stream else self._job_exists(folder, key)
        return self._live[key]

    def _job_exists(self, folder: str, key: str) -> bool:
        try:
            self._ctx.store.head(key)
        except NotFoundError:
            return False
        except AccessDeniedError:
            if len(folder) >= len(self._ctx.prefix):
                raise
            return False  # the credentials cover only this destination: assume that no job above writes into it
        return True

    def _job_may_commit(self, key: str) -> bool:
        try:
            return not is_job_dead(decode_open_job(key, self._ctx.store.get(key)), self._dead)
        except NotFoundError:
            return False
        except CorruptDataError:
            return True  # it is unknown whether this job has ended: do not clean up


_log = logging.getLogger(__name__)
_MANIFEST = re.compile(r"[^/]+/attempts/[^/]+\.jsonl")

NOTES: Mapping[UploadListingMode, str] = {
    UploadListingMode.BY_DIRECTORY: "",
    UploadListingMode.BY_KEY: "this server does not list pending uploads: the list contains only those that jobs of "
    "this destination have reported or announced, and the server may abort idle ones (MinIO does after 24 hours)",
    UploadListingMode.NOT_AT_ALL: "this server lists no pending uploads, or the policy does not allow it: the list "
    "contains only those that jobs of this destination have reported, and some of them may no longer be pending",
}


def find_listing_support(ctx: CommitContext) -> UploadListingMode:
    """Find out, once per process, how the server lists pending uploads; ``NOT_AT_ALL`` if a policy forbids listing.

    Crash: leaves a pending upload without parts below ``_holdfast/``.
    """
    try:
        return find_upload_listing_mode(ctx.store, ctx.key(layout.HOME))
    except AccessDeniedError:
        return UploadListingMode.NOT_AT_ALL


def listing_probe_key(ctx: CommitContext) -> str:
    """Return the key of the upload that `find_listing_support` starts to probe the server."""
    return make_probe_upload_key(ctx.key(layout.HOME))


def is_manifest(key: str) -> bool:
    """Check whether `key` is the key of an attempt's manifest."""
    return _MANIFEST.fullmatch(key.rpartition(layout.JOBS)[2]) is not None and not is_intent_record(key)


@dataclass(slots=True, kw_only=True)
class UploadRecords:
    """The records in job folders that name uploads (manifests, intents), for a sweep, which aborts leftover uploads.

    Attributes:
        listing: how the server lists pending uploads.
        manifests: maps the key of each manifest that does not count to its modification time.
        intents: maps the key of each intent record to its modification time.
        unreported: the keys in `intents` whose attempts have not reported.
        limit: after a decision, inspect at most this many uploads of the server's listing, and log a warning if the
            store denies access. In recovery the limit is None: inspect all uploads, and raise AccessDeniedError.
    """

    listing: UploadListingMode = UploadListingMode.BY_DIRECTORY
    manifests: dict[str, float] = field(default_factory=dict)
    intents: dict[str, float] = field(default_factory=dict)
    unreported: Collection[str] = ()
    limit: int | None = None

    def note(self, info: ObjectInfo) -> None:
        """Add an object that was listed in a job folder, if it is a manifest or an intent record."""
        if is_intent_record(info.key):
            self.intents[info.key] = info.modified_at_s
        elif is_manifest(info.key):
            self.manifests[info.key] = info.modified_at_s


def iter_reported_uploads(ctx: CommitContext, manifests: Mapping[str, float]) -> Iterator[UploadInfo]:
    """Iterate over the uploads that manifests name, whether or not they are still pending.

    Args:
        manifests: maps the key of each manifest to its modification time. If a manifest cannot be read, a warning is
            logged, because then only the server's listing can show its uploads.
    """

    def read_uploads(key: str) -> list[UploadInfo]:
        try:
            manifest = decode_leftover_manifest(key, ctx.store.get(key))
        except NotFoundError:
            return []  # its job has ended, and another process has cleaned up
        except CorruptDataError as error:
            _log.warning("a manifest cannot be read, its uploads are found only if the server lists them: %s", error)
            return []
        home = key[: key.rindex(layout.JOBS)]
        at_s = manifests[key]
        return [UploadInfo(home + file.path, file.upload_id, at_s) for file in manifest.files if file.upload_id]

    return (upload for found in ctx.runner.map(read_uploads, manifests) for upload in found)


def find_missing_uploads(ctx: CommitContext, job: JobRecord, manifests: Iterable[TaskManifest]) -> list[str]:
    """Return the paths of a job's files whose uploads are no longer listed; empty if the server lists no uploads.

    Memory: the ids of all pending uploads below the destination.
    """
    if job.announced and find_listing_support(ctx) is not UploadListingMode.BY_KEY:
        return []
    # The listing of the whole destination may not be up to date, so list missing uploads again, by key.
    listed = () if job.announced else iter_uploads(multipart(ctx.store), ctx.prefix)
    pending = {upload.upload_id for upload in listed}
    unseen = (file for manifest in manifests for file in manifest.files if file.upload_id not in pending)

    def path_if_missing(file: FileEntry) -> str:
        found = _list_uploads_of_key(ctx, ctx.key(file.path))
        return "" if any(upload.upload_id == file.upload_id for upload in found) else file.path

    return [path for path in ctx.runner.map(path_if_missing, unseen) if path]


def find_uploads_to_keys(ctx: CommitContext, keys: Iterable[str]) -> Iterator[UploadInfo]:
    """List the pending uploads to these keys, key by key; empty if the server cannot list uploads even by key."""
    return (upload for found in ctx.runner.map(lambda key: _list_uploads_of_key(ctx, key), keys) for upload in found)


def _list_uploads_of_key(ctx: CommitContext, key: str) -> list[UploadInfo]:
    try:
        return list(iter_uploads_of(multipart(ctx.store), key))
    except (UnsupportedError, AccessDeniedError):
        return []


def find_uploads(ctx: CommitContext) -> tuple[list[UploadInfo], str]:
    """Find the pending uploads below the destination, from the server's listing or from the destination's records.

    Guarantee: this only reads. If the server's listing is empty, each key that jobs have reported or announced is
    listed separately.

    Returns:
        The uploads, and a sentence that says which uploads the list may lack; empty if the list is complete.
    """
    listed = list(iter_uploads(multipart(ctx.store), ctx.prefix))
    if listed or ctx.store.capabilities.lists_uploads is Support.YES:
        return listed, NOTES[UploadListingMode.BY_DIRECTORY]
    records, announced = _read_job_folders(ctx)
    reported = list(iter_reported_uploads(ctx, records.manifests))
    keys = {upload.key for upload in reported} | announced_keys(ctx, records.intents)
    found = list(find_uploads_to_keys(ctx, sorted(keys)))
    if found:
        return found, NOTES[UploadListingMode.BY_KEY]
    if announced:
        return reported, NOTES[UploadListingMode.NOT_AT_ALL if reported else UploadListingMode.BY_KEY]
    return [], NOTES[UploadListingMode.BY_DIRECTORY]


def _read_job_folders(ctx: CommitContext) -> tuple[UploadRecords, bool]:
    """Return the records of all jobs, and whether any of the jobs has announced its uploads."""
    records, announced = UploadRecords(), False
    for job, objects in layout.iter_job_folders(ctx.store, ctx.prefix):
        for info in objects:
            records.note(info)
        path = layout.job_record_path(job)
        with contextlib.suppress(NotFoundError, CorruptDataError):
            announced = announced or decode_open_job(path, ctx.store.get(ctx.key(path))).announced
    return records, announced
