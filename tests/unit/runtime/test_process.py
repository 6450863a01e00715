"""Objects know about forks, and finalizers do not work inside of garbage collections."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from types import FrameType

import pytest

from holdfast.runtime import ThreadRunner, process
from holdfast.runtime.process import ForkInProgress, is_in_garbage_collection, register_fork_listener
from tests.children import Child
from tests.interrupts import interrupted_at
from tests.patience import PATIENCE_S


# --- forks -------------------------------------------------------------------------------------------------------
class Watcher:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def before_fork(self, fork: ForkInProgress) -> bool:
        self.heard.append("before")
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        self.heard.append("ready" if is_ready else "not ready")


def test_an_object_hears_of_a_fork() -> None:
    watcher = Watcher()
    register_fork_listener(watcher)
    assert Child(lambda: watcher.heard).result() == ["before", "ready"]
    assert watcher.heard == ["before"]


def test_a_grandchild_hears_of_both_forks() -> None:
    watcher = Watcher()
    register_fork_listener(watcher)
    assert Child(lambda: Child(lambda: watcher.heard).result()).result() == ["before", "ready", "before", "ready"]


def test_an_object_that_is_gone_is_not_called() -> None:
    watcher = Watcher()
    heard = watcher.heard
    register_fork_listener(watcher)
    del watcher
    gc.collect()
    assert Child(lambda: heard).result() == []


def test_an_object_may_be_made_in_a_child() -> None:
    def work() -> list[str]:
        watcher = Watcher()
        register_fork_listener(watcher)
        Child(lambda: None).result()
        return watcher.heard

    assert Child(work).result() == ["before"]


def test_an_object_may_be_made_while_another_thread_forks() -> None:
    """Whoever makes it may hold a lock for which the thread that forks is waiting."""
    is_forking, is_made = threading.Event(), threading.Event()
    made: list[Watcher] = []

    class Waiter(Watcher):
        def before_fork(self, fork: ForkInProgress) -> bool:
            is_forking.set()
            return is_made.wait(PATIENCE_S)

    def make() -> None:
        assert is_forking.wait(PATIENCE_S)
        made.append(Watcher())
        register_fork_listener(made[0])
        is_made.set()

    waiter = Waiter()
    register_fork_listener(waiter)
    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    assert Child(lambda: made[0].heard).result() == ["before", "ready"]
    thread.join(PATIENCE_S)


def test_a_fork_is_over_when_the_parent_goes_on() -> None:
    class Keeper(Watcher):
        def __init__(self) -> None:
            super().__init__()
            self.forks: list[ForkInProgress] = []

        def before_fork(self, fork: ForkInProgress) -> bool:
            self.heard.append(f"before, is over: {fork.is_over}")
            self.forks.append(fork)
            return False

    keeper = Keeper()
    register_fork_listener(keeper)
    assert Child(lambda: keeper.heard).result() == ["before, is over: False", "not ready"]
    assert [(one.is_over, one.thread) for one in keeper.forks] == [(True, threading.get_ident())]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_leaves_no_fork_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reports what the hooks of a fork raise, and goes on; here, the error is kept with all its frames."""
    monkeypatch.setattr(process, "_watching", weakref.WeakValueDictionary())  # not what other tests have left
    kept: list[object] = []
    forks: list[ForkInProgress] = []

    class Keeper(Watcher):
        def before_fork(self, fork: ForkInProgress) -> bool:
            forks.append(fork)
            return True

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0 if all(keeper.heard for keeper in keepers) else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, "an object of the child was not renewed"

    keepers = [Keeper(), Keeper()]
    for keeper in keepers:
        register_fork_listener(keeper)
    monkeypatch.setattr(sys, "unraisablehook", kept.append)
    line = 0
    while interrupted_at(line := line + 1, fork, process):
        assert all(one.is_over for one in forks)
    assert len(kept) > 5, "interrupts after the fork are in the child"
    assert len(forks) > 5


# --- garbage collections ----------------------------------------------------------------------------------------------
class _Witness:
    """Notes whether it was finalized in a garbage collection, and whether another thread was told the same."""

    def __init__(self, said: list[bool]) -> None:
        self.said = said
        self.itself: _Witness | None = None

    def __del__(self) -> None:
        self.said.append(is_in_garbage_collection())
        self.said += ThreadRunner(1).map(lambda _: is_in_garbage_collection(), [0])


def test_a_finalizer_knows_that_the_collector_calls_it() -> None:
    said: list[bool] = []
    witness = _Witness(said)
    witness.itself = witness
    del witness
    assert (gc.collect() > 0, said, is_in_garbage_collection()) == (True, [True, False], False)


def test_an_object_whose_last_reference_is_dropped_is_no_garbage() -> None:
    said: list[bool] = []
    witness = _Witness(said)
    del witness
    assert said == [False, False]


def test_no_signal_is_handled_where_its_exception_is_ignored() -> None:
    """Python handles signals when a function starts, and ignores what callbacks of the collector raise."""
    started: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            started.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        gc.collect()
    finally:
        sys.setprofile(before)
    assert process.__file__ not in started
