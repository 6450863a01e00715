"""Survive what happens to a process behind the back of its program: forks and garbage collections.

A child of a fork has only one thread, and must not use what belongs to its parent. A lock that another thread held at
the moment of the fork stays locked in the child. So whoever owns locks, connections or reserved numbers renews them in
the child before anything else runs there. An interrupt, by Ctrl-C for example, may strike at any line here; Python
reports it, and goes on with the fork. So what ends a fork in the parent is one step that is not written in Python,
which an interrupt cannot cut in two; and what the child has to do is called twice, and goes on where it was
interrupted.

A garbage collection may start wherever Python allocates memory: halfway through the start of a thread, or in the middle
of a commit. What it finalizes there runs while its own thread holds locks: ours, those of the standard library and
those of drivers. A finalizer that needed one of them, or waited for a thread, would never be over.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from holdfast.errors import HoldfastError, UnavailableError


# --- forks ------------------------------------------------------------------------------------------------------------
class ForkInProgress:
    """A fork of this process (`os.fork`) that one of its threads has begun.

    Attributes:
        thread: the thread that forks.
        is_late: whether an object has waited so long in `before_fork` that later objects should not wait.
    """

    def __init__(self, state: _ForkState) -> None:
        self.thread = threading.get_ident()
        self.is_late = False
        self._state = weakref.ref(state)

    @property
    def is_over(self) -> bool:
        """Whether the fork is finished, so that the thread runs on."""
        return self._state() is None


class ForkListener(Protocol):
    """An object that is called before and after forks of its process (`register_fork_listener`). It must not raise."""

    def before_fork(self, fork: ForkInProgress) -> bool:
        """Prepare for a fork: finish what a child could not continue. Called in the thread that forks; it may wait.

        Returns:
            Whether a child may continue to use this object as it is.
        """
        ...

    def after_fork(self, *, is_ready: bool) -> None:
        """Reinitialize the object in the child, where nothing else has run yet, and no other thread exists.

        Args:
            is_ready: what `before_fork` has returned; False if it was interrupted, or not called, because another
                thread has made the object while this one forked. If this is interrupted, it is called again.
        """
        ...


class _ForkState:
    """What is known about a fork. Only the thread that forks keeps it: no other object, no local variable.

    Attributes:
        asked: the objects whose `before_fork` was called.
        ready: the ids of those that are ready.
        renewed: in the child, the ids of those whose `after_fork` was called.
    """

    def __init__(self) -> None:
        self.asked: list[ForkListener] = []
        self.ready: set[int] = set()
        self.renewed: set[int] = set()


_watching: weakref.WeakValueDictionary[int, ForkListener] = weakref.WeakValueDictionary()
_own = threading.local()
_latest: dict[int, ForkInProgress] = {}
"""The latest fork of each thread."""

_ROUNDS = 3
"""How often objects are asked that other threads have made while the earlier ones got ready."""


def register_fork_listener(one: ForkListener) -> list[ForkInProgress]:
    """Register an object whose methods are called at each fork of this process, as long as the object exists.

    This never waits, also while another thread forks: the caller may hold a lock for which that thread waits.

    Returns:
        The forks that have already begun, which may not call the object anymore.
    """
    _watching[id(one)] = one
    return [fork for fork in list(_latest.values()) if not fork.is_over]


def require_same_process(pid: int) -> None:
    """Check that this process opened a connection, given the id `pid` of the process that did.

    Raises:
        UnavailableError: this is a forked child: what it sends would be part of the parent's transaction.
    """
    if pid != os.getpid():
        raise UnavailableError("the transaction belongs to the process that began it: begin another one here")


class ForkAwareObject:
    """Base class of objects that are reinitialized in a forked child, without the locks and requests of its parent.

    A subclass defines `_renew`, which does that, and calls `__init__` once `_renew` may be called.
    """

    def __init__(self) -> None:
        self._renew()
        register_fork_listener(self)

    def _renew(self) -> None:
        """Make anew what belongs to one process."""

    def before_fork(self, fork: ForkInProgress) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Reinitialize the object in a child."""
        self._renew()


_inherited: list[object] = []


def keep_inherited_connections_alive(*found: object) -> None:
    """Keep references to inherited connections and TLS contexts forever, so that a child neither closes nor frees them.

    The parent uses the connection. And to free TLS contexts takes a lock of OpenSSL, which a thread of the parent may
    have held at the time of the fork: in the child it would never be released.
    """
    _inherited.extend(found)


def _alive_listeners() -> list[ForkListener]:
    # One atomic step takes all references: other threads may add objects meanwhile.
    return [found for one in _watching.valuerefs() if (found := one()) is not None]


def _before_fork() -> None:
    _own.state = _ForkState()
    fork = _latest[threading.get_ident()] = ForkInProgress(_own.state)
    for _ in range(_ROUNDS):
        known = set(map(id, _own.state.asked))
        late = [one for one in _alive_listeners() if id(one) not in known]
        _own.state.asked.extend(late)
        for one in late:
            if one.before_fork(fork):
                _own.state.ready.add(id(one))


def _after_in_child() -> None:
    state: _ForkState | None = getattr(_own, "state", None)
    if state is None:
        state = _own.state = _ForkState()
    for one in _alive_listeners():
        if id(one) not in state.renewed:
            one.after_fork(is_ready=id(one) in state.ready)
            state.renewed.add(id(one))


_end = partial(setattr, _own, "state", None)

os.register_at_fork(before=_before_fork, after_in_parent=_end, after_in_child=_after_in_child)
os.register_at_fork(after_in_child=_after_in_child)
os.register_at_fork(after_in_child=_end)


# --- garbage collections ----------------------------------------------------------------------------------------------
_log = logging.getLogger(__name__)

_left: deque[Callable[[], object]] = deque()
"""What finalizers have left to do."""

_phases: dict[str, object] = {}
"""What Python said about the latest ``start`` and ``stop`` of a collection, the later one last."""

_collecting = threading.local()
"""The same for this thread. Python never runs two collections at the same time, but any thread may run the next."""


def is_in_garbage_collection() -> bool:
    """Check whether this thread is in a garbage collection, that is, whether the caller runs within a finalizer."""
    return next(reversed(_phases), "") == "start" and getattr(_collecting, "start", None) is _phases["start"]


# Each of these is called with the phase and an object that describes it. None is written in Python: a function could be
# interrupted by Ctrl-C when it starts, and Python ignores what the callbacks of a collection raise. The user's Ctrl-C
# would have no effect.
gc.callbacks += [_phases.pop, _phases.__setitem__, _collecting.__setattr__]


def run_or_defer_finalizer(act: Callable[[], object]) -> None:
    """Call `act`, the work of a finalizer, now; during a garbage collection, leave it to `run_deferred_finalizers`.

    Args:
        act: may be a method of the finalized object; a postponed call keeps that object alive.
    """
    if is_in_garbage_collection():
        _left.append(act)
    else:
        act()


def run_deferred_finalizers() -> None:
    """Do the work that `run_or_defer_finalizer` postponed; called where files are opened, and when the process ends."""
    while _left:
        try:
            act = _left.popleft()
        except IndexError:  # another thread was faster
            return
        try:
            act()
        except HoldfastError as error:  # the caller has nothing to do with it
            _log.warning("an object that is no longer used could not be closed: %s", error)


atexit.register(run_deferred_finalizers)
