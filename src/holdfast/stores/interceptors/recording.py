"""Record the calls to a store: how many a step makes, and in which order."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.stores.interceptors.intercepted import Operation, StoreCall

T = TypeVar("T")


class Recorder:
    """An interceptor that records all calls, including failed ones, in the order in which they start. Thread-safe.

    Attributes:
        calls: the calls so far.
    """

    def __init__(self) -> None:
        self.calls: list[StoreCall] = []
        self._lock = threading.Lock()

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        with self._lock:
            self.calls.append(call)
        return proceed()

    def counts(self) -> collections.Counter[Operation]:
        """Return the number of calls of each operation."""
        with self._lock:
            return collections.Counter(call.operation for call in self.calls)

    def count(self, operation: Operation) -> int:
        """Return the number of calls of one operation."""
        return self.counts()[operation]

    def clear(self) -> None:
        """Forget the calls so far."""
        with self._lock:
            self.calls.clear()
