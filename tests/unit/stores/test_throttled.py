"""Throttling as arithmetic on a simulated clock, and its bound on concurrency with real threads."""

from __future__ import annotations

import threading

import pytest

from holdfast.seams.runner import ThreadRunner
from holdfast.stores.base import ObjectInfo
from holdfast.stores.intercept import InterceptedStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.throttled import Throttled, ThrottleOptions


class _Waits:
    """A clock that notes waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now_s(self) -> float:
        return 0.0

    def elapsed_s(self) -> float:
        return 0.0

    def sleep(self, duration_s: float) -> None:
        self.waits.append(duration_s)


def test_figures_of_the_paper() -> None:
    """50 ms a request and copies at 10 MB/s: paper 000's S3."""
    clock = _Waits()
    store = InterceptedStore(MemoryStore(), Throttled(clock=clock))
    store.put("a", b"x" * 1000)
    store.copy(ObjectInfo("a", 20_000_000), "b")
    assert clock.waits == [pytest.approx(0.05), pytest.approx(0.05 + 2.0)]


def test_uploads_take_their_bytes() -> None:
    clock = _Waits()
    options = ThrottleOptions(request_s=0.01, copy_bytes_per_s=None, upload_bytes_per_s=1000.0)
    store = InterceptedStore(MemoryStore(rename=True), Throttled(options, clock))
    store.put("a", b"x" * 500)
    file = store.open_write("f")
    file.write(b"x" * 100)
    file.close()
    store.copy(store.head("f"), "g")
    expected = [0.51, 0.01, 0.1, 0.01, 0.01, 0.01]
    assert clock.waits == [pytest.approx(wait) for wait in expected]


def test_discarding_is_no_request() -> None:
    clock = _Waits()
    store = InterceptedStore(MemoryStore(rename=True), Throttled(clock=clock))
    store.open_write("f").discard()
    assert clock.waits == [pytest.approx(0.05)]


class _Crowd(_Waits):
    """Notes how many are waiting at once; each waits for company, as long as the bound lets any come."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self._three = threading.Barrier(3)

    def sleep(self, duration_s: float) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._three.wait(timeout=30)
        with self._lock:
            self._inside -= 1


def test_no_more_at_once_than_the_bound() -> None:
    clock = _Crowd()
    store = InterceptedStore(MemoryStore(), Throttled(ThrottleOptions(max_concurrent=3), clock))
    list(ThreadRunner(8).map(lambda n: store.put(f"k{n}", b""), range(12)))
    assert clock.most == 3
