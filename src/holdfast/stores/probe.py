"""Probe which features a server supports: S3-compatible servers differ, and none of them reports its features.

Worked composition::

    if find_upload_listing_mode(store, "table/_holdfast/") is not UploadListingMode.BY_DIRECTORY:
        ...  # rely on the job's own records, and report that

Results are cached by `Capabilities.server` for the life of the process.
"""

from __future__ import annotations

import enum
import threading

from holdfast.errors import AccessDeniedError, InvalidRequestError, PreconditionError, UnsupportedError
from holdfast.runtime import Ids
from holdfast.stores.base import Create, MultipartStore, ObjectStore, Support, iter_uploads, iter_uploads_of, multipart


class UploadListingMode(enum.Enum):
    """How a store lists pending uploads."""

    BY_DIRECTORY = "by directory"
    """`iter_uploads` returns every upload below a directory, as on S3."""
    BY_KEY = "by whole key"
    """`iter_uploads` returns nothing, `iter_uploads_of` returns the uploads of one key (MinIO: minio/minio#20989)."""
    NOT_AT_ALL = "not at all"
    """Neither works; the caller needs its own records of uploads, or the store has no uploads."""


_found: dict[str, UploadListingMode] = {}  # by server: a process probes each server once
_lock = threading.Lock()


def find_upload_listing_mode(store: ObjectStore, below: str) -> UploadListingMode:
    """Return how the store lists pending uploads, according to its capabilities, the cache or a probe.

    Guarantee: makes no request if the capabilities contain the answer, or if this process has probed the server before.
    In all other cases, it starts an upload without parts at a temporary key, lists it and aborts it: four or five
    requests. Nothing becomes visible.

    Args:
        below: the directory for the probe; ends in ``/`` or is empty. Use a job's own directory, so that the job's
            cleanup finds leftover data, or the directory ``_holdfast/`` of a destination.

    Raises:
        AccessDeniedError: the policy forbids starting, listing or aborting uploads: allow all three.
        UnavailableError: the probe was inconclusive; try again later.

    Crash: a pending upload without parts remains below `below`.
    """
    capabilities = store.capabilities
    if capabilities.multipart is None or capabilities.lists_uploads is Support.NO:
        return UploadListingMode.NOT_AT_ALL
    if capabilities.lists_uploads is Support.YES:
        return UploadListingMode.BY_DIRECTORY
    with _lock:
        known = _found.get(capabilities.server)
    if known is None:
        known = _try_upload_listing(multipart(store), make_probe_upload_key(below))
        if capabilities.server:
            with _lock:
                _found[capabilities.server] = known
    return known


def make_probe_upload_key(below: str) -> str:
    """Return the key of the upload of `find_upload_listing_mode`: always the same, so that leftovers are found."""
    return f"{below}probe/upload"


def _try_upload_listing(store: MultipartStore, key: str) -> UploadListingMode:
    upload_id = store.create_upload(key)
    try:
        # The directory contains only probes of other processes, alive or dead.
        if any(found.upload_id == upload_id for found in iter_uploads(store, key.removesuffix("upload"))):
            return UploadListingMode.BY_DIRECTORY
        if any(found.upload_id == upload_id for found in iter_uploads_of(store, key)):
            return UploadListingMode.BY_KEY
    except AccessDeniedError:
        raise  # unrelated to what the server supports
    except (UnsupportedError, InvalidRequestError):
        pass  # rejected; servers choose different codes
    finally:
        store.abort_upload(key, upload_id)
    return UploadListingMode.NOT_AT_ALL


def store_heeds_conditions(store: ObjectStore, below: str, ids: Ids) -> bool:
    """Check whether the store honors conditional writes: by its capabilities, or by a probe at a temporary key.

    A server that honors conditions may still let two of several concurrent writers succeed. Only races between writers
    reveal this (`stores.conformance`).

    Args:
        below: the directory for the probe; ends in ``/`` or is empty.
        ids: supplies the name of the temporary key.

    Crash: an object of a few bytes remains below `below`.
    """
    known = store.capabilities.conditional_put
    if known is not Support.UNKNOWN:
        return known is Support.YES
    key, data = f"{below}probe-{ids.token()}/object", b"probe"
    store.put(key, data)
    try:
        return store_refuses_second_create(store, key, data)
    finally:
        store.delete(key)


def store_refuses_second_create(store: ObjectStore, key: str, data: bytes) -> bool:
    """Check whether the store rejects a `Create` of an existing object. Makes one request; caches nothing.

    Args:
        key: the key of an existing object.
        data: the object's content. If the store ignores the condition, it overwrites the object with the same bytes.
    """
    try:
        store.put(key, data, Create())
    except PreconditionError:
        return True
    except UnsupportedError:
        pass
    return False
