"""Let one process at a time repair or sweep a namespace.

A sweep proves that a blob belongs to nobody; a repair gives such blobs to files. Together they could lose data, so each
of them holds the lock, and changes the lock's record in every one of its transactions: whoever has lost the lock, even
without noticing, can change nothing anymore. The end of the lock is a time, but safety does not depend on clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import ConflictError, FencedError, UnavailableError
from holdfast.namespace.changes import Changes
from holdfast.namespace.keys import MAINTENANCE, ROOT_KEY
from holdfast.namespace.terms import is_running
from holdfast.namespace.view import Entry, View
from holdfast.runtime import Environment, Moment
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed

_TERM_S = 600.0
_TRIES = 50


class MaintenanceLock:
    """The right to repair or to sweep. Use `hold`."""

    def __init__(self, database: Backend, environment: Environment, token: str, version: int) -> None:
        self._database = database
        self._clock = environment.clock
        self._token = token
        self._version = version
        self._written = Moment.of(self._clock)

    @staticmethod
    @contextmanager
    def hold(database: Backend, environment: Environment, work: str) -> Iterator[MaintenanceLock]:
        """Take the lock for a block.

        Args:
            work: what it is for, to tell others.

        Raises:
            ConflictError: another process has the lock. Wait until it is done.
            FencedError: at the end of the block, the lock is lost: the database has undone the last commit, or another
                process has taken over. If nobody has, the lock is free.

        Crash: the lock ends ten minutes after its last use.
        """
        record = database.get_many([MAINTENANCE]).get(MAINTENANCE)
        now_s = environment.clock.now_s()
        if record is not None:
            holder, until_s = _decode(record.value)
            if is_running(until_s, now_s, _TERM_S):
                raise ConflictError(f"another process is at work, a {holder.partition(' ')[0]}: wait until it is done")
        token = f"{work} {environment.ids.token()}"
        value = _encode(token, now_s)
        version = ABSENT if record is None else record.version
        outcome = database.commit(Commit(reads={MAINTENANCE: version}, puts={MAINTENANCE: value}))
        if not isinstance(outcome, Committed):
            raise ConflictError("another process has just begun to repair or to sweep: wait until it is done")
        lock = MaintenanceLock(database, environment, token, outcome.version)
        try:
            yield lock
        except BaseException:
            lock._release()
            raise
        if not lock._release():
            raise _fenced()

    def commit(self, changes: Changes[None], view: View) -> bool:
        """Commit changes if the lock is still held; return whether they took effect. Renews the lock.

        Raises:
            FencedError: the lock is lost; nothing happened.
        """
        view.entries[MAINTENANCE] = Entry(self._version, None)
        now = Moment.of(self._clock)
        changes.values[MAINTENANCE] = _encode(self._token, now.now_s)
        outcome = self._database.commit(changes.to_commit(view))
        if isinstance(outcome, Committed):
            self._version = outcome.version
            self._written = now
            return True
        record = self._database.get_many([MAINTENANCE]).get(MAINTENANCE)
        if record is None or record.version != self._version:
            raise _fenced()
        return False

    def announce(self) -> None:
        """Write the root anew, as it is: every operation validates it. Call this before the blobs are listed.

        Files are published after their blobs. A publication that began before this call fails, or is in the snapshot
        that comes after it; one that begins later knows that its blobs are too young for the listing, or refuses them
        (`Publish`). For this, the time by which blobs are too young must have been taken before.

        Without a root there is nothing to change, and no publication takes effect.

        Raises:
            FencedError: the lock is lost.
            UnavailableError: others change the root again and again.
        """
        for _ in range(_TRIES):
            root = self._database.get_many([ROOT_KEY]).get(ROOT_KEY)
            if root is None:
                return
            view = View((), {ROOT_KEY: Entry(root.version, None)})
            if self.commit(Changes(None, values={ROOT_KEY: root.value}), view):
                return
        raise UnavailableError("the root of the namespace changes again and again: repeat later")

    def renew_if_due(self) -> None:
        """Renew the lock if a part of its term is over.

        Raises:
            FencedError: the lock is lost.
        """
        if self._written.age_s(self._clock) > _TERM_S / 4:
            self.commit(Changes(None), View((), {}))

    def _release(self) -> bool:
        """Give the lock back; return False if it is lost.

        A database that has undone the last commits has an older record of this holder, which would keep others waiting.
        """
        record = self._database.get_many([MAINTENANCE]).get(MAINTENANCE)
        if record is None or _decode(record.value)[0] != self._token:
            return False
        outcome = self._database.commit(Commit(reads={MAINTENANCE: record.version}, deletes=[MAINTENANCE]))
        return isinstance(outcome, Committed) and record.version == self._version


def _fenced() -> FencedError:
    return FencedError(
        "another process has taken over the repairs and sweeps, or the database has lost newer commits: start over"
    )


def _encode(token: str, now_s: float) -> bytes:
    return json.dumps({"holder": token, "until": now_s + _TERM_S}).encode()


def _decode(value: bytes) -> tuple[str, float]:
    """Return the token of the holder, and the end of the lock; a damaged record is a lock that has ended."""
    try:
        fields = json.loads(value)
        return str(fields["holder"]), float(fields["until"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", 0.0
