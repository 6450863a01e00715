"""Define transaction databases with mistakes, to test what is meant to find them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from holdfast.errors import UnavailableError
from holdfast.transactions.base import (
    ABSENT,
    Commit,
    Committed,
    Conflict,
    LockingTransaction,
    Outcome,
    Record,
    ScanPage,
)
from holdfast.transactions.memory import MemoryBackend

__all__ = [
    "AddsConflict",
    "AddsDropValues",
    "AlwaysHasMore",
    "BoundsTheOldNumber",
    "ChecksNothing",
    "ConflictsAreNameless",
    "CountsAtLeast",
    "CountsItsOwnWrites",
    "CountsNothing",
    "CountsVersions",
    "FailsGroupsAsOne",
    "FlushesByWriting",
    "FlushesItsOwnWrites",
    "FlushesOnce",
    "FlushesWhatIsOpen",
    "ForgetsBounds",
    "GuardsInRangeOnly",
    "InSteps",
    "IncludesTheEnd",
    "InsertsAreGuesses",
    "JudgesThenApplies",
    "Lags",
    "LeavesFailedInserts",
    "LocksAfterReading",
    "LocksNothingButReads",
    "PadsKeys",
    "PutsKeepNumbers",
    "ReadsGuardsLater",
    "ReadsOneByOne",
    "ReadsReserve",
    "SnapshotsMove",
    "Truncates",
    "ValidatesNoAbsence",
    "ValidatesNothing",
    "ValidatesWhatItWrites",
]


# --- mistakes that one caller sees ------------------------------------------------------------------------------------
class _Rewritten(MemoryBackend):
    """A database that carries out other commits than it is given."""

    def rewrite(self, commit: Commit) -> Commit:
        return commit

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return super().commit_group([self.rewrite(commit) for commit in commits])


class ValidatesNothing(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return commit if commit.inserts.keys() & commit.reads.keys() else replace(commit, reads={})


class ValidatesWhatItWrites(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        written = {*commit.puts, *commit.inserts, *commit.deletes, *commit.adds}
        return replace(commit, reads={key: version for key, version in commit.reads.items() if key in written})


class ValidatesNoAbsence(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, reads={key: version for key, version in commit.reads.items() if version != ABSENT})


class InsertsAreGuesses(_Rewritten):
    """A database that overwrites what is there."""

    def rewrite(self, commit: Commit) -> Commit:
        clash = commit.puts.keys() & commit.inserts.keys()
        return commit if clash else replace(commit, puts={**commit.puts, **commit.inserts}, inserts={})


class CountsNothing(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, ranges=())


class ChecksNothing(ValidatesNothing):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(super().rewrite(commit), ranges=())


class CountsItsOwnWrites(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        new = {*commit.inserts, *commit.puts, *commit.adds} - self.get_many([*commit.puts, *commit.adds]).keys()
        return replace(
            commit,
            ranges=[
                replace(one, count=one.count - sum(one.start <= key < one.end for key in new)) for one in commit.ranges
            ],
        )


class CountsAtLeast(_Rewritten):
    """A database that looks whether there are enough records, as if ranges only grew."""

    def rewrite(self, commit: Commit) -> Commit:
        counts = [len(self.scan(one.start, one.end, 10**6).records) for one in commit.ranges]
        ranges = [replace(one, count=max(one.count, now)) for one, now in zip(commit.ranges, counts, strict=True)]
        return replace(commit, ranges=ranges)


class ReadsReserve(_Rewritten):
    """A database that creates the records whose absence was read, in order to lock them, and shows them."""

    def rewrite(self, commit: Commit) -> Commit:
        absent = [key for key, version in commit.reads.items() if version == ABSENT and 0 < len(key) <= 1024]
        for key in absent:
            if key not in self.get_many([key]):
                self._set(key, Record(ABSENT, b""))
        return commit


class ForgetsBounds(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, bounds=[one for one in commit.bounds if one.key not in commit.adds])


class BoundsTheOldNumber(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        bounds = [replace(one, most=one.most + commit.adds.get(one.key, 0)) for one in commit.bounds]
        return replace(commit, bounds=bounds)


class _AnswersOtherwise(MemoryBackend):
    """A database whose outcomes are changed, or that does more after them."""

    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        return outcomes

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self.after(commits, super().commit_group(commits))


class LeavesFailedInserts(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        for commit, outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, Conflict):
                new = commit.inserts.keys() - self.get_many(commit.inserts).keys()
                super().commit_group([Commit(inserts={key: commit.inserts[key] for key in new})])
        return outcomes


class ConflictsAreNameless(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        return [Conflict(()) if isinstance(one, Conflict) else one for one in outcomes]


class FailsGroupsAsOne(MemoryBackend):
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        with self._lock:
            before = dict(self._records), list(self._keys)
            outcomes = super().commit_group(commits)
            found = [one for one in outcomes if isinstance(one, Conflict)]
            if found:
                self._records, self._keys = before
                return [found[0]] * len(outcomes)
            return outcomes


class CountsVersions(MemoryBackend):
    """A database that numbers the versions of each record, and begins anew after a delete."""

    def _set(self, key: bytes, record: Record | None) -> None:
        if record is not None:
            old = self._records.get(key)
            record = replace(record, version=1 if old is None else old.version + 1)
        super()._set(key, record)


class PutsKeepNumbers(MemoryBackend):
    def _set(self, key: bytes, record: Record | None) -> None:
        if record is not None and record.number == 0 and key in self._records:
            record = replace(record, number=self._records[key].number)
        super()._set(key, record)


class AddsDropValues(MemoryBackend):
    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key, replace(record, value=b"") if record is not None and record.number else record)


class PadsKeys(MemoryBackend):
    """A database like MySQL with a collation for text: case and trailing spaces do not count."""

    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key.rstrip(b" ").lower(), record)

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = super().get_many({key.rstrip(b" ").lower() for key in keys})
        return {key: found[folded] for key in keys if (folded := key.rstrip(b" ").lower()) in found}


class IncludesTheEnd(MemoryBackend):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return super().scan(start, end + b"\0", limit, guards)


class AlwaysHasMore(MemoryBackend):
    """A database that takes a full page for a sign of more."""

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        page = super().scan(start, end, limit, guards)
        return replace(page, more=len(page.records) == limit)


class GuardsInRangeOnly(MemoryBackend):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return super().scan(start, end, limit, [key for key in guards if start <= key < end])


class Truncates(MemoryBackend):
    """A database with smaller limits, which it does not tell."""

    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key, replace(record, value=record.value[: 1 << 20]) if record is not None else None)


class LocksNothingButReads(MemoryBackend):
    """A database whose locked transactions apply what is no longer true."""

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with super().begin_locking_transaction() as transaction:
            shown = transaction

        class Blind:
            read = staticmethod(shown.read)
            scan = staticmethod(shown.scan)

            @staticmethod
            def apply(commit: Commit) -> Outcome:
                return shown.apply(replace(commit, reads={}))

        yield Blind()


class FlushesByWriting(MemoryBackend):
    """A database that writes its records again in order to flush them, and makes all that was read invalid."""

    def make_durable(self) -> None:
        for key, record in list(self._records.items()):
            if record.version:
                self.commit(Commit(puts={key: record.value}))


class FlushesOnce(MemoryBackend):
    """A database that cannot flush if nothing was committed since."""

    _is_clean = True

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._is_clean = False
        return super().commit_group(commits)

    def make_durable(self) -> None:
        if self._is_clean:
            raise UnavailableError("there is nothing to flush")
        self._is_clean = True


class FlushesWhatIsOpen(MemoryBackend):
    """A database whose flush ends the locked transactions that are open."""

    _flushes = 0

    def make_durable(self) -> None:
        self._flushes += 1

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        flushes = self._flushes
        with super().begin_locking_transaction() as transaction:
            shown = transaction

        class Ended:
            scan = staticmethod(shown.scan)

            @staticmethod
            def read(keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
                return shown.read(keys, exclusive=exclusive) if self._flushes == flushes else {}

            @staticmethod
            def apply(commit: Commit) -> Outcome:
                return shown.apply(commit) if self._flushes == flushes else Conflict(tuple(commit.reads))

        yield Ended()


class SnapshotsMove(MemoryBackend):
    @contextmanager
    def snapshot(self) -> Iterator[MemoryBackend]:
        yield self


# --- mistakes that only several callers see ---------------------------------------------------------------------------
class InSteps(MemoryBackend):
    """A database that gives its lock away between two steps of a call; there, callers wait a moment for each other."""

    def __init__(self) -> None:
        super().__init__()
        self._together = threading.Barrier(2)

    def pause(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self._together.wait(0.02)
        self._together.reset()


class JudgesThenApplies(InSteps):
    """A database that validates under READ COMMITTED, without locks, and then writes."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        copy = MemoryBackend()
        with self._lock:
            copy._records, copy._keys = dict(self._records), list(self._keys)
        outcomes = copy.commit_group(commits)
        self.pause()
        with self._lock:
            for commit, outcome in zip(commits, outcomes, strict=True):
                if isinstance(outcome, Committed):
                    for key in {*commit.puts, *commit.inserts, *commit.deletes, *commit.adds}:
                        self._set(key, copy._records.get(key))
        return outcomes


