"""An interceptor that keeps the calls: what did this step cost, and in which order did it ask?"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.stores.interceptors.intercepted import Operation, StoreCall

__all__ = ["Recorded"]

T = TypeVar("T")


class Recorded:
    """Keeps every call in the order in which they started, also those that failed. Threads may share it.

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
        """How many calls of each operation there were."""
        with self._lock:
            return collections.Counter(call.operation for call in self.calls)

    def count(self, operation: Operation) -> int:
        """How many calls of one operation there were."""
        return self.counts()[operation]

    def clear(self) -> None:
        """Forget the calls so far."""
        with self._lock:
            self.calls.clear()
