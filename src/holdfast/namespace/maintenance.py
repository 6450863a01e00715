"""Elect the process that does background work, and let only one process at a time repair or sweep a namespace.

A sweep proves that a blob belongs to no file; a repair gives such blobs to files. Together they could lose data, so
each of them holds the maintenance lock, and changes the lock's record in every one of its transactions: a process that
has lost the lock, even without noticing, can change nothing anymore. The end of the lock is a time, but safety does not
depend on clocks.

The other work is safe with two leaders (`collector`): the election only saves double work. So it may rely on clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import MALFORMED, ConflictError, FencedError, UnavailableError
from holdfast.namespace.inode import is_term_unexpired
from holdfast.namespace.keys import DAMAGED, LEADER, MAINTENANCE, ROOT_KEY
from holdfast.namespace.operation import Changes
from holdfast.namespace.view import SeenRecord, View
from holdfast.runtime import Clock, Environment, Moment
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed

_LOCK_S = 600.0
_LEADERSHIP_S = 30.0
_TRIES = 50


@dataclass(frozen=True, slots=True)
class LockTerm:
    """The right of one process, until a given time, to lead or to repair and sweep.

    Attributes:
        holder: the token of the process; no other one has it.
        until_s: when the term ends, seconds since the epoch.
    """

    holder: str
    until_s: float

    def encode(self) -> bytes:
        """Return the term as JSON, the value of the record that says who leads and until when."""
        return json.dumps({"holder": self.holder, "until": self.until_s}).encode()

    @staticmethod
    def decode(value: bytes) -> LockTerm:
        """Decode the term in a record; a damaged record counts as a term that is over."""
        try:
            fields = json.loads(value)
            return LockTerm(str(fields["holder"]), float(fields["until"]))
        except MALFORMED:
            return LockTerm("", 0.0)


# --- the leader -------------------------------------------------------------------------------------------------------
def current_leader(database: Backend, clock: Clock) -> LockTerm | None:
    """Return the term of the present leader, which runs the collector; None if no process leads now."""
    record = database.get_many([LEADER]).get(LEADER)
    term = None if record is None else LockTerm.decode(record.value)
    return term if term is not None and is_term_unexpired(term.until_s, clock.now_s(), _LEADERSHIP_S) else None


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Lets one process stand for leader among those that run the collector.

    Attributes:
        token: names the process; no other one has it.
        term_s: for how many seconds a leader leads, unless it renews its term.
    """

    database: Backend
    clock: Clock
    token: str
    term_s: float = _LEADERSHIP_S

    def try_to_lead(self) -> bool:
        """Become the leader, or renew the leadership; return whether this process leads now, which is False while
        another one does.
        """
        record = self.database.get_many([LEADER]).get(LEADER)
        now_s = self.clock.now_s()
        if record is not None:
            term = LockTerm.decode(record.value)
            if term.holder != self.token and is_term_unexpired(term.until_s, now_s, self.term_s):
                return False
        value = LockTerm(self.token, now_s + self.term_s).encode()
        version = ABSENT if record is None else record.version
        return isinstance(self.database.commit(Commit(reads={LEADER: version}, puts={LEADER: value})), Committed)

    def resign(self) -> None:
        """Give up the leadership, if this process has it, so that another one can lead at once."""
        record = self.database.get_many([LEADER]).get(LEADER)
        if record is not None and LockTerm.decode(record.value).holder == self.token:
            self.database.commit(Commit(reads={LEADER: record.version}, deletes=[LEADER]))


