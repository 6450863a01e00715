"""Simulate a transaction database in which each call is one atomic step, and the handles of processes on it.

Judging and applying commits is done by the shipped functions that all backends share. What goes wrong is what goes
wrong with a server: a request is lost, a reply is lost, a commit takes effect when its caller has given up waiting, or
a crash takes away the newest commits, whose callers were told of their success, and live on.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import HoldfastError, OutcomeUnknownError, UnavailableError
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage, SnapshotReader
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.validation import apply_steps, steps_of_group, validate_group
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply, canonical_key
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.time import CountingIds

DATABASE = "database"

_DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class RecordMap:
    """An immutable, hashable map of database records, sorted by key."""

    keys: tuple[bytes, ...] = ()
    records: tuple[Record, ...] = ()

    def as_dict(self) -> dict[bytes, Record]:
        """Return the records as a dict, by key."""
        return dict(zip(self.keys, self.records, strict=True))


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The immutable state of a simulated transaction database: its records, late commits, and undoable commits.

    Attributes:
        late: groups of delayed commits whose callers have given up waiting, each with its first version, sorted by it.
        crashes: how often the database may still crash.
        unsaved: what the records were before each commit that a crash may undo, the oldest first.
    """

    records: RecordMap
    late: tuple[tuple[int, tuple[Commit, ...]], ...] = ()
    crashes: int = 0
    unsaved: tuple[RecordMap, ...] = ()


def make_record_map(found: Mapping[bytes, Record]) -> RecordMap:
    """Convert a mapping of database records to the immutable, hashable `RecordMap`."""
    keys = tuple(sorted(found))
    return RecordMap(keys, tuple(found[key] for key in keys))


class DatabaseResource:
    """A simulated transaction database: a resource with the calls of a backend, and two for failures of the server.

    The backend's calls are `get_many`, `scan`, `commit_group` and `make_durable`. `carry_out` delivers a late group of
    commits. `crash` undoes any number of the newest commits after the last `make_durable`; no other process crashes.

    Args:
        start: the records at the start of every history.
        crashes: how often the database may crash.
    """

    def __init__(self, start: Mapping[bytes, Record], *, crashes: int = 0) -> None:
        self._start = DatabaseState(make_record_map(start), crashes=crashes)

    def initial_state(self) -> DatabaseState:
        return self._start

    def state_key(self, state: object) -> Hashable:
        image = cast("DatabaseState", state)
        if self._start.crashes:
            return (image.records, canonical_key(image.late), image.crashes, image.unsaved)
        return (image.records, canonical_key(image.late)) if image.late else image.records

    def find_unblockers(self, state: object, call: Call) -> None:
        """Return None (no particular actor): even a late commit may unblock a call."""

    def state_after_death(self, state: object, actor: str) -> object:
        return state

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        image = cast("DatabaseState", state)
        if call.operation == "get_many":
            records = image.records.as_dict()
            keys = cast("tuple[bytes, ...]", call.args[0])
            found = tuple((key, records[key]) for key in keys if key in records)
            return [Alternative(state=image, reply=Reply(found)), make_failed_alternative(image)]
        if call.operation == "scan":
            return [
                Alternative(state=image, reply=Reply(scan_records(image.records, *call.args))),
                make_failed_alternative(image),
            ]
        if call.operation == "make_durable":
            return [Alternative(state=replace(image, unsaved=())), make_failed_alternative(image)]
        if call.operation == "crash":
            return _crash_alternatives(image)
        if call.operation == "carry_out":
            return [
                Alternative(
                    state=_apply_late_group(image, number), label=f"the commit with version {base}" if number else ""
                )
                for number, (base, _commits) in enumerate(image.late)
            ]
        commits, base = cast("tuple[tuple[Commit, ...], int]", call.args)
        try:
            after, outcomes = commit_group(image.records, commits, base)
        except HoldfastError as error:
            return [Alternative(state=image, reply=Reply(error=error.with_traceback(None)))]
        done = _image_after_commit(image, after)
        ways = [Alternative(state=done, reply=Reply(outcomes)), make_failed_alternative(image)]
        if after != image.records:
            late = replace(image, late=tuple(sorted((*image.late, (base, commits)), key=lambda one: one[0])))
            ways += [
                make_lost_reply_alternative(done, "reply lost", Fault.LOST_REPLY),
                make_lost_reply_alternative(late, "reply lost, effect comes later", Fault.LOST_REPLY),
                make_lost_reply_alternative(image, "request lost", Fault.FAILURE),
            ]
        return ways

    def footprint(self, call: Call) -> Footprint:
        if call.operation == "get_many":
            return record_accesses(cast("tuple[bytes, ...]", call.args[0]), writes=False)
        if call.operation == "scan":
            start, end, _limit, guards = call.args
            return range_accesses(start, end) | record_accesses(guards, writes=False)
        durable = frozenset({Access(_DURABLE, "", writes=True)} if self._start.crashes else ())
        if call.operation == "make_durable":
            return durable
        if call.operation in ("carry_out", "crash"):
            return durable | {Access(DATABASE, "", writes=True, below=True)}
        commits = cast("tuple[Commit, ...]", call.args[0])
        found: Footprint = durable
        for commit in commits:
            found |= record_accesses(commit.reads, writes=False)
            written = {*commit.puts, *commit.inserts, *commit.deletes, *commit.adds}
            found |= record_accesses(written, writes=True)
            for one in commit.ranges:
                found |= range_accesses(one.start, one.end)
        return found


