"""Tell objects about forks: a child has only one thread, and must not use what belongs to its parent.

A lock that another thread held at the moment of a fork stays locked in the child, with nobody to release it. So whoever
owns locks, connections or reserved numbers renews them in the child before anything else runs there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["Forked", "watch_forks"]


class Forked(Protocol):
    """An object that has to know about forks of its process. The methods must not raise."""

    def before_fork(self) -> None:
        """Get ready: finish what must not be cut in two. Called in the thread that forks."""
        ...

    def after_fork(self, *, is_child: bool) -> None:
        """Go on. In the child, nothing else has run yet, and no other thread exists."""
        ...


_watching: weakref.WeakSet[Forked] = weakref.WeakSet()
_ready: list[Forked] = []
_lock = threading.Lock()


def watch_forks(one: Forked) -> None:
    """Call the methods of an object at each fork, as long as the object exists."""
    with _lock:
        _watching.add(one)


def _before() -> None:
    _lock.acquire()  # until the fork is done
    _ready[:] = list(_watching)
    for one in _ready:
        one.before_fork()


def _after_in_parent() -> None:
    try:
        for one in _ready:
            one.after_fork(is_child=False)
    finally:
        _ready.clear()
        _lock.release()


def _after_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for one in _ready:
        one.after_fork(is_child=True)
    _ready.clear()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
