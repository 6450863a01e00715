"""Give out inode ids, which are never used twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import UnavailableError
from holdfast.namespace.keys import NEXT_ID, ROOT_ID
from holdfast.runtime import Environment
from holdfast.runtime.forks import Fork, watch_forks
from holdfast.transactions.base import ABSENT, Commit, Committed, TransactionStore

__all__ = ["IdSource"]

_BATCH = 1000
_ATTEMPTS = 50


class IdSource:
    """Reserves ids in batches, so that one transaction serves a thousand creations.

    Guarantee: no two processes get the same id. The rest of a batch is lost when the process ends.
    """

    def __init__(self, store: TransactionStore, environment: Environment, *, batch: int = _BATCH) -> None:
        self._store = store
        self._environment = environment
        self._batch = batch
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._next = self._end = 0
        self._returned: list[int] = []

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Forget the batch in a child: it belongs to the parent."""
        self._reset()

    def take(self) -> int:
        """Return a new id.

        Raises:
            UnavailableError: too many processes reserve ids at this moment; nothing happened.
        """
        with self._lock:
            if self._returned:
                return self._returned.pop()
            if self._next == self._end:
                self._next = self._reserve()
                self._end = self._next + self._batch
            taken = self._next
            self._next += 1
            return taken

    @contextmanager
    def set_aside(self, count: int) -> Iterator[Callable[[], int]]:
        """Lend ids that are there before the block begins; what it does not use comes back.

        For a block that holds locks: a reservation inside would wait for a connection, or for the lock itself.

        Raises:
            UnavailableError: see `take`.
        """
        spare = [self.take() for _ in range(count)]
        try:
            yield lambda: spare.pop() if spare else self.take()
        finally:
            with self._lock:
                self._returned += spare

    def _reserve(self) -> int:
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._environment.clock.sleep(0.005 * self._environment.chance.fraction() * attempt)
            record = self._store.get_many([NEXT_ID]).get(NEXT_ID)
            first = ROOT_ID + 1 if record is None else record.number
            step = self._batch if record is not None else first + self._batch
            version = ABSENT if record is None else record.version
            outcome = self._store.commit(Commit(reads={NEXT_ID: version}, adds={NEXT_ID: step}))
            if isinstance(outcome, Committed):
                return first
        raise UnavailableError("too many processes reserve inode ids: repeat later", tries=_ATTEMPTS)
