"""An interceptor that counts calls: cheap enough to stay on in production."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.stores.interceptors.intercepted import Operation, StoreCall

__all__ = ["Counted"]

T = TypeVar("T")


class Counted:
    """Counts every call, also those that failed. Threads may share it."""

    def __init__(self) -> None:
        self._counts: collections.Counter[Operation] = collections.Counter()
        self._lock = threading.Lock()

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        with self._lock:
            self._counts[call.operation] += 1
        return proceed()

    def counts(self) -> dict[str, int]:
        """Calls so far, by the name of the operation."""
        with self._lock:
            return {
                operation.value: count for operation, count in sorted(self._counts.items(), key=lambda i: i[0].value)
            }

    @property
    def total(self) -> int:
        """All calls so far."""
        with self._lock:
            return self._counts.total()
