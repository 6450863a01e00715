"""What a run of the suite leaves in a store, and how it goes again, also where uploads cannot be listed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from holdfast.errors import HoldfastError
from holdfast.seams.runner import Runner
from holdfast.stores.base import MultipartStore, ObjectStore, batched_keys, iter_objects, iter_uploads, multipart
from holdfast.stores.intercept import Operation, StoreCall

__all__ = ["Traces"]

T = TypeVar("T")
_ROUNDS = 5  # what a call that was under way has made shows in the next


class Traces:
    """An interceptor that remembers the uploads that were begun and not ended. Threads and handles may share it."""

    def __init__(self) -> None:
        self._uploads: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        answer = proceed()
        with self._lock:
            if call.operation is Operation.CREATE_UPLOAD:
                self._uploads.add((call.key, str(answer)))
            elif call.operation in (Operation.COMPLETE_UPLOAD, Operation.ABORT_UPLOAD):
                self._uploads.discard((call.key, call.upload_id))
        return answer

    def remove(self, store: ObjectStore, prefix: str, runner: Runner) -> int:
        """Delete all objects and abort all uploads below a directory; returns how many objects or uploads would not go.

        Args:
            store: the bare store.
            prefix: ends in ``/``.
        """
        for _ in range(_ROUNDS):
            keys = [info.key for info in iter_objects(store, prefix, markers=True)]
            uploads = self._pending(store, prefix)
            if not keys and not uploads:
                return 0
            for batch in batched_keys(keys):
                store.delete_many(batch)
            if uploads:
                list(runner.map(partial(_abort, multipart(store)), uploads))
                with self._lock:
                    self._uploads.difference_update(uploads)
        return sum(1 for _ in iter_objects(store, prefix, markers=True)) + len(self._pending(store, prefix))

    def _pending(self, store: ObjectStore, prefix: str) -> list[tuple[str, str]]:
        with self._lock:
            known = set(self._uploads)
        if store.capabilities.multipart is not None:
            known.update(_listed(multipart(store), prefix))
        return sorted(known)


def _abort(store: MultipartStore, upload: tuple[str, str]) -> None:
    store.abort_upload(*upload)


def _listed(store: MultipartStore, prefix: str) -> list[tuple[str, str]]:
    try:
        return [(upload.key, upload.upload_id) for upload in iter_uploads(store, prefix)]
    except HoldfastError:
        return []  # a server that cannot list them; what was begun is known
