"""Lock open files and directories against other processes. A process that dies releases its locks."""

from __future__ import annotations

import fcntl

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock


def lock(descriptor: int, path: str, limit_s: float, clock: Clock) -> None:
    """Lock an open file or directory; closing the descriptor releases the lock.

    Raises:
        UnavailableError: another process has had the lock for `limit_s`: it hangs, or has much to do; repeat later.
    """
    waited_s, pause_s = 0.0, 0.0005
    while waited_s < limit_s:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            clock.sleep(pause_s)
            waited_s += pause_s
            pause_s = min(pause_s * 1.5, 0.02)
    raise UnavailableError(
        f"another process has had this locked for {limit_s:g} s: find the process if it hangs, then repeat", path=path
    )
