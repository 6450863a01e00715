"""Test the runner that is shipped for other packages' transaction stores: each kind of mistake makes checks fail."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from holdfast.errors import UnavailableError
from holdfast.transactions.base import (
    ABSENT,
    AlreadyDone,
    Commit,
    Committed,
    Conflict,
    LockedTransaction,
    Outcome,
    Record,
    ScanPage,
)
from holdfast.transactions.conformance import Check, Subject, checks_for, run_conformance, subject_of
from holdfast.transactions.memory.store import MemoryTransactionStore


def test_report_of_a_right_store() -> None:
    report = run_conformance(MemoryTransactionStore(), rounds=2)
    assert report.passed, str(report)
    assert len(report.results) == len(checks_for(MemoryTransactionStore))
    assert all(line.startswith("ok ") for line in str(report).splitlines())


def test_checks_follow_methods() -> None:
    class Least:
        get_many = MemoryTransactionStore.get_many
        scan = MemoryTransactionStore.scan
        commit = MemoryTransactionStore.commit
        commit_group = MemoryTransactionStore.commit_group
        close = MemoryTransactionStore.close

    names = {check.name for check in checks_for(Least)}
    more = {check.name for check in checks_for(MemoryTransactionStore)} - names
    assert {"check_get_many", "check_increment_race"} <= names
    assert {"check_locked_rollback", "check_snapshot"} <= more
    assert all("locked" in name or "snapshot" in name for name in more)


def test_a_store_that_ends_is_not_asked_on() -> None:
    class Ends(MemoryTransactionStore):
        calls = 0

        def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
            self.calls += 1
            if self.calls > 40:
                raise UnavailableError("the store has ended")
            return super().get_many(keys)

    store = Ends()
    with pytest.raises(UnavailableError):
        run_conformance(store, rounds=2)
    assert store.calls < 60


def test_declared_deviations_have_to_be_there() -> None:
    report = run_conformance(MemoryTransactionStore(), rounds=1, deviations={"check_puts": "none"})
    assert not report.passed
    assert "check_puts: passes, despite the declared deviation: none" in str(report)


# --- mistakes that one caller sees ------------------------------------------------------------------------------------
class _Rewritten(MemoryTransactionStore):
    """A store that carries out other commits than it is given."""

    def rewrite(self, commit: Commit) -> Commit:
        return commit

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return super().commit_group([self.rewrite(commit) for commit in commits])


class _ValidatesNothing(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return commit if commit.inserts.keys() & commit.reads.keys() else replace(commit, reads={})


class _ValidatesWhatItWrites(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        written = {*commit.puts, *commit.inserts, *commit.deletes, *commit.adds}
        return replace(commit, reads={key: version for key, version in commit.reads.items() if key in written})


class _ValidatesNoAbsence(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, reads={key: version for key, version in commit.reads.items() if version != ABSENT})


class _InsertsAreGuesses(_Rewritten):
    """A store that overwrites what is there."""

    def rewrite(self, commit: Commit) -> Commit:
        clash = commit.puts.keys() & commit.inserts.keys()
        return commit if clash else replace(commit, puts={**commit.puts, **commit.inserts}, inserts={})


class _CountsNothing(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, ranges=())


class _CountsItsOwnWrites(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        new = {*commit.inserts, *commit.puts, *commit.adds} - self.get_many([*commit.puts, *commit.adds]).keys()
        return replace(
            commit,
            ranges=[
                replace(one, count=one.count - sum(one.start <= key < one.end for key in new)) for one in commit.ranges
            ],
        )


class _CountsAtLeast(_Rewritten):
    """A store that looks whether there are enough records, as if ranges only grew."""

    def rewrite(self, commit: Commit) -> Commit:
        counts = [len(self.scan(one.start, one.end, 10**6).records) for one in commit.ranges]
        ranges = [replace(one, count=max(one.count, now)) for one, now in zip(commit.ranges, counts, strict=True)]
        return replace(commit, ranges=ranges)


class _ReadsReserve(_Rewritten):
    """A store that creates the records whose absence was read, in order to lock them, and shows them."""

    def rewrite(self, commit: Commit) -> Commit:
        absent = [key for key, version in commit.reads.items() if version == ABSENT and 0 < len(key) <= 1024]
        for key in absent:
            if key not in self.get_many([key]):
                self._set(key, Record(ABSENT, b""))
        return commit


class _ForgetsBounds(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        return replace(commit, bounds=[one for one in commit.bounds if one.key not in commit.adds])


class _BoundsTheOldNumber(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        bounds = [replace(one, most=one.most + commit.adds.get(one.key, 0)) for one in commit.bounds]
        return replace(commit, bounds=bounds)


class _ForgetsProgress(_Rewritten):
    def rewrite(self, commit: Commit) -> Commit:
        owner = commit.progress.owner if commit.progress else b""
        kept = not owner or owner in commit.reads or owner in commit.puts or not 0 < len(owner) <= 1024
        return commit if kept else replace(commit, progress=None)


class _AnswersOtherwise(MemoryTransactionStore):
    """A store whose outcomes are changed, or that does more after them."""

    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        return outcomes

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self.after(commits, super().commit_group(commits))


class _LeavesFailedInserts(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        for commit, outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, Conflict):
                new = commit.inserts.keys() - self.get_many(commit.inserts).keys()
                super().commit_group([Commit(inserts={key: commit.inserts[key] for key in new})])
        return outcomes


class _ProgressesInConflicts(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        for commit, outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, Conflict) and commit.progress is not None:
                super().commit_group([Commit(progress=commit.progress)])
        return outcomes


class _ConflictsAreNameless(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        return [Conflict(()) if isinstance(one, Conflict) else one for one in outcomes]


class _TellsTheNumberAskedFor(_AnswersOtherwise):
    def after(self, commits: Sequence[Commit], outcomes: list[Outcome]) -> list[Outcome]:
        return [
            AlreadyDone(commit.progress.number) if commit.progress and isinstance(one, AlreadyDone) else one
            for commit, one in zip(commits, outcomes, strict=True)
        ]


class _FailsGroupsAsOne(MemoryTransactionStore):
    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        with self._lock:
            before = dict(self._records), list(self._keys)
            outcomes = super().commit_group(commits)
            found = [one for one in outcomes if isinstance(one, Conflict)]
            if found:
                self._records, self._keys = before
                return [found[0]] * len(outcomes)
            return outcomes


class _CountsVersions(MemoryTransactionStore):
    """A store that numbers the versions of each record, and begins anew after a delete."""

    def _set(self, key: bytes, record: Record | None) -> None:
        if record is not None:
            old = self._records.get(key)
            record = replace(record, version=1 if old is None else old.version + 1)
        super()._set(key, record)


class _PutsKeepNumbers(MemoryTransactionStore):
    def _set(self, key: bytes, record: Record | None) -> None:
        if record is not None and record.number == 0 and key in self._records:
            record = replace(record, number=self._records[key].number)
        super()._set(key, record)


class _AddsDropValues(MemoryTransactionStore):
    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key, replace(record, value=b"") if record is not None and record.number else record)


class _PadsKeys(MemoryTransactionStore):
    """A store like MySQL with a collation for text: case and trailing spaces do not count."""

    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key.rstrip(b" ").lower(), record)

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = super().get_many({key.rstrip(b" ").lower() for key in keys})
        return {key: found[folded] for key in keys if (folded := key.rstrip(b" ").lower()) in found}


class _IncludesTheEnd(MemoryTransactionStore):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return super().scan(start, end + b"\0", limit, guards)


class _AlwaysHasMore(MemoryTransactionStore):
    """A store that takes a full page for a sign of more."""

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        page = super().scan(start, end, limit, guards)
        return replace(page, more=len(page.records) == limit)


class _GuardsInRangeOnly(MemoryTransactionStore):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return super().scan(start, end, limit, [key for key in guards if start <= key < end])


class _Truncates(MemoryTransactionStore):
    """A store with smaller limits, which it does not tell."""

    def _set(self, key: bytes, record: Record | None) -> None:
        super()._set(key, replace(record, value=record.value[: 1 << 20]) if record is not None else None)


class _LocksNothingButReads(MemoryTransactionStore):
    """A store whose locked transactions apply what is no longer true."""

    @contextmanager
    def locked(self) -> Iterator[LockedTransaction]:
        with super().locked() as transaction:
            shown = transaction

        class Blind:
            read = staticmethod(shown.read)
            scan = staticmethod(shown.scan)

            @staticmethod
            def apply(commit: Commit) -> Outcome:
                return shown.apply(replace(commit, reads={}))

        yield Blind()


class _SnapshotsMove(MemoryTransactionStore):
    @contextmanager
    def snapshot(self) -> Iterator[MemoryTransactionStore]:
        yield self


_ALONE: Mapping[type[MemoryTransactionStore], set[str]] = {
    _ValidatesNothing: {"check_puts", "check_adds", "check_pairs_in_order", "check_aba", "check_random_commits"},
    _ValidatesWhatItWrites: {"check_absent_reads", "check_conflict_changes_nothing", "check_guard_is_read_too"},
    _ValidatesNoAbsence: {"check_absent_reads", "check_skew_through_absence", "check_group_reads"},
    _InsertsAreGuesses: {"check_inserts", "check_failed_inserts_are_undone", "check_pairs_in_order"},
    _CountsNothing: {"check_counts", "check_phantom", "check_pairs_in_order", "check_large_counts"},
    _CountsItsOwnWrites: {"check_count_before_own_writes"},
    _CountsAtLeast: {"check_counts", "check_large_counts", "check_phantom"},
    _ReadsReserve: {"check_absent_reads", "check_absent_reads_leave_nothing", "check_all_at_once"},
    _ForgetsBounds: {"check_bounds", "check_bounds_in_order", "check_bound_race"},
    _BoundsTheOldNumber: {"check_bounds", "check_bounds_in_order", "check_pairs_in_order"},
    _ForgetsProgress: {"check_progress", "check_done_before_conflict", "check_progress_twins"},
    _LeavesFailedInserts: {"check_failed_inserts_are_undone", "check_conflict_in_huge_commit", "check_inserts"},
    _ProgressesInConflicts: {"check_conflict_makes_no_progress", "check_conflict_changes_nothing"},
    _ConflictsAreNameless: {"check_inserts", "check_handles"},
    _TellsTheNumberAskedFor: {"check_progress"},
    _FailsGroupsAsOne: {"check_conflict_costs_its_caller", "check_failed_inserts_are_undone", "check_random_groups"},
    _CountsVersions: {"check_aba", "check_versions"},
    _PutsKeepNumbers: {"check_puts", "check_random_commits"},
    _AddsDropValues: {"check_adds", "check_value_limits"},
    _PadsKeys: {"check_similar_keys", "check_binary_keys"},
    _IncludesTheEnd: {"check_scan", "check_binary_keys", "check_counts"},
    _AlwaysHasMore: {"check_scan_pages"},
    _GuardsInRangeOnly: {"check_scan_guards"},
    _Truncates: {"check_value_limits"},
    _LocksNothingButReads: {"check_locked_conflict"},
    _SnapshotsMove: {"check_snapshot", "check_two_snapshots"},
}


@pytest.mark.parametrize("kind", _ALONE, ids=lambda kind: kind.__name__.strip("_"))
def test_a_mistake_is_found(kind: type[MemoryTransactionStore]) -> None:
    checks = {check.name: check for check in checks_for(kind)}
    for name in _ALONE[kind]:
        assert _fails(checks[name], kind()), f"{name} passes"


def _fails(check: Check[Subject], store: MemoryTransactionStore, rounds: int = 3) -> bool:
    try:
        check.run(subject_of(check, store, rounds=rounds))
    except (AssertionError, KeyError, IndexError):
        return True
    return False


# --- mistakes that only several callers see ---------------------------------------------------------------------------
class _InSteps(MemoryTransactionStore):
    """A store that gives its lock away between two steps of a call; there, callers wait a moment for each other."""

    def __init__(self) -> None:
        super().__init__()
        self._together = threading.Barrier(2)

    def pause(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self._together.wait(0.02)
        self._together.reset()


class _JudgesThenApplies(_InSteps):
    """A store that validates under READ COMMITTED, without locks, and then writes."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        copy = MemoryTransactionStore()
        with self._lock:
            copy._records, copy._keys = dict(self._records), list(self._keys)
        outcomes = copy.commit_group(commits)
        self.pause()
        with self._lock:
            for commit, outcome in zip(commits, outcomes, strict=True):
                if isinstance(outcome, Committed):
                    for key in {*commit.puts, *commit.inserts, *commit.deletes, *commit.adds}:
                        self._set(key, copy._records.get(key))
                    if commit.progress is not None:
                        self._set(commit.progress.owner, copy._records[commit.progress.owner])
        return outcomes


