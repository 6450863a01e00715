"""Throttling as arithmetic on a simulated clock, and its bound on concurrency with real threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from holdfast.errors import HoldfastError
from holdfast.runtime.runner import ThreadRunner
from holdfast.runtime.simulated import StillClock
from holdfast.stores.base import Delete, ObjectInfo, Put, RequireEmpty, Update
from holdfast.stores.interceptors.intercepted import InterceptedStore
from holdfast.stores.interceptors.throttled import Throttled, ThrottleOptions
from holdfast.stores.memory.store import MemoryStore
from tests.patience import PATIENCE_S


def test_figures_of_the_paper() -> None:
    """50 ms a request and copies at 10 MB/s: paper 000's S3."""
    clock = StillClock()
    store = InterceptedStore(MemoryStore(), Throttled(clock=clock))
    store.put("a", b"x" * 1000)
    store.copy(ObjectInfo("a", 20_000_000), "b")
    assert clock.waits == [pytest.approx(0.05), pytest.approx(0.05 + 2.0)]


def test_uploads_take_their_bytes() -> None:
    clock = StillClock()
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
    clock = StillClock()
    store = InterceptedStore(MemoryStore(rename=True), Throttled(clock=clock))
    store.open_write("f").discard()
    assert clock.waits == [pytest.approx(0.05)]


def test_every_request_costs_its_latency() -> None:
    """Whatever it does: a thousand keys, a page, a tree that is renamed, what is refused."""
    clock = StillClock()
    inner = MemoryStore(rename=True)
    store = InterceptedStore(inner, Throttled(ThrottleOptions(upload_bytes_per_s=1.0), clock))
    for key in ("t/a", "t/b/c", "u/d"):
        inner.put(key, b"1234")
    calls: list[Callable[[], object]] = [
        lambda: store.get("t/a"),
        lambda: store.head("t/a"),
        lambda: store.list_page(""),
        lambda: store.rename_dir("t", "v/w"),
        lambda: store.rename("u/d", "u/e"),
        lambda: store.copy(ObjectInfo("u/e", 0), "u/f"),
        lambda: store.delete_many([f"k{number}" for number in range(1000)]),
        lambda: store.delete("u/f"),
        lambda: store.create_upload("x"),
        lambda: store.list_uploads_page(""),
        lambda: store.open_write("y").close(),
    ]
    for call in calls:
        call()
    assert clock.waits == [0.05] * (len(calls) + 1)  # opening and closing are two


def test_a_transaction_costs_one_request_and_the_bytes_that_it_sends() -> None:
    clock = StillClock()
    inner = MemoryStore(transactions=True)
    store = InterceptedStore(inner, Throttled(ThrottleOptions(upload_bytes_per_s=10.0), clock))
    store.apply([*(Put(f"k{number}", b"12345") for number in range(4)), Delete("gone"), RequireEmpty("d/")])
    assert clock.waits == [0.05 + 2.0]


def test_what_is_refused_costs_a_request_and_no_bytes() -> None:
    clock = StillClock()
    store = InterceptedStore(MemoryStore(rename=True), Throttled(ThrottleOptions(upload_bytes_per_s=1.0), clock))
    refused: list[Callable[[], object]] = [
        lambda: store.head("missing"),
        lambda: store.copy(ObjectInfo("missing", 20_000_000), "b"),
        lambda: store.rename_dir("missing", "c"),
        lambda: store.put("a", b"1234", Update("no such etag")),
    ]
    for call in refused:
        with pytest.raises(HoldfastError):
            call()
    assert clock.waits == [0.05] * len(refused)


class _Crowd(StillClock):
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
        self._three.wait(timeout=PATIENCE_S)
        with self._lock:
            self._inside -= 1


def test_no_more_at_once_than_the_bound() -> None:
    clock = _Crowd()
    store = InterceptedStore(MemoryStore(), Throttled(ThrottleOptions(max_concurrent=3), clock))
    list(ThreadRunner(8).map(lambda n: store.put(f"k{n}", b""), range(12)))
    assert clock.most == 3
