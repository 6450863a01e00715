"""Tell whether code runs inside of a garbage collection, where it must not wait for threads.

A collection may start wherever Python allocates memory, also halfway through the start of a thread. What it finalizes
there runs while the standard library holds locks that other threads need in order to end, or that the wait for them
takes: it would never be over.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping

__all__ = ["is_collecting"]

_collector = 0
"""The thread that collects garbage; 0 if there is none. Python never runs two collections at the same time."""


def is_collecting() -> bool:
    """Check whether this thread is collecting garbage, so that the caller is, or is called by, a finalizer."""
    return _collector == threading.get_ident()


def _note(phase: str, info: Mapping[str, int]) -> None:
    global _collector
    _collector = threading.get_ident() if phase == "start" else 0


gc.callbacks.append(_note)
