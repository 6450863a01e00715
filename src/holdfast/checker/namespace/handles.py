"""Give the shipped namespace handles on the simulated database and clock: each call is a step of the world.

Two things are left out of histories, because they only make them longer. What a process knows at its start was read
from the state at the start, without steps (`SimulatedHandle.begin`). And ids come from a range of the process's own,
unless a scene is about their reservation.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import cast

from holdfast.checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast.checker.kernel.process import Port
from holdfast.checker.transactions.database import (
    DATABASE,
    Database,
    Image,
    commit_group,
    record_accesses,
    scan_of,
)
from holdfast.checker.transactions.handles import SimulatedDatabase
from holdfast.errors import UnsupportedError
from holdfast.namespace.keys import NEXT_ID
from holdfast.transactions.base import (
    Commit,
    Committed,
    LockedTransaction,
    Outcome,
    Record,
    ScanPage,
    SnapshotReader,
)
from holdfast.transactions.memory.store import Records

__all__ = ["CLOCK", "Copy", "SimulatedHandle", "TimeSource", "WaitableDatabase", "WorldClock"]

CLOCK = "clock"

_ENDS = (b"\0", b"\xff")
_EVERYTHING = 1_000_000
_IDS = 1000


class Copy:
    """A database that nobody else uses, with given records: the start of a world, a snapshot, or its end."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._version = 1 << 60

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        records = self.records.as_dict()
        return {key: records[key] for key in sorted(keys) if key in records}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return scan_of(self.records, start, end, limit, tuple(sorted(guards)))

    def commit(self, commit: Commit) -> Outcome:
        return self.commit_group([commit])[0]

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._version += len(commits)
        self.records, outcomes = commit_group(self.records, commits, self._version)
        return list(outcomes)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        yield Copy(self.records)

    def locked(self) -> AbstractContextManager[LockedTransaction]:
        raise UnsupportedError("simulated databases have no pessimistic transactions: use the optimistic mode")

    def make_durable(self) -> None:
        """Do nothing: a simulated database loses nothing."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class WaitableDatabase(Database):
    """A `Database` with one more call: `wait` ends when records have changed.

    A process that polls again and again would have endless histories. One that waits for a change has short ones, and
    between two changes, polls see the same.
    """

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation != "wait":
            return super().alternatives(state, call, actor)
        records = cast("Image", state).records.as_dict()
        seen = cast("tuple[tuple[bytes, int], ...]", call.args[0])
        is_same = all((records[key].version if key in records else 0) == version for key, version in seen)
        return [] if is_same else [Alternative(state=state)]

    def footprint(self, call: Call) -> Footprint:
        if call.operation != "wait":
            return super().footprint(call)
        seen = cast("tuple[tuple[bytes, int], ...]", call.args[0])
        return record_accesses([key for key, _version in seen], writes=False)


class SimulatedHandle:
    """A process's handle on the database of its world.

    Args:
        start: the records at the start of every history.
        reserves: whether the reservation of ids is part of the history.
    """

    def __init__(self, port: Port, start: Records, *, reserves: bool = False) -> None:
        self._port = port
        self._database = SimulatedDatabase(port)
        self._start: Copy | None = Copy(start)
        self._reserves = reserves
        self._polled: tuple[tuple[bytes, int], ...] = ()

    def begin(self) -> None:
        """End the time before the history: from now on, each call is a step."""
        self._start = None

    def wait(self) -> None:
        """Wait until what was read last has changed; not at all if the last call was a commit."""
        if self._polled:
            self._port.call(Call(DATABASE, "wait", (self._polled,)))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if self._start is not None:
            return self._start.get_many(keys)
        if set(keys) == {NEXT_ID} and not self._reserves:
            return {NEXT_ID: Record(1, b"", int(self._port.token(), 16) * _IDS)}
        found = self._database.get_many(keys)
        self._note(keys, found)
        return found

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        if self._start is not None:
            return self._start.scan(start, end, limit, guards)
        page = self._database.scan(start, end, limit, guards)
        self._note(guards, dict(page.guards))
        return page

    def _note(self, keys: Collection[bytes], found: dict[bytes, Record]) -> None:
        self._polled = tuple((key, found[key].version if key in found else 0) for key in sorted(keys))

    def commit(self, commit: Commit) -> Outcome:
        return self.commit_group([commit])[0]

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        if not self._reserves and all(commit.adds.keys() == {NEXT_ID} for commit in commits):
            return [Committed(1) for _ in commits]
        self._polled = ()
        values = [replace(commit, deletes=tuple(sorted(commit.deletes))) for commit in commits]
        return self._database.commit_group(values)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        """Read everything in one step."""
        if self._start is not None:
            yield self._start
            return
        page = self._database.scan(*_ENDS, _EVERYTHING)
        yield Copy(Records(tuple(key for key, _ in page.records), tuple(record for _, record in page.records)))

    def locked(self) -> AbstractContextManager[LockedTransaction]:
        raise UnsupportedError("simulated databases have no pessimistic transactions: use the optimistic mode")

    def make_durable(self) -> None:
        """Do nothing: a simulated database loses nothing."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


# --- time -------------------------------------------------------------------------------------------------------------
class TimeSource:
    """A resource: the time, which all processes share. `now` reads it, and `pass` lets much time pass.

    Args:
        start_s: the time at the start, seconds since the epoch.
        jump_s: how much time passes at once.
    """

    def __init__(self, start_s: float, jump_s: float) -> None:
        self._start_s = start_s
        self._jump_s = jump_s

    def initial(self) -> float:
        return self._start_s

    def key(self, state: object) -> Hashable:
        return cast("float", state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation == "now":
            return [Alternative(state=state, reply=Reply(state))]
        after = cast("float", state) + self._jump_s
        return [Alternative(state=after, label="much later", fault=Fault.CLOCK)]

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access(CLOCK, "", writes=call.operation == "pass")})

    def waits_for(self, state: object, call: Call) -> None:
        return None

    def bury(self, state: object, actor: str) -> object:
        return state


class WorldClock:
    """The clock of one process. It waits for the others, not for the time.

    Args:
        ticks: whether the time can change: then each look at the wall clock is a step.
    """

    def __init__(self, port: Port, database: SimulatedHandle, start_s: float, *, ticks: bool) -> None:
        self._port = port
        self._database = database
        self._seen_s = start_s
        self._ticks = ticks

    def now_s(self) -> float:
        if self._ticks:
            self._seen_s = cast("float", self._port.call(Call(CLOCK, "now")))
        return self._seen_s

    def elapsed_s(self) -> float:
        """Return the time at the last look at the wall clock."""
        return self._seen_s

    def sleep(self, duration_s: float) -> None:
        self._database.wait()
