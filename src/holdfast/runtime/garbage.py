"""Keep finalizers from work inside of a garbage collection, where they must not take locks, nor wait for threads.

A collection may start wherever Python allocates memory: halfway through the start of a thread, or in the middle of a
commit. What it finalizes there runs while its own thread holds locks, ours, those of the standard library and those of
drivers, which the finalizer may need itself, or other threads in order to end: it would never be over.
"""

from __future__ import annotations

import atexit
import gc
import logging
import threading
from collections import deque
from collections.abc import Callable

from holdfast.errors import HoldfastError

_log = logging.getLogger(__name__)

_left: deque[Callable[[], object]] = deque()
"""What finalizers have left to do."""

_phases: dict[str, object] = {}
"""What Python said about the latest ``start`` and ``stop`` of a collection, the later one last."""

_own = threading.local()
"""The same for this thread. Python never runs two collections at the same time, but any thread may run the next."""


def is_collecting() -> bool:
    """Check whether this thread is collecting garbage, so that the caller is, or is called by, a finalizer."""
    return next(reversed(_phases), "") == "start" and getattr(_own, "start", None) is _phases["start"]


# Each of these is called with the phase and an object that describes it. None is written in Python: a function could be
# interrupted by Ctrl-C when it starts, and Python ignores what the callbacks of a collection raise. The user's Ctrl-C
# would have no effect.
gc.callbacks += [_phases.pop, _phases.__setitem__, _own.__setattr__]


def finalize(act: Callable[[], object]) -> None:
    """Do the work of a finalizer now; inside of a collection, leave it to `finish_finalizers`.

    Args:
        act: may belong to the object that is finalized, which exists for as long as it is needed.
    """
    if is_collecting():
        _left.append(act)
    else:
        act()


def finish_finalizers() -> None:
    """Do what finalizers have left; called where files are opened, and at the end of the process."""
    while _left:
        try:
            act = _left.popleft()
        except IndexError:  # another thread was faster
            return
        try:
            act()
        except HoldfastError as error:  # the caller has nothing to do with it
            _log.warning("something that nobody uses anymore could not be given up: %s", error)


atexit.register(finish_finalizers)
