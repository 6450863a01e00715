"""An interceptor that makes chosen calls fail, lose their reply, or be the last thing a process did.

Worked composition::

    faulty = Faulty(Fault(FaultMode.LOST_REPLY, Operation.COMPLETE_UPLOAD, "*/part-00001*"))
    store = InterceptedStore(MemoryStore(), faulty)

    n = 0                                    # every store call of `work` crashed once
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

__all__ = ["FOR_EVER", "Fault", "FaultMode", "Faulty", "SimulatedCrash", "crash_at"]

T = TypeVar("T")

FOR_EVER = sys.maxsize
"""For `Fault.times`: the fault does not go away."""


class SimulatedCrash(BaseException):
    """The process that held this store is dead. Not an `Exception`: no handler of the code under test may run on."""


class FaultMode(enum.Enum):
    """What happens to a call that a fault matches."""

    FAIL = "fail"
    """The error is raised, the store sees nothing."""
    LOST_REPLY = "lost reply"
    """The store does it, the caller gets `OutcomeUnknownError`."""
    CRASH_BEFORE = "crash before"
    """The caller dies, the store sees nothing."""
    CRASH_AFTER = "crash after"
    """The store does it, the caller dies."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan.

    Attributes:
        mode: what happens.
        operation: the operation that it matches; None for any.
        key: a shell pattern that the key has to match (``*`` also matches ``/``).
        nth: the first matching call that is hit, counted from 1.
        times: how many matching calls in a row are hit.
        error: what `FaultMode.FAIL` raises.
    """

    mode: FaultMode
    operation: Operation | None = None
    key: str = "*"
    nth: int = 1
    times: int = 1
    error: HoldfastError = field(default_factory=lambda: UnavailableError("injected fault: repeat later"))

    def matches(self, call: StoreCall) -> bool:
        """Whether this fault counts the call."""
        return self.operation in (None, call.operation) and fnmatch.fnmatchcase(call.key, self.key)


def crash_at(nth: int, *, after: bool = False) -> Fault:
    """Die at the nth call of all, before the store sees it or just after it was done."""
    return Fault(FaultMode.CRASH_AFTER if after else FaultMode.CRASH_BEFORE, nth=nth)


class Faulty:
    """Applies a plan of faults. Threads may share it; one instance stands for one process.

    Guarantee: once a crash fired, every further call, from any thread, raises `SimulatedCrash` and does nothing: a
    dead process stays dead. Calls that the store was doing already are finished.

    Args:
        plan: the faults; the first one that hits a call decides.

    Attributes:
        fired: the calls that were hit, in order.
        calls: how many calls came in while the process was alive.
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
            raise copy.copy(fault.error)  # a fresh one: tracebacks and causes must not pile up on one object
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
