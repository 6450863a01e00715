"""Inject faults into store calls: errors, lost replies, process crashes.

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

import copy
import enum
import fnmatch
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import HoldfastError, OutcomeUnknownError, UnavailableError
from holdfast.stores.interceptors.intercepted import Operation, StoreCall

T = TypeVar("T")

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
    operation: Operation | None = None
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
