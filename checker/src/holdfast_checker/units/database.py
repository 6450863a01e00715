"""Simulate the database of computation units, and Spark's knowledge of how task attempts have ended.

A commit is one step. Added to `LockableDatabase` are: how each attempt has ended, and what was missing when it said
that it was done; others that wait for its end; and workers that wait until a work list changes, or the time of a lease
is over.

Two things are left out of histories, because they only make them longer. The definitions of tables are known at the
start, unless a scene drops a table. And the record of a task's progress is stored without its statistics, which no step
of the protocol reads; so states that differ in nothing else are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Commit, Outcome, Record, ScanPage
from holdfast.units.progress import Statistics, TaskProgress, progress_key
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE, RecordMap, range_accesses, record_accesses
from holdfast_checker.simulated.locks import LockableDatabase, LockableState, LockingDatabase

DONE, DIED, UNNEEDED, GIVEN_UP = "done", "died", "not needed", "given up"

_ENDS = "ends"

_TOKEN, _NUMBER = 12, 4
"""Characters of a token, and those of them that are the number of the process, from 1: see `Port.token`."""

_Range = tuple[bytes, bytes]
_Seen = tuple[tuple[bytes, int], ...]
_Report = tuple[str, str, tuple[bytes, ...], _Range]
_Idle = tuple[bytes, bytes, _Seen]


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The reported end of an actor that runs units, with evidence of whether the report is true.

    Attributes:
        who: the actor, such as a task attempt.
        how: `DONE`, `DIED`, `UNNEEDED`, `GIVEN_UP` if it has ended a run early, or the error's class and its unit.
        missing: keys of required effect records that did not exist at the time of the report.
        left: keys of the work list that still existed when a worker reported that it was done.
    """

    who: str
    how: str
    missing: tuple[bytes, ...] = ()
    left: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitsImage(LockableState):
    """The state of the simulated database of computation units.

    Attributes:
        ends: how actors that run units have ended, sorted by actor.
    """

    ends: tuple[AttemptEnd, ...] = ()

    def with_end(self, end: AttemptEnd) -> UnitsImage:
        """Return the state of the database extended by the reported end of an attempt."""
        return replace(self, ends=tuple(sorted((*self.ends, end), key=lambda one: one.who)))

    def end_of(self, who: str) -> AttemptEnd | None:
        """Return how the attempt with this name has ended; None if it has not."""
        return next((one for one in self.ends if one.who == who), None)


