"""Delete everything that a run of the suite left in a store, even if the server cannot list uploads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from holdfast.errors import ConflictError, HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.runtime import Runner
from holdfast.stores.base import (
    MultipartStore,
    ObjectStore,
    UploadInfo,
    batched_keys,
    iter_objects,
    iter_uploads,
    iter_uploads_of,
    multipart,
)
from holdfast.stores.interceptors import Operation, StoreCall

T = TypeVar("T")
_ROUNDS = 5  # data of calls that were still running appears in a later round


class Traces:
    """An interceptor that records which keys and uploads exist. Threads and handles may share it.

    It records uploads for servers that do not list them, and keys for servers that list some of them incorrectly:
    versitygw replaces control characters with U+FFFD, so that a key from its listing may not be the key of any object.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._uploads: set[tuple[str, str]] = set()
        self._unanswered: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        try:
            answer = proceed()
        except (InvalidRequestError, UnsupportedError, ConflictError):
            raise  # the store rejected it
        except BaseException:
            if call.operation is Operation.CREATE_UPLOAD:
                with self._lock:
                    self._unanswered.add(call.key)  # the upload may exist, and its id is unknown
            raise
        with self._lock:
            if call.operation is Operation.CREATE_UPLOAD:
                self._uploads.add((call.key, str(answer)))
            elif call.operation in (Operation.COMPLETE_UPLOAD, Operation.ABORT_UPLOAD):
                self._uploads.discard((call.key, call.upload_id))
            if call.operation in (Operation.PUT, Operation.COMPLETE_UPLOAD):
                self._keys.add(call.key)
            elif call.operation is Operation.APPLY:  # some of its keys may be of deletions: those are deleted twice
                self._keys.update(key for key in call.keys if not key.endswith("/"))
            elif call.operation is Operation.DELETE:
                self._keys.discard(call.key)
            elif call.operation is Operation.DELETE_MANY:
                self._keys.difference_update(call.keys)
        return answer

    def remove(self, store: ObjectStore, prefix: str, runner: Runner) -> list[str]:
        """Delete all objects and abort all uploads below a directory; return the keys where data may remain.

        Args:
            store: the store without interceptors.
            prefix: ends in ``/``.
        """
        for _ in range(_ROUNDS):
            keys = [info.key for info in iter_objects(store, prefix, markers=True)]
            uploads = self._pending(store, prefix)
            with self._lock:
                unseen = {key for key in self._keys if key.startswith(prefix)}.difference(keys)
                self._keys -= unseen
            if not keys and not uploads and not unseen:
                return self._unlisted(store, prefix)
            for batch in batched_keys([*keys, *sorted(unseen)]):
                store.delete_many(batch)
            if uploads:
                list(runner.map(partial(_abort, multipart(store)), uploads))
                with self._lock:
                    self._uploads.difference_update(uploads)
        left = {info.key for info in iter_objects(store, prefix, markers=True)}
        left.update(key for key, _upload_id in self._pending(store, prefix))
        return sorted(left.union(self._unlisted(store, prefix)))

    def _pending(self, store: ObjectStore, prefix: str) -> list[tuple[str, str]]:
        with self._lock:
            known = {upload for upload in self._uploads if upload[0].startswith(prefix)}
            unanswered = [key for key in self._unanswered if key.startswith(prefix)]
        if store.capabilities.multipart is not None:
            known.update(_listed(iter_uploads(multipart(store), prefix)) or ())
            for key in unanswered:  # some servers list uploads by whole keys only
                known.update(_listed(iter_uploads_of(multipart(store), key)) or ())
        return sorted(known)

    def _unlisted(self, store: ObjectStore, prefix: str) -> list[str]:
        """Return the keys that may have an upload whose id the server has not returned and which it does not list."""
        with self._lock:
            unanswered = sorted(key for key in self._unanswered if key.startswith(prefix))
        return [key for key in unanswered if _listed(iter_uploads_of(multipart(store), key)) is None]


def _abort(store: MultipartStore, upload: tuple[str, str]) -> None:
    store.abort_upload(*upload)


def _listed(uploads: Iterator[UploadInfo]) -> list[tuple[str, str]] | None:
    """List uploads; return None if the server cannot list them."""
    try:
        return [(upload.key, upload.upload_id) for upload in uploads]
    except HoldfastError:
        return None
