"""Elect one process for the background work, by a record in the database.

The work is safe with two leaders (`collector`): the election only saves double work. So it may rely on clocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from holdfast.namespace.keys import LEADER
from holdfast.namespace.terms import is_running
from holdfast.runtime import Clock
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed

_TERM_S = 30.0


@dataclass(frozen=True, slots=True)
class Leader:
    """The process that leads.

    Attributes:
        holder: its token.
        until_s: when its term ends, seconds since the epoch.
    """

    holder: str
    until_s: float


def current_leader(store: Backend, clock: Clock) -> Leader | None:
    """Return the leader; None if no process leads now."""
    record = store.get_many([LEADER]).get(LEADER)
    if record is None:
        return None
    leader = Leader(*_decode(record.value))
    return leader if is_running(leader.until_s, clock.now_s(), _TERM_S) else None


@dataclass(frozen=True, slots=True)
class Election:
    """The candidacy of one process.

    Attributes:
        token: names the process; no other one has it.
        term_s: how long a leader stays leader without renewing it.
    """

    store: Backend
    clock: Clock
    token: str
    term_s: float = _TERM_S

    def lead(self) -> bool:
        """Become the leader, or stay it, unless another process leads; return whether this process leads now."""
        record = self.store.get_many([LEADER]).get(LEADER)
        now_s = self.clock.now_s()
        if record is not None:
            holder, until_s = _decode(record.value)
            if holder != self.token and is_running(until_s, now_s, self.term_s):
                return False
        value = json.dumps({"holder": self.token, "until": now_s + self.term_s}).encode()
        version = ABSENT if record is None else record.version
        return isinstance(self.store.commit(Commit(reads={LEADER: version}, puts={LEADER: value})), Committed)

    def resign(self) -> None:
        """Let another process lead at once."""
        record = self.store.get_many([LEADER]).get(LEADER)
        if record is not None and _decode(record.value)[0] == self.token:
            self.store.commit(Commit(reads={LEADER: record.version}, deletes=[LEADER]))


def _decode(value: bytes) -> tuple[str, float]:
    """Return holder and end of a term; a damaged record is a term that has ended."""
    try:
        fields = json.loads(value)
        return str(fields["holder"]), float(fields["until"])
    except (ValueError, KeyError, TypeError):
        return "", 0.0
