"""Say how long tests wait: longer than any machine needs, however busy it is, so that only a hang ends a wait."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["PATIENCE_S", "POLL_S", "wait_until"]

PATIENCE_S = 900.0
"""The limit of every wait for something that must happen."""

POLL_S = 0.05
"""The pause between two checks for it."""


def wait_until(condition: Callable[[], object], failure: str, *, over: Callable[[], object] = lambda: False) -> None:
    """Wait until `condition` returns something true; fail with this sentence if it never does.

    Args:
        over: returns something true when it can no longer happen, such as the end of a job: then nobody waits for it.
    """
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / POLL_S)):
        is_over = over()  # first: what happened before the end is found
        if condition():
            return
        if is_over:
            break
        pause.wait(POLL_S)
    raise AssertionError(failure)
