"""Interceptors see every call, and record it, make it fail or slow it down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import ThreadRunner
from holdfast.stores import base
from holdfast.stores.base import Create, Delete, MultipartLimits, ObjectInfo, Put, RequireEmpty, Update, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.clocks import StillClock
from tests.interceptors import (
    FOR_EVER,
    Fault,
    FaultMode,
    Faulty,
    Recorder,
    SimulatedCrash,
    Throttled,
    ThrottleOptions,
    crash_at,
)
from tests.patience import PATIENCE_S

# --- intercepted ------------------------------------------------------------------------------------------------------
T = TypeVar("T")

_PROTOCOLS = (base.ObjectStore, base.MultipartStore, base.RenameStore, base.CopyStore, base.TransactionalStore)
_NO_CALLS = {"capabilities", "close", "retries", "make_durable"}


def _protocol_methods() -> set[str]:
    return {name for protocol in _PROTOCOLS for name in vars(protocol) if not name.startswith("_")}


def test_every_method_of_every_protocol_is_intercepted() -> None:
    names = {operation.value for operation in StoreOperation if not operation.value.startswith("file.")}
    assert names == _protocol_methods() - _NO_CALLS
    file_methods = {name for name in vars(base.WritableFile) if not name.startswith("_")}
    assert {operation.value for operation in StoreOperation} - names == {f"file.{name}" for name in file_methods}


def _use_everything(store: InterceptedStore) -> None:
    store.put("a", b"12", Create())
    store.get("a")
    store.head("a")
    store.list_page("")
    upload_id = store.create_upload("u")
    part = store.upload_part("u", upload_id, 1, b"123")
    store.list_uploads_page("")
    store.complete_upload("u", upload_id, [part])
    store.abort_upload("u", upload_id)
    file = store.open_write("f")
    file.write(b"1234")
    file.close()
    file.discard()
    store.check_targets(["g", "i/j"])
    store.rename("f", "g")
    store.put("d/x", b"")
    store.rename_dir("d", "e")
    store.copy(ObjectInfo("g", 4), "h")
    store.delete_many(["a", "u"])
    store.delete("g")
    store.apply([base.Put("p", b"12345", Create()), base.Put("q", b"6"), base.Delete("h"), base.Require("e/x")])
    store.close()


def test_calls_tell_what_they_are() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, transactions=True), recorded)
    _use_everything(store)
    assert [call.operation for call in recorded.calls] == [
        *(StoreOperation.PUT, StoreOperation.GET, StoreOperation.HEAD, StoreOperation.LIST),
        *(StoreOperation.CREATE_UPLOAD, StoreOperation.UPLOAD_PART, StoreOperation.LIST_UPLOADS),
        *(StoreOperation.COMPLETE_UPLOAD, StoreOperation.ABORT_UPLOAD),
        *(StoreOperation.OPEN_WRITE, StoreOperation.FILE_WRITE, StoreOperation.FILE_CLOSE, StoreOperation.FILE_DISCARD),
        *(StoreOperation.CHECK_TARGETS, StoreOperation.RENAME, StoreOperation.PUT, StoreOperation.RENAME_DIR),
        *(StoreOperation.COPY, StoreOperation.DELETE_MANY, StoreOperation.DELETE, StoreOperation.APPLY),
    ]
    by_operation = {call.operation: call for call in recorded.calls}
    assert by_operation.keys() == set(StoreOperation)
    assert recorded.calls[0] == StoreCall(StoreOperation.PUT, "a", 2, mode=Create())
    part = by_operation[StoreOperation.UPLOAD_PART]
    assert (part.key, part.size_bytes, part.number) == ("u", 3, 1)
    assert part.upload_id == by_operation[StoreOperation.COMPLETE_UPLOAD].upload_id != ""
    assert by_operation[StoreOperation.RENAME] == StoreCall(StoreOperation.RENAME, "f", target="g")
    assert by_operation[StoreOperation.CHECK_TARGETS].keys == ("g", "i/j")
    assert by_operation[StoreOperation.RENAME_DIR] == StoreCall(StoreOperation.RENAME_DIR, "d", target="e")
    assert by_operation[StoreOperation.COPY] == StoreCall(StoreOperation.COPY, "g", 4, target="h")
    assert by_operation[StoreOperation.DELETE_MANY].keys == ("a", "u")
    assert by_operation[StoreOperation.APPLY] == StoreCall(StoreOperation.APPLY, "p", 6, keys=("p", "q", "h", "e/x"))
    assert by_operation[StoreOperation.FILE_WRITE] == StoreCall(StoreOperation.FILE_WRITE, "f", 4)


def test_capabilities_are_those_of_the_wrapped_store() -> None:
    inner = MemoryStore(limits=MultipartLimits(min_part_size_bytes=7), rename=True)
    assert InterceptedStore(inner, Recorder()).capabilities is inner.capabilities


def test_an_interceptor_may_refuse() -> None:
    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        raise UnavailableError("no", operation=call.operation.value)

    inner = MemoryStore()
    with pytest.raises(UnavailableError, match="put"):
        InterceptedStore(inner, refuse).put("a", b"1")
    assert list(base.iter_objects(inner, "")) == []


def test_recorded_keeps_failed_calls_and_counts() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(), recorded)
    for _ in range(3):
        with pytest.raises(ValueError, match="no such object"):
            store.get("missing")
    store.put("a", b"")
    assert recorded.count(StoreOperation.GET) == 3
    assert recorded.count(StoreOperation.DELETE) == 0
    assert recorded.counts() == {StoreOperation.GET: 3, StoreOperation.PUT: 1}
    recorded.clear()
    assert recorded.calls == []


def test_each_operation_is_counted_also_when_it_fails() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, transactions=True), recorded)
    _use_everything(store)
    with pytest.raises(ValueError, match="nothing exists at the source"):
        store.rename_dir("missing", "e")
    once = dict.fromkeys(StoreOperation, 1)
    assert recorded.counts() == once | {StoreOperation.PUT: 2, StoreOperation.RENAME_DIR: 2}
    assert recorded.counts().total() == len(recorded.calls) == len(StoreOperation) + 2


def test_directories_are_renamed_by_stores_that_can() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, rename_dir=False), recorded)
    store.put("d/x", b"")
    assert not store.capabilities.rename_dir
    with pytest.raises(UnsupportedError, match="rename file by file"):
        store.rename_dir("d", "e")
    assert recorded.count(StoreOperation.RENAME_DIR) == 1


# --- faulty -----------------------------------------------------------------------------------------------------------
def _faulty(*plan: Fault) -> tuple[InterceptedStore, MemoryStore, Faulty]:
    inner, faulty = MemoryStore(rename=True), Faulty(*plan)
    return InterceptedStore(inner, faulty), inner, faulty


def _keys(store: MemoryStore) -> list[str]:
    return [info.key for info in iter_objects(store, "")]


def test_fail_happens_before_the_effect() -> None:
    store, inner, faulty = _faulty(Fault(FaultMode.FAIL, StoreOperation.PUT))
    with pytest.raises(UnavailableError, match="injected"):
        store.put("a", b"1")
    assert _keys(inner) == []
    store.put("a", b"1")
    assert _keys(inner) == ["a"]
    assert [call.key for call in faulty.fired] == ["a"]


def test_given_errors_are_raised_afresh() -> None:
    error = AccessDeniedError("expired", key="k")
    store, _, _ = _faulty(Fault(FaultMode.FAIL, error=error, times=FOR_EVER))
    raised = []
    for _ in range(2):
        with pytest.raises(AccessDeniedError, match="expired key='k'") as caught:
            store.get("a")
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert error not in raised


def test_lost_reply_happens_after_the_effect() -> None:
    """facts: LOST RESPONSE, the store did it and the caller cannot know."""
    store, inner, _ = _faulty(Fault(FaultMode.LOST_REPLY))
    with pytest.raises(OutcomeUnknownError):
        store.put("a", b"1")
    assert _keys(inner) == ["a"]


def test_lost_reply_of_a_read_is_harmless() -> None:
    store, inner, _ = _faulty(Fault(FaultMode.LOST_REPLY, StoreOperation.GET))
    inner.put("a", b"1")
    with pytest.raises(UnavailableError):
        store.get("a")
    assert store.get("a") == b"1"


def test_lost_reply_of_a_refusal_is_the_refusal() -> None:
    store, _, _ = _faulty(Fault(FaultMode.LOST_REPLY, StoreOperation.RENAME))
    with pytest.raises(NotFoundError):
        store.rename("a", "b")


def _attempt(*plan: Fault) -> tuple[InterceptedStore, MemoryStore]:
    store, inner, _ = _faulty(*plan)
    for key in ("_attempt/a", "_attempt/b/c"):
        inner.put(key, b"")
    return store, inner


_BEFORE, _AFTER = ["_attempt/a", "_attempt/b/c"], ["task/a", "task/b/c"]


@pytest.mark.parametrize(
    ("mode", "raised", "left"),
    [
        (FaultMode.FAIL, UnavailableError, _BEFORE),
        (FaultMode.LOST_REPLY, OutcomeUnknownError, _AFTER),
        (FaultMode.CRASH_BEFORE, SimulatedCrash, _BEFORE),
        (FaultMode.CRASH_AFTER, SimulatedCrash, _AFTER),
    ],
)
def test_a_directory_moves_whole_or_not_at_all(mode: FaultMode, raised: type[BaseException], left: list[str]) -> None:
    store, inner = _attempt(Fault(mode, StoreOperation.RENAME_DIR, "_attempt"))
    with pytest.raises(raised):
        store.rename_dir("_attempt", "task")
    assert _keys(inner) == left


def test_a_lost_reply_of_a_renamed_directory_is_settled_by_repeating() -> None:
    """The second try finds nothing at the source, and the target tells that it was this one."""
    store, inner = _attempt(Fault(FaultMode.LOST_REPLY, StoreOperation.RENAME_DIR))
    with pytest.raises(OutcomeUnknownError):
        store.rename_dir("_attempt", "task")
    with pytest.raises(NotFoundError):
        store.rename_dir("_attempt", "task")
    assert _keys(inner) == _AFTER


def test_nth_and_pattern() -> None:
    store, inner, faulty = _faulty(Fault(FaultMode.FAIL, StoreOperation.PUT, "t/*-1*", nth=2, times=2))
    for key in ("t/a-1", "t/b-2", "u/a-1"):
        store.put(key, b"")
    for key in ("t/x/b-1x", "t/c-1"):
        with pytest.raises(UnavailableError):
            store.put(key, b"")
    store.put("t/d-1", b"")
    assert _keys(inner) == ["t/a-1", "t/b-2", "t/d-1", "u/a-1"]
    assert [call.key for call in faulty.fired] == ["t/x/b-1x", "t/c-1"]
    assert faulty.calls == 6


def test_the_first_fault_of_a_plan_decides() -> None:
    store, inner, _ = _faulty(
        Fault(FaultMode.LOST_REPLY, StoreOperation.PUT), Fault(FaultMode.FAIL, StoreOperation.PUT, nth=2)
    )
    with pytest.raises(OutcomeUnknownError):
        store.put("a", b"")
    with pytest.raises(UnavailableError):
        store.put("b", b"")
    assert _keys(inner) == ["a"]


@pytest.mark.parametrize(("after", "left"), [(False, ["a"]), (True, ["a", "b"])])
def test_the_dead_stay_dead(after: bool, left: list[str]) -> None:
    store, inner, faulty = _faulty(crash_at(2, after=after))
    store.put("a", b"")
    with pytest.raises(SimulatedCrash):
        store.put("b", b"")
    calls: list[Callable[[], object]] = [
        lambda: store.put("c", b""),
        lambda: store.delete("a"),
        lambda: store.get("a"),
        lambda: store.open_write("d"),
    ]
    for call in calls:
        with pytest.raises(SimulatedCrash):
            call()
    assert _keys(inner) == left
    assert faulty.calls == 2


def test_an_open_file_dies_with_its_process() -> None:
    store, inner, _ = _faulty(Fault(FaultMode.CRASH_BEFORE, StoreOperation.FILE_CLOSE))
    file = store.open_write("a")
    file.write(b"1")
    with pytest.raises(SimulatedCrash):
        file.close()
    with pytest.raises(SimulatedCrash):
        file.discard()
    assert _keys(inner) == []


def test_no_handler_catches_a_crash() -> None:
    assert not issubclass(SimulatedCrash, Exception)


def test_every_call_can_be_crashed_once() -> None:
    """The loop that tests of the commit protocols use ends, and hits each call."""
    hit: list[str] = []
    for nth in range(1, 100):
        store, _, faulty = _faulty(crash_at(nth))
        try:
            for key in ("a", "b", "c"):
                store.put(key, b"")
        except SimulatedCrash:
            hit.append(faulty.fired[0].key)
        if not faulty.fired:
            break
    assert hit == ["a", "b", "c"]


# --- throttled --------------------------------------------------------------------------------------------------------
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