def commit_group(records: RecordMap, commits: Sequence[Commit], base: int) -> tuple[RecordMap, tuple[Outcome, ...]]:
    """Validate and apply a group of commits in one step; return the new records, and the outcome of each commit.

    Raises:
        InvalidRequestError: a commit is malformed.
    """
    steps = steps_of_group(commits)
    before = records.as_dict()
    seen = {step.key: before[step.key] for step in steps if step.key in before}
    counts = {
        (call, index): len(scan_records(records, one.start, one.end, one.count + 1).records)
        for call, commit in enumerate(commits)
        for index, one in enumerate(commit.ranges)
    }
    result = validate_group(commits, steps, seen, counts, base)
    changes = apply_steps(seen, result.valid, base)
    if not changes:
        return records, tuple(result.outcomes)
    after = {**before, **changes}
    return make_record_map({key: one for key, one in after.items() if one is not None}), tuple(result.outcomes)


def _apply_late_group(image: DatabaseState, number: int) -> DatabaseState:
    """Apply a group of commits that arrives late at the simulated database; no actor learns the outcomes."""
    base, commits = image.late[number]
    after, _outcomes = commit_group(image.records, commits, base)
    return replace(_image_after_commit(image, after), late=(*image.late[:number], *image.late[number + 1 :]))


def _image_after_commit(image: DatabaseState, after: RecordMap) -> DatabaseState:
    """Return the state after a commit; a crash may undo it, as long as there may be one."""
    if not image.crashes or after == image.records:
        return replace(image, records=after)
    return replace(image, records=after, unsaved=(*image.unsaved, image.records))


def _crash_alternatives(image: DatabaseState) -> list[Alternative]:
    """Take away any number of the newest commits, and all that is on its way; reply with that number."""
    count, crashes = len(image.unsaved), image.crashes - 1
    kept = image.unsaved if crashes else ()
    return [
        Alternative(state=replace(image, crashes=crashes, unsaved=kept), reply=Reply(0)),
        *(
            Alternative(
                state=replace(image, records=records, crashes=crashes, unsaved=kept[:number], late=()),
                reply=Reply(count - number),
                label=f"loses {count - number}",
            )
            for number, records in enumerate(image.unsaved)
        ),
    ]