class ReadsOneByOne(InSteps):
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found: dict[bytes, Record] = {}
        for number, key in enumerate(keys):
            if number and len(keys) < 10:
                self.pause()
            found.update(super().get_many([key]))
        return found


class ReadsGuardsLater(InSteps):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        page = super().scan(start, end, limit)
        self.pause()
        return replace(page, guards=self.get_many(guards))


class AddsConflict(InSteps):
    """A database that carries out an add as a read and a write."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        seen = [self.get_many(commit.adds) for commit in commits]
        self.pause()
        with self._lock:
            for commit, records in zip(commits, seen, strict=True):
                changed = [key for key in commit.adds if self._records.get(key) != records.get(key)]
                if changed:
                    return [Conflict(tuple(sorted(changed)))] * len(commits)
            return super().commit_group(commits)


class FlushesItsOwnWrites(InSteps):
    """A database that flushes a copy of its records, and goes on with it: commits beside the flush are lost."""

    def make_durable(self) -> None:
        with self._lock:
            copy = dict(self._records), list(self._keys)
        self.pause()
        with self._lock:
            self._records, self._keys = copy


class LocksAfterReading(InSteps):
    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with super().begin_locking_transaction() as transaction:
            shown, pause = transaction, self.pause

        class Late:
            scan = staticmethod(shown.scan)
            apply = staticmethod(shown.apply)

            @staticmethod
            def read(keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
                found = shown.read(keys, exclusive=exclusive)
                pause()
                return found

        yield Late()


class Lags(MemoryBackend):
    """A second handle that reads from a copy which is behind."""

    def __init__(self, leader: MemoryBackend) -> None:
        super().__init__()
        self._leader = leader

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = super().get_many(keys)
        with self._leader._lock:
            now = dict(self._leader._records), list(self._leader._keys)
        with self._lock:
            self._records, self._keys = now
        return found

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._leader.commit_group(commits)
