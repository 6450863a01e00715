"""Objects hear of forks, in the parent and in the child, until they are gone."""

from __future__ import annotations

import gc
import threading

from holdfast.runtime.forks import watch_forks
from tests.children import Child
from tests.patience import PATIENCE_S


class Watcher:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def before_fork(self) -> None:
        self.heard.append("before")

    def after_fork(self, *, is_child: bool) -> None:
        self.heard.append("child" if is_child else "parent")


def test_both_sides_hear_of_a_fork() -> None:
    watcher = Watcher()
    watch_forks(watcher)
    assert Child(lambda: watcher.heard).result() == ["before", "child"]
    assert watcher.heard == ["before", "parent"]


def test_a_grandchild_hears_of_both_forks() -> None:
    watcher = Watcher()
    watch_forks(watcher)
    assert Child(lambda: Child(lambda: watcher.heard).result()).result() == ["before", "child", "before", "child"]


def test_an_object_that_is_gone_is_not_called() -> None:
    watcher = Watcher()
    heard = watcher.heard
    watch_forks(watcher)
    del watcher
    gc.collect()
    assert Child(lambda: heard).result() == []


def test_an_object_may_be_made_in_a_child() -> None:
    def work() -> list[str]:
        watcher = Watcher()
        watch_forks(watcher)
        Child(lambda: None).result()
        return watcher.heard

    assert Child(work).result() == ["before", "parent"]


def test_an_object_may_be_made_while_another_thread_forks() -> None:
    """Whoever makes it may hold a lock for which the thread that forks is waiting."""
    is_forking, is_made = threading.Event(), threading.Event()
    made: list[Watcher] = []

    class Waiter(Watcher):
        def before_fork(self) -> None:
            is_forking.set()
            assert is_made.wait(PATIENCE_S)

    def make() -> None:
        assert is_forking.wait(PATIENCE_S)
        made.append(Watcher())
        watch_forks(made[0])
        is_made.set()

    waiter = Waiter()
    watch_forks(waiter)
    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    assert Child(lambda: made[0].heard).result() == ["before", "child"]
    thread.join(PATIENCE_S)
    assert made[0].heard == ["before", "parent"]
