"""Number the commits of a process, so that no two commits of any process have the same version."""

from __future__ import annotations

import threading

from holdfast.runtime import Ids
from holdfast.runtime.forks import Fork, watch_forks

_SESSION_BITS = 40
_NUMBER_BITS = 23


class VersionSource:
    """Gives out versions: 40 random bits that stand for a session, then a number that counts up.

    A version is a positive number of 63 bits. A process starts a new session after 2**23 versions and after a fork.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._end = 0

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Start a new session in a child."""
        self._reset()

    def take(self, count: int) -> int:
        """Return the first of `count` consecutive versions of one session; `count` is at most 2**20."""
        with self._lock:
            if self._next + count > self._end:
                session = int(self._ids.token(), 16) % (1 << _SESSION_BITS)
                self._next = (session << _NUMBER_BITS) + 1
                self._end = (session + 1) << _NUMBER_BITS
            first = self._next
            self._next += count
            return first

    @staticmethod
    def session_of(version: int) -> int:
        """Return the session of a version."""
        return version >> _NUMBER_BITS