def scan_records(records: RecordMap, start: object, end: object, limit: object, guards: object = ()) -> ScanPage:
    """Return one page of the records in a range of keys, as `Backend.scan` does."""
    first = bisect.bisect_left(records.keys, cast("bytes", start))
    last = max(first, bisect.bisect_left(records.keys, cast("bytes", end)))
    most = min(last, first + cast("int", limit))
    found = tuple(zip(records.keys[first:most], records.records[first:most], strict=True))
    everything = records.as_dict()
    kept = {key: everything[key] for key in cast("tuple[bytes, ...]", guards) if key in everything}
    return ScanPage(found, most < last, kept)


# --- what every simulated database does -------------------------------------------------------------------------------
def make_failed_alternative(state: object) -> Alternative:
    """Return the outcome of a call on a database that raises `UnavailableError` and has no effect."""
    error = UnavailableError("the database is not available: retry later")
    return Alternative(state=state, reply=Reply(error=error), label="fails", fault=Fault.FAILURE)


def make_lost_reply_alternative(state: object, label: str, fault: Fault) -> Alternative:
    """Return the outcome of a call on a database whose reply is lost: the caller gets an `OutcomeUnknownError`."""
    error = OutcomeUnknownError("the database did not answer: read before repeating")
    return Alternative(state=state, reply=Reply(error=error), label=label, fault=fault)


def record_accesses(keys: object, *, writes: bool) -> Footprint:
    """Return the footprint (accesses, for partial-order reduction) of a call on the records with these keys."""
    return frozenset(Access(DATABASE, key.decode("latin-1"), writes=writes) for key in cast("Sequence[bytes]", keys))


def range_accesses(first: object, last: object) -> Footprint:
    """Return the footprint of a call on a key range: an access to all keys with the common prefix of both ends."""
    start, end = cast("bytes", first), cast("bytes", last)
    length = next((at for at, (one, other) in enumerate(zip(start, end, strict=False)) if one != other), len(start))
    return frozenset({Access(DATABASE, start[:length].decode("latin-1"), below=True)})


class DatabaseCopy(MemoryBackend):
    """An in-memory database that starts with given records, such as those at the end of a simulated history."""

    def __init__(self, records: RecordMap) -> None:
        super().__init__(CountingIds(1 << 44))
        self._records, self._keys = records.as_dict(), list(records.keys)

    @property
    def records(self) -> RecordMap:
        return make_record_map(self._records)

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return super().get_many(sorted(keys))  # their order must not depend on that of a set


# --- handles ----------------------------------------------------------------------------------------------------------
_EVERYTHING = (b"\0", b"\xff", 1_000_000)


class SimulatedDatabase(Backend):
    """A process's handle on a simulated `DatabaseResource`, where each call is a single step."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = self._port.call(Call(DATABASE, "get_many", (tuple(sorted(keys)),)))
        return dict(cast("tuple[tuple[bytes, Record], ...]", found))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return cast("ScanPage", self._port.call(Call(DATABASE, "scan", (start, end, limit, tuple(sorted(guards))))))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        values = tuple(map(self.as_value, commits))
        call = Call(DATABASE, "commit_group", (values, reserve_versions(self._port, len(commits))))
        return list(cast("tuple[Outcome, ...]", self._port.call(call)))

    def as_value(self, commit: Commit) -> Commit:
        """Return an equal commit with its deletes sorted, so that equal commits are equal arguments of calls."""
        return replace(commit, deletes=tuple(sorted(commit.deletes)))

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        """Yield a reader of all records, which were read in one step."""
        page = SimulatedDatabase.scan(self, *_EVERYTHING)
        yield DatabaseCopy(
            RecordMap(tuple(key for key, _ in page.records), tuple(record for _, record in page.records))
        )

    def make_durable(self) -> None:
        self._port.call(Call(DATABASE, "make_durable"))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def reserve_versions(port: Port, count: int) -> int:
    """Reserve `count` consecutive record versions that no other process gets; return the first one."""
    first, *_others = [int(port.token(), 16) for _ in range(max(count, 1))]
    return first