# --- who repairs or sweeps --------------------------------------------------------------------------------------------
class MaintenanceLock:
    """The lock that a process holds while it repairs or sweeps a namespace. Take it with `hold`."""

    def __init__(self, database: Backend, environment: Environment, token: str, version: int) -> None:
        self._database = database
        self._clock = environment.clock
        self._token = token
        self._version = version
        self._written = Moment.of(self._clock)

    @staticmethod
    @contextmanager
    def hold(database: Backend, environment: Environment, work: str) -> Iterator[MaintenanceLock]:
        """Hold the maintenance lock of a namespace during the block.

        Args:
            work: ``repair`` or ``sweep``: the error of other processes that want the lock says so.

        Raises:
            ConflictError: another process has the lock. Wait until it is done.
            FencedError: at the end of the block, the lock is lost: the database has undone the last commit, or another
                process has taken over. Unless another process has it, the lock is free.

        Crash: the lock ends ten minutes after its last use.
        """
        record = database.get_many([MAINTENANCE]).get(MAINTENANCE)
        now_s = environment.clock.now_s()
        if record is not None:
            term = LockTerm.decode(record.value)
            if is_term_unexpired(term.until_s, now_s, _LOCK_S):
                work = term.holder.partition(" ")[0]
                raise ConflictError(f"another process is at work, a {work}: wait until it is done")
        token = f"{work} {environment.ids.token()}"
        value = LockTerm(token, now_s + _LOCK_S).encode()
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
            raise _lost_lock_error()

    def commit(self, changes: Changes[None], view: View) -> bool:
        """Commit changes together with a renewal of the lock; return False if other records have changed, and nothing
        was written.

        Raises:
            FencedError: the lock is lost; nothing happened.
        """
        view.entries[MAINTENANCE] = SeenRecord(self._version, None)
        now = Moment.of(self._clock)
        changes.values[MAINTENANCE] = LockTerm(self._token, now.now_s + _LOCK_S).encode()
        outcome = self._database.commit(changes.to_commit(view))
        if isinstance(outcome, Committed):
            self._version = outcome.version
            self._written = now
            return True
        record = self._database.get_many([MAINTENANCE]).get(MAINTENANCE)
        if record is None or record.version != self._version:
            raise _lost_lock_error()
        return False

    def rewrite_root(self) -> None:
        """Write the root inode unchanged, with a new version, so that every operation that began before fails to commit
        or is in later snapshots.

        Blobs are stored before their file is published. A publication that began before this call fails, or is in later
        snapshots. One that begins later refuses blobs (`Publish`) that are old enough for the caller to take them for
        garbage. So the caller must take the time from which it counts ages before this call.

        Without a root there is nothing to change, and no publication takes effect.

        Raises:
            FencedError: the lock is lost.
            UnavailableError: others change the root again and again.
        """
        for _ in range(_TRIES):
            root = self._database.get_many([ROOT_KEY]).get(ROOT_KEY)
            if root is None:
                return
            view = View((), {ROOT_KEY: SeenRecord(root.version, None)})
            if self.commit(Changes(None, values={ROOT_KEY: root.value}), view):
                return
        raise UnavailableError("the root of the namespace changes again and again: repeat later")

    def renew_if_due(self) -> None:
        """Renew the lock if a quarter of its ten minutes is over.

        Raises:
            FencedError: the lock is lost.
        """
        if self._written.age_s(self._clock) > _LOCK_S / 4:
            self.commit(Changes(None), View((), {}))

    def _release(self) -> bool:
        """Give the lock back; return False if it is lost.

        A database that has undone the last commits has an older record of this holder, which would keep others waiting.
        """
        record = self._database.get_many([MAINTENANCE]).get(MAINTENANCE)
        if record is None or LockTerm.decode(record.value).holder != self._token:
            return False
        outcome = self._database.commit(Commit(reads={MAINTENANCE: record.version}, deletes=[MAINTENANCE]))
        return isinstance(outcome, Committed) and record.version == self._version


def _lost_lock_error() -> FencedError:
    return FencedError(
        "another process has taken over the repairs and sweeps, or the database has lost newer commits: start over"
    )


# --- damaged records that may have named blobs ------------------------------------------------------------------------
# A repair keeps the bytes of a damaged record, but it is unknown which blobs they named. Those blobs belong to no file
# from then on. A repair gives old ones to /lost+found at once; young ones may be those of a writer that has not
# published them yet. So a repair notes when it was, and until another one comes along that finds them old, no sweep
# touches what is older than the note.
KINDS_WITH_BLOBS = (b"i", b"p")
"""The kinds of records that name blobs: inodes, and pending uploads."""


def encode_damage_note(store_now_s: float) -> bytes:
    """Return the value of the record that notes that a repair has removed damaged records, whose blobs may belong to no
    file now.

    Args:
        store_now_s: the time of the object store's clock, which dates the blobs: seconds since the epoch.
    """
    return json.dumps({"at": store_now_s}).encode()


def read_damage_time_s(database: Backend) -> float:
    """Return when damaged records were last removed whose blobs a repair must still look for, by the object store's
    clock; -1 for never; infinity (all blobs) if the time cannot be read.
    """
    record = database.get_many([DAMAGED]).get(DAMAGED)
    if record is None:
        return -1.0
    try:
        return float(json.loads(record.value)["at"])
    except MALFORMED:
        return float("inf")


def delete_damage_note(database: Backend, lock: MaintenanceLock, store_now_s: float, age_s: float) -> None:
    """Delete the note of removed damaged records, if the repair that calls this has found all their blobs.

    Args:
        store_now_s: when that repair began, by the store's clock.
        age_s: the age from which that repair considered a blob, seconds.

    Raises:
        FencedError: the lock is lost.
    """
    at_s = read_damage_time_s(database)
    if at_s == float("inf"):
        lock.commit(Changes(None, values={DAMAGED: encode_damage_note(store_now_s)}), View((), {}))
    elif 0 <= at_s < store_now_s - age_s:
        lock.commit(Changes(None, deletes={DAMAGED}), View((), {}))
