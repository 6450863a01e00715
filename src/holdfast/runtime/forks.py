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
        """Get ready: finish what must not be cut in two. Called in the thread that forks, which may wait here."""
        ...

    def after_fork(self, *, is_child: bool) -> None:
        """Go on. In the child, nothing else has run yet, and no other thread exists."""
        ...


_watching: weakref.WeakValueDictionary[int, Forked] = weakref.WeakValueDictionary()
_ready: list[Forked] = []
_forking = threading.Lock()
_ROUNDS = 3
"""How often objects are called that other threads have made while the earlier ones got ready."""


def watch_forks(one: Forked) -> None:
    """Call the methods of an object at each fork, as long as the object exists.

    This never waits, also while another thread forks: the caller may hold a lock for which that thread waits. An object
    that is made while another thread forks may hear only `after_fork`, and only in the child.
    """
    _watching[id(one)] = one


def _alive() -> list[Forked]:
    # One atomic step takes all references: other threads may add objects meanwhile.
    return [found for one in _watching.valuerefs() if (found := one()) is not None]


def _before() -> None:
    _forking.acquire()  # until the fork is done
    for _ in range(_ROUNDS):
        known = set(map(id, _ready))
        late = [one for one in _alive() if id(one) not in known]
        _ready.extend(late)
        for one in late:
            one.before_fork()


def _after_in_parent() -> None:
    try:
        for one in _ready:
            one.after_fork(is_child=False)
    finally:
        _ready.clear()
        _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.Lock()
    for one in _alive():
        one.after_fork(is_child=True)
    _ready.clear()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
