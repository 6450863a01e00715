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

from holdfast.seams.clock import Clock, SystemClock
from holdfast.stores.intercept import Operation, StoreCall

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

    Writing into an open file and discarding it are no requests: only the bandwidth of uploads slows them.

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
            result = proceed()
            wait_s = self._duration_s(call)
            if wait_s > 0:
                self._clock.sleep(wait_s)
            return result

    def _duration_s(self, call: StoreCall) -> float:
        options = self._options
        in_memory = call.operation in (Operation.FILE_WRITE, Operation.FILE_DISCARD)
        duration_s = 0.0 if in_memory else options.request_s
        rate = options.copy_bytes_per_s if call.operation is Operation.COPY else options.upload_bytes_per_s
        if rate is not None:
            duration_s += call.size_bytes / rate
        return duration_s
