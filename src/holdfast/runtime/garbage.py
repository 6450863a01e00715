"""Tell whether code runs inside of a garbage collection, where it must not wait for threads.

A collection may start wherever Python allocates memory, also halfway through the start of a thread. What it finalizes
there runs while the standard library holds locks that other threads need in order to end, or that the wait for them
takes: it would never be over.
"""

from __future__ import annotations

import gc
import threading

__all__ = ["is_collecting"]

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
