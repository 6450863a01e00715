"""What a server does, found out by trying: S3-compatible servers differ, and none says so by itself.

Worked composition::

    if find_upload_listing(store, "table/_holdfast/") is not UploadListing.BY_DIRECTORY:
        ...  # go by the job's own records, and say so

What was found out about a server is remembered for the life of the process, by `Capabilities.server`.
"""

from __future__ import annotations

import enum
import threading

from holdfast.errors import AccessDeniedError, InvalidRequestError, PreconditionError, UnsupportedError
from holdfast.runtime.ids import Ids
from holdfast.stores.base import Create, MultipartStore, ObjectStore, Support, iter_uploads, iter_uploads_of, multipart

__all__ = ["UploadListing", "find_upload_listing", "heeds_conditions", "refuses_second_create", "upload_key"]


class UploadListing(enum.Enum):
    """How a store lists pending uploads."""

    BY_DIRECTORY = "by directory"
    """`iter_uploads` shows every upload below a directory, as S3 does."""
    BY_KEY = "by whole key"
    """`iter_uploads` shows nothing, `iter_uploads_of` shows the uploads of one key (MinIO: minio/minio#20989)."""
    NOT_AT_ALL = "not at all"
    """Uploads have to be known from elsewhere, or the store has none."""


_found: dict[str, UploadListing] = {}  # by server: a process asks each once
_lock = threading.Lock()


def find_upload_listing(store: ObjectStore, below: str) -> UploadListing:
    """How the store lists pending uploads: known from its capabilities, remembered, or tried.

    Guarantee: makes no request if the store's capabilities say it or this process has asked the server before. Else
    starts an upload without parts at a throw-away key, lists it and aborts it: four requests, five at most; nothing
    becomes visible.

    Args:
        below: a directory in which the upload is tried: ends in ``/`` or is empty. A job's own, so that whoever cleans
            up after the job finds it, or ``_holdfast/`` of a destination.

    Raises:
        AccessDeniedError: the policy forbids to start, list or abort uploads: allow all three.
        UnavailableError: nothing was found out; ask again.

    Crash: a pending upload without parts below `below`.
    """
    capabilities = store.capabilities
    if capabilities.multipart is None or capabilities.lists_uploads is Support.NO:
        return UploadListing.NOT_AT_ALL
    if capabilities.lists_uploads is Support.YES:
        return UploadListing.BY_DIRECTORY
    with _lock:
        known = _found.get(capabilities.server)
    if known is None:
        known = _try_upload_listing(multipart(store), upload_key(below))
        if capabilities.server:
            with _lock:
                _found[capabilities.server] = known
    return known


def upload_key(below: str) -> str:
    """The key of the upload by which `find_upload_listing` tries: always the same, so that what is left is found."""
    return f"{below}probe/upload"


def _try_upload_listing(store: MultipartStore, key: str) -> UploadListing:
    upload_id = store.create_upload(key)
    try:
        # Nothing else is in the directory but what others try at the same moment, or left when they died.
        if any(found.upload_id == upload_id for found in iter_uploads(store, key.removesuffix("upload"))):
            return UploadListing.BY_DIRECTORY
        if any(found.upload_id == upload_id for found in iter_uploads_of(store, key)):
            return UploadListing.BY_KEY
    except AccessDeniedError:
        raise  # says nothing about the server
    except (UnsupportedError, InvalidRequestError):
        pass  # refused, by whichever code the server chose
    finally:
        store.abort_upload(key, upload_id)
    return UploadListing.NOT_AT_ALL


def heeds_conditions(store: ObjectStore, below: str, ids: Ids) -> bool:
    """Whether the store refuses to create what is there: known from its capabilities, or tried at a throw-away key.

    A server that heeds conditions may still let two of many writers win at the same moment: only races show that
    (`stores.conformance`).

    Args:
        below: a directory in which it is tried: ends in ``/`` or is empty.
        ids: names the throw-away key.

    Crash: an object of a few bytes below `below`.
    """
    known = store.capabilities.conditional_put
    if known is not Support.UNKNOWN:
        return known is Support.YES
    key, data = f"{below}probe-{ids.token()}/object", b"probe"
    store.put(key, data)
    try:
        return refuses_second_create(store, key, data)
    finally:
        store.delete(key)


def refuses_second_create(store: ObjectStore, key: str, data: bytes) -> bool:
    """Whether the store refuses to create the object that is there already; one request, not remembered.

    Args:
        key: of an object that is there.
        data: what it holds: a store that ignores the condition writes the same once more.
    """
    try:
        store.put(key, data, Create())
    except PreconditionError:
        return True
    except UnsupportedError:
        pass
    return False