class UnitsDatabase(LockableDatabase):
    """The simulated database of computation units: a `LockableDatabase` that also knows how task attempts have ended.

    It adds the calls `report` (how an attempt ended), `await` (until it has), and `idle` (until the work list changes).

    Args:
        actors: the names of all actors, in order.
        crashes: how often the database may crash.
    """

    def __init__(self, start: RecordMap, actors: Sequence[str], *, crashes: int = 0) -> None:
        super().__init__(start.as_dict(), crashes=crashes)
        self._actors = actors

    def initial_state(self) -> UnitsImage:
        start = super().initial_state()
        return UnitsImage(start.records, crashes=start.crashes)

    def state_key(self, state: object) -> Hashable:
        return (super().state_key(state), cast("UnitsImage", state).ends)

    def find_unblockers(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:  # type: ignore[override] # waits for commits have no single culprit, those for attempts do
        return (str(call.args[0]), frozenset()) if call.operation == "await" else None

    def state_after_death(self, state: object, actor: str) -> object:
        image = cast("UnitsImage", super().state_after_death(state, actor))
        return image.with_end(AttemptEnd(actor, DIED))

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        image = cast("UnitsImage", state)
        if call.operation == "report":
            who, how, wanted, unwanted = cast("_Report", call.args)
            missing = tuple(key for key in wanted if key not in image.records.keys)
            left = tuple(key for key, _version in _versions_in_range(image, *unwanted))
            return [Alternative(state=image.with_end(AttemptEnd(who, how, missing, left)))]
        if call.operation == "await":
            end = image.end_of(str(call.args[0]))
            return [] if end is None else [Alternative(state=image, reply=Reply(end.how))]
        if call.operation == "idle":
            return self._wait_for_change(image, *cast("_Idle", call.args))
        return super().alternatives(state, call, actor)

    def _wait_for_change(self, image: UnitsImage, start: bytes, end: bytes, seen: _Seen) -> list[Alternative]:
        """Wait until a range has changed. If only the dead have claims in it, time passes; else that is a fault."""
        if _versions_in_range(image, start, end) != seen:
            return [Alternative(state=image, reply=Reply(False))]
        holders = {self._claim_holder(key) for key, _version in seen}
        if all(image.end_of(who) is not None for who in holders):
            return [Alternative(state=image, reply=Reply(True))]
        return [Alternative(state=image, reply=Reply(True), label="waits for a lease", fault=Fault.CLOCK)]

    def _claim_holder(self, claim: bytes) -> str:
        """Return the name of the worker that holds a claim; the key of a claim ends with the worker's token."""
        return self._actors[int(claim[-_TOKEN:][:_NUMBER], 16) - 1]

    def footprint(self, call: Call) -> Footprint:
        if call.operation == "report":
            who, _how, wanted, unwanted = cast("_Report", call.args)
            reads = record_accesses(wanted, writes=False) | range_accesses(*unwanted)
            return reads | {Access(_ENDS, who, writes=True)}
        if call.operation == "await":
            return frozenset({Access(_ENDS, str(call.args[0]))})
        if call.operation == "idle":
            start, end, _seen = cast("_Idle", call.args)
            return range_accesses(start, end) | {Access(_ENDS, "", below=True)}
        return super().footprint(call)


def _versions_in_range(image: UnitsImage, start: bytes, end: bytes) -> _Seen:
    """Return the keys in a range of the units database, with the versions of their records."""
    return tuple((key, record.version) for key, record in image.records.as_dict().items() if start <= key < end)


# --- what processes have ----------------------------------------------------------------------------------------------
_PROGRESS = progress_key(0, 0)[:2]


class UnitsHandle(LockingDatabase):
    """The database of one process that runs units: each call is a step on the shared `UnitsDatabase`.

    Args:
        known: records that never change, so that reading them is no step.
        watched: the key range of the work list: `wait` blocks until it changes.
    """

    def __init__(self, port: Port, known: Mapping[bytes, Record], watched: tuple[bytes, bytes] = (b"", b"")) -> None:
        super().__init__(port)
        self._known = known
        self._watched = watched
        self._seen: tuple[tuple[bytes, int], ...] | None = None

    def wait(self) -> bool:
        """Block until the watched range differs from the last read, or a lease expires; return whether one expired."""
        if self._seen is None:
            return False
        return bool(self._port.call(Call(DATABASE, "idle", (*self._watched, self._seen))))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if keys and self._known.keys() >= set(keys):
            return {key: self._known[key] for key in keys}
        self._seen = None
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._seen = None
        page = super().scan(start, end, limit, guards)
        if (start, end) == self._watched:
            self._seen = tuple((key, record.version) for key, record in page.records)
        return page

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._seen = None
        return super().commit_group(commits)

    def as_value(self, commit: Commit) -> Commit:
        puts = {
            key: _progress_without_statistics(value) if key.startswith(_PROGRESS) else value
            for key, value in commit.puts.items()
        }
        return super().as_value(replace(commit, puts=puts))


class CommitAndReadHandle(UnitsHandle):
    """A `UnitsHandle` with a call that commits and then reads, in two steps: other actors may run in between."""

    reads_ahead = True
    has_read_ahead = False

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        outcome = self.commit(commit)
        try:
            records = self.get_many(keys)
        except UnavailableError:
            return outcome, None
        self.has_read_ahead = True
        return outcome, records


def _progress_without_statistics(value: bytes) -> bytes:
    return replace(TaskProgress.of(value), statistics=Statistics()).to_bytes()


class WorkerClock:
    """The simulated clock of one process: sleeping blocks until other actors have changed the work list.

    If a lease expires meanwhile, the clock advances by its duration.

    Args:
        lease_s: the duration of a lease.
    """

    def __init__(self, database: UnitsHandle, lease_s: float) -> None:
        self._database = database
        self._lease_s = lease_s
        self._at_s = 0.0

    def now_s(self) -> float:
        return self._at_s

    def elapsed_s(self) -> float:
        return self._at_s

    def sleep(self, duration_s: float) -> None:
        if self._database.wait():
            self._at_s += self._lease_s
