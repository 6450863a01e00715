"""Faults: what the store saw and what the caller was told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import AccessDeniedError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors.faulty import FOR_EVER, Fault, FaultMode, Faulty, SimulatedCrash, crash_at
from holdfast.stores.interceptors.intercepted import InterceptedStore, Operation
from holdfast.stores.memory.store import MemoryStore


def _faulty(*plan: Fault) -> tuple[InterceptedStore, MemoryStore, Faulty]:
    inner, faulty = MemoryStore(rename=True), Faulty(*plan)
    return InterceptedStore(inner, faulty), inner, faulty


def _keys(store: MemoryStore) -> list[str]:
    return [info.key for info in iter_objects(store, "")]


def test_fail_happens_before_the_effect() -> None:
    store, inner, faulty = _faulty(Fault(FaultMode.FAIL, Operation.PUT))
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
    store, inner, _ = _faulty(Fault(FaultMode.LOST_REPLY, Operation.GET))
    inner.put("a", b"1")
    with pytest.raises(UnavailableError):
        store.get("a")
    assert store.get("a") == b"1"


def test_lost_reply_of_a_refusal_is_the_refusal() -> None:
    store, _, _ = _faulty(Fault(FaultMode.LOST_REPLY, Operation.RENAME))
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
    store, inner = _attempt(Fault(mode, Operation.RENAME_DIR, "_attempt"))
    with pytest.raises(raised):
        store.rename_dir("_attempt", "task")
    assert _keys(inner) == left


def test_a_lost_reply_of_a_renamed_directory_is_settled_by_repeating() -> None:
    """The second try finds nothing at the source, and the target tells that it was this one."""
    store, inner = _attempt(Fault(FaultMode.LOST_REPLY, Operation.RENAME_DIR))
    with pytest.raises(OutcomeUnknownError):
        store.rename_dir("_attempt", "task")
    with pytest.raises(NotFoundError):
        store.rename_dir("_attempt", "task")
    assert _keys(inner) == _AFTER


def test_nth_and_pattern() -> None:
    store, inner, faulty = _faulty(Fault(FaultMode.FAIL, Operation.PUT, "t/*-1*", nth=2, times=2))
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
    store, inner, _ = _faulty(Fault(FaultMode.LOST_REPLY, Operation.PUT), Fault(FaultMode.FAIL, Operation.PUT, nth=2))
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
    store, inner, _ = _faulty(Fault(FaultMode.CRASH_BEFORE, Operation.FILE_CLOSE))
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
