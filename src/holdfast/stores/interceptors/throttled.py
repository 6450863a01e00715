"""Throttle a fast store to the speed of a remote one: latency, bandwidth and limited concurrency.

Worked composition::

    store = InterceptedStore(MemoryStore(), Throttled(ThrottleOptions(request_s=0.05, copy_bytes_per_s=10e6)))
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from holdfast.errors import HoldfastError
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.stores.interceptors.intercepted import Operation, StoreCall

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleOptions:
    """The speed of the simulated store.

    Attributes:
        request_s: seconds per request. The papers measured the default value on S3.
        copy_bytes_per_s: rate of one server-side copy; None for no limit. Renames on S3 reached the default value.
        upload_bytes_per_s: rate of one put, part or file write; None for no limit.
        max_concurrent: number of requests that the store executes at the same time; None for no limit.
    """

    request_s: float = 0.05
    copy_bytes_per_s: float | None = 10e6
    upload_bytes_per_s: float | None = None
    max_concurrent: int | None = None


class Throttled:
    """An interceptor that makes each call wait as long as it would take on the simulated store. Thread-safe.

    The cost of a call:

    - Each call is one request and costs ``request_s``: a page of a listing, a `delete_many` of a thousand keys, a
      `rename`, a `rename_dir` of a whole tree, a `copy`, an `apply` of any number of changes, an `open_write`, or the
      `close` of the file that was opened.
    - In addition, the bytes of a put, part or file write, and those of the puts in an `apply`, take time at the rate
      ``upload_bytes_per_s``, and the bytes of a copy at the rate ``copy_bytes_per_s``. A get and a rename transfer no
      bytes.
    - A call that the store rejects, such as a head of a missing object, costs one request and no bytes.
    - Writing into an open file and discarding it cost no request; `capabilities` and `close` are not calls.

    The wait follows the call and occupies one of the ``max_concurrent`` slots.

    Args:
        options: the speed.
        clock: used for waiting; with a simulated clock, a benchmark becomes a calculation.
    """

    def __init__(self, options: ThrottleOptions = ThrottleOptions(), clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._slots: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext()
            if options.max_concurrent is None
            else threading.BoundedSemaphore(options.max_concurrent)
        )

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        with self._slots:
            try:
                result = proceed()
            except HoldfastError:
                self._wait(self._latency_s(call))
                raise
            self._wait(self._latency_s(call) + self._transfer_s(call))
            return result

    def _wait(self, duration_s: float) -> None:
        if duration_s > 0:
            self._clock.sleep(duration_s)

    def _latency_s(self, call: StoreCall) -> float:
        is_request = call.operation not in (Operation.FILE_WRITE, Operation.FILE_DISCARD)
        return self._options.request_s if is_request else 0.0

    def _transfer_s(self, call: StoreCall) -> float:
        is_copy = call.operation is Operation.COPY
        rate = self._options.copy_bytes_per_s if is_copy else self._options.upload_bytes_per_s
        return 0.0 if rate is None else call.size_bytes / rate
