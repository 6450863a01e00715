"""An interceptor that makes a fast store as slow as a far one: latency, bandwidth and a bound on concurrency.

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

__all__ = ["ThrottleOptions", "Throttled"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleOptions:
    """How slow the store is made.

    Attributes:
        request_s: seconds that every request takes. The default is what the papers saw of S3.
        copy_bytes_per_s: rate of one server-side copy; None for no bound. The default is what renames reached on S3.
        upload_bytes_per_s: rate of one put, part or file write; None for no bound.
        max_concurrent: requests that the store works on at once; further ones wait. None for no bound.
    """

    request_s: float = 0.05
    copy_bytes_per_s: float | None = 10e6
    upload_bytes_per_s: float | None = None
    max_concurrent: int | None = None


class Throttled:
    """Waits, through a clock, as long as each request would take on the described store. Threads may share it.

    What is charged:

    - every call of a store is one request, ``request_s``, whatever it does: a page of a listing, a `delete_many` of a
      thousand keys, a `rename`, a `rename_dir` of a whole tree, a `copy`, `open_write` and closing its file one each;
    - besides, the bytes of a put, a part or a file write at ``upload_bytes_per_s``, those of a copy at
      ``copy_bytes_per_s``; a get and a rename move none;
    - a call that the store refuses, such as a head of what is missing, is one request and no bytes;
    - writing into an open file and discarding it are no requests; `capabilities` and `close` are no calls.

    The wait comes after the call was done, and holds one of the ``max_concurrent`` places.

    Args:
        options: how slow.
        clock: waits; a simulated one makes a benchmark a calculation.
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
