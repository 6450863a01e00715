"""Intercept calls to a store: record them, inject faults, or throttle them.

Worked composition::

    faulty = Faulty(Fault(FaultMode.LOST_REPLY, Operation.COMPLETE_UPLOAD, "*/part-00001*"))
    store = InterceptedStore(MemoryStore(), faulty)

    n = 0                                    # crash `work` once at each of its store calls
    while True:
        faulty = Faulty(crash_at(n := n + 1))
        try:
            work(InterceptedStore(fresh_store(), faulty))
        except SimulatedCrash:
            recover()
        if not faulty.fired:
            break
"""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import fnmatch
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import HoldfastError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Clock, SystemClock
from holdfast.stores.interceptors import StoreCall, StoreOperation

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

    def counts(self) -> collections.Counter[StoreOperation]:
        """Return the number of calls of each operation."""
        with self._lock:
            return collections.Counter(call.operation for call in self.calls)

    def count(self, operation: StoreOperation) -> int:
        """Return the number of calls of one operation."""
        return self.counts()[operation]

    def clear(self) -> None:
        """Forget the calls so far."""
        with self._lock:
            self.calls.clear()


FOR_EVER = sys.maxsize
"""For `Fault.times`: the fault is permanent."""


class SimulatedCrash(BaseException):
    """Simulates that the process died. Not an `Exception`, so that no handler of the code under test catches it."""


class FaultMode(enum.Enum):
    """What a fault does to a call."""

    FAIL = "fail"
    """Raise the error; the store does not see the call."""
    LOST_REPLY = "lost reply"
    """Let the store execute the call, then raise `OutcomeUnknownError`."""
    CRASH_BEFORE = "crash before"
    """Crash the caller before the store sees the call."""
    CRASH_AFTER = "crash after"
    """Let the store execute the call, then crash the caller."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan.

    Attributes:
        mode: what the fault does.
        operation: the operation that the fault matches; None matches all.
        key: a shell pattern that the key must match (``*`` also matches ``/``).
        nth: the first matching call that the fault affects, counted from 1.
        times: the number of consecutive matching calls that the fault affects.
        error: the error that a fault of mode `FaultMode.FAIL` raises.
    """

    mode: FaultMode
    operation: StoreOperation | None = None
    key: str = "*"
    nth: int = 1
    times: int = 1
    error: HoldfastError = field(default_factory=lambda: UnavailableError("injected fault: repeat later"))

    def matches(self, call: StoreCall) -> bool:
        """Check whether the fault matches a call."""
        return self.operation in (None, call.operation) and fnmatch.fnmatchcase(call.key, self.key)


def crash_at(nth: int, *, after: bool = False) -> Fault:
    """Return a fault that crashes the process at its nth call, before the store sees the call or right after it."""
    return Fault(FaultMode.CRASH_AFTER if after else FaultMode.CRASH_BEFORE, nth=nth)


class Faulty:
    """An interceptor that applies a plan of faults. Thread-safe; one instance represents one process.

    Guarantee: after a crash, every further call from any thread raises `SimulatedCrash` and does nothing: a dead
    process stays dead. Calls that the store was already executing finish.

    Args:
        plan: the faults; the first one that applies to a call wins.

    Attributes:
        fired: the calls that a fault affected, in order.
        calls: the number of calls while the process was alive.
    """

    def __init__(self, *plan: Fault) -> None:
        self._plan = plan
        self._seen = [0] * len(plan)
        self._lock = threading.Lock()
        self._dead = False
        self.fired: list[StoreCall] = []
        self.calls = 0

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        fault = self._decide(call)
        if fault is None:
            return proceed()
        if fault.mode is FaultMode.FAIL:
            raise copy.copy(fault.error)  # a copy, so that tracebacks and causes do not accumulate on one object
        if fault.mode is FaultMode.CRASH_BEFORE:
            raise SimulatedCrash(call)
        result = proceed()
        if fault.mode is FaultMode.CRASH_AFTER:
            raise SimulatedCrash(call)
        if call.operation.writes:
            raise OutcomeUnknownError("injected fault: the reply is lost, read before repeating", key=call.key)
        del result
        raise UnavailableError("injected fault: the reply is lost, repeat", key=call.key)

    def _decide(self, call: StoreCall) -> Fault | None:
        with self._lock:
            if self._dead:
                raise SimulatedCrash("the process is dead", call)
            self.calls += 1
            hit: Fault | None = None
            for index, fault in enumerate(self._plan):
                if fault.matches(call):
                    self._seen[index] += 1
                    if hit is None and fault.nth <= self._seen[index] < fault.nth + fault.times:
                        hit = fault
            if hit is not None:
                self.fired.append(call)
                self._dead = hit.mode in (FaultMode.CRASH_BEFORE, FaultMode.CRASH_AFTER)
            return hit


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
        is_request = call.operation not in (StoreOperation.FILE_WRITE, StoreOperation.FILE_DISCARD)
        return self._options.request_s if is_request else 0.0

    def _transfer_s(self, call: StoreCall) -> float:
        is_copy = call.operation is StoreOperation.COPY
        rate = self._options.copy_bytes_per_s if is_copy else self._options.upload_bytes_per_s
        return 0.0 if rate is None else call.size_bytes / rate