class _ReadsOneByOne(_InSteps):
    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found: dict[bytes, Record] = {}
        for number, key in enumerate(keys):
            if number and len(keys) < 10:
                self.pause()
            found.update(super().get_many([key]))
        return found


class _ReadsGuardsLater(_InSteps):
    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        page = super().scan(start, end, limit)
        self.pause()
        return replace(page, guards=self.get_many(guards))


class _AddsConflict(_InSteps):
    """A store that carries out an add as a read and a write."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        seen = [self.get_many(commit.adds) for commit in commits]
        self.pause()
        with self._lock:
            for commit, records in zip(commits, seen, strict=True):
                changed = [key for key in commit.adds if self._records.get(key) != records.get(key)]
                if changed:
                    return [Conflict(tuple(sorted(changed)))] * len(commits)
            return super().commit_group(commits)


class _LocksAfterReading(_InSteps):
    @contextmanager
    def locked(self) -> Iterator[LockedTransaction]:
        with super().locked() as transaction:
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


_TOGETHER: Mapping[type[_InSteps], set[str]] = {
    _JudgesThenApplies: {
        *("check_increment_race", "check_insert_race", "check_skew_race", "check_skew_through_absence_race"),
        *("check_phantom_race", "check_bound_race", "check_add_race", "check_progress_twins"),
    },
    _ReadsOneByOne: {"check_get_many_is_a_snapshot"},
    _ReadsGuardsLater: {"check_scan_is_a_snapshot"},
    _AddsConflict: {"check_add_race", "check_group_race"},
    _LocksAfterReading: {"check_locked_increment_race"},
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in _TOGETHER.items() for name in sorted(names)]
)
def test_a_race_is_found(kind: type[_InSteps], name: str) -> None:
    [check] = [check for check in checks_for(kind) if check.name == name]
    assert any(_fails(check, kind(), rounds=10) for _ in range(20)), "whether a race shows depends on timing"


class _Lags(MemoryTransactionStore):
    """A second handle that reads from a copy which is behind."""

    def __init__(self, leader: MemoryTransactionStore) -> None:
        super().__init__()
        self._leader = leader

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = super().get_many(keys)
        with self._leader._lock, self._lock:
            self._records, self._keys = dict(self._leader._records), list(self._leader._keys)
        return found

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._leader.commit_group(commits)


def test_a_replica_that_lags_is_found() -> None:
    [check] = [check for check in checks_for(_Lags) if check.name == "check_read_after_commit"]
    leader = MemoryTransactionStore()
    with pytest.raises((AssertionError, KeyError)):
        check.run(subject_of(check, leader, _Lags(leader)))
