"""Test the runner that is shipped for other packages' transaction stores: each kind of mistake makes checks fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Backend, Record
from holdfast.transactions.conformance import Check, Subject, checks_for, run_conformance, subject_of
from holdfast.transactions.memory import MemoryBackend
from tests.simulation.histories import wrong_backends as wrong


def test_report_of_a_right_store() -> None:
    report = run_conformance(MemoryBackend(), rounds=2)
    assert report.passed, str(report)
    assert len(report.results) == len(checks_for(MemoryBackend))
    assert all(line.startswith("ok ") for line in str(report).splitlines())


def test_checks_follow_methods() -> None:
    class Least(Backend):
        get_many = MemoryBackend.get_many
        scan = MemoryBackend.scan
        commit_group = MemoryBackend.commit_group

    names = {check.name for check in checks_for(Least)}
    more = {check.name for check in checks_for(MemoryBackend)} - names
    assert {"check_get_many", "check_increment_race"} <= names
    assert {"check_locked_rollback", "check_snapshot", "check_make_durable"} <= more
    assert all("locked" in name or "snapshot" in name or "durable" in name for name in more)


def test_a_store_that_ends_is_not_asked_on() -> None:
    class Ends(MemoryBackend):
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
    report = run_conformance(MemoryBackend(), rounds=1, deviations={"check_puts": "none"})
    assert not report.passed
    assert "check_puts: passes, despite the declared deviation: none" in str(report)


# --- mistakes that one caller sees ------------------------------------------------------------------------------------
_ALONE: Mapping[type[MemoryBackend], set[str]] = {
    wrong.ValidatesNothing: {"check_puts", "check_adds", "check_pairs_in_order", "check_aba", "check_random_commits"},
    wrong.ValidatesWhatItWrites: {"check_absent_reads", "check_conflict_changes_nothing", "check_guard_is_read_too"},
    wrong.ValidatesNoAbsence: {"check_absent_reads"},
    wrong.InsertsAreGuesses: {"check_inserts", "check_pairs_in_order"},
    wrong.CountsNothing: {"check_counts", "check_phantom", "check_pairs_in_order", "check_large_counts"},
    wrong.CountsItsOwnWrites: {"check_count_before_own_writes"},
    wrong.CountsAtLeast: {"check_counts", "check_large_counts", "check_phantom"},
    wrong.ReadsReserve: {"check_absent_reads", "check_absent_reads_leave_nothing", "check_all_at_once"},
    wrong.ForgetsBounds: {"check_bounds", "check_bounds_in_order", "check_bound_race"},
    wrong.BoundsTheOldNumber: {"check_bounds", "check_bounds_in_order", "check_pairs_in_order"},
    wrong.ForgetsProgress: {"check_progress", "check_done_before_conflict", "check_progress_twins"},
    wrong.LeavesFailedInserts: {"check_conflict_in_huge_commit", "check_inserts"},
    wrong.ProgressesInConflicts: {"check_conflict_makes_no_progress", "check_conflict_changes_nothing"},
    wrong.ConflictsAreNameless: {"check_inserts", "check_random_commits"},
    wrong.TellsTheNumberAskedFor: {"check_progress"},
    wrong.FailsGroupsAsOne: {
        "check_conflict_costs_its_caller",
        "check_random_groups",
    },
    wrong.CountsVersions: {"check_aba", "check_versions"},
    wrong.PutsKeepNumbers: {"check_puts", "check_random_commits"},
    wrong.AddsDropValues: {"check_adds", "check_value_limits"},
    wrong.PadsKeys: {"check_similar_keys", "check_binary_keys"},
    wrong.IncludesTheEnd: {"check_scan", "check_binary_keys", "check_counts"},
    wrong.AlwaysHasMore: {"check_scan_pages"},
    wrong.GuardsInRangeOnly: {"check_scan_guards"},
    wrong.Truncates: {"check_value_limits"},
    wrong.LocksNothingButReads: {"check_locked_conflict"},
    wrong.FlushesByWriting: {"check_make_durable"},
    wrong.FlushesOnce: {"check_make_durable"},
    wrong.FlushesWhatIsOpen: {"check_make_durable_in_locked_transactions"},
    wrong.SnapshotsMove: {"check_snapshot"},
}


@pytest.mark.parametrize("kind", _ALONE, ids=lambda kind: kind.__name__)
def test_a_mistake_is_found(kind: type[MemoryBackend]) -> None:
    checks = {check.name: check for check in checks_for(kind)}
    for name in _ALONE[kind]:
        assert _fails(checks[name], kind()), f"{name} passes"


def _fails(check: Check[Subject], store: MemoryBackend, rounds: int = 3) -> bool:
    try:
        check.run(subject_of(check, store, rounds=rounds))
    except (AssertionError, KeyError, IndexError, UnavailableError):
        return True
    return False


# --- mistakes that only several callers see ---------------------------------------------------------------------------
_TOGETHER: Mapping[type[wrong.InSteps], set[str]] = {
    wrong.JudgesThenApplies: {
        *("check_increment_race", "check_insert_race", "check_skew_race", "check_skew_through_absence_race"),
        *("check_phantom_race", "check_bound_race", "check_add_race", "check_progress_twins"),
    },
    wrong.ReadsOneByOne: {"check_get_many_is_a_snapshot"},
    wrong.ReadsGuardsLater: {"check_scan_is_a_snapshot"},
    wrong.AddsConflict: {"check_add_race", "check_group_race"},
    wrong.FlushesItsOwnWrites: {"check_make_durable_under_load"},
    wrong.LocksAfterReading: {"check_locked_mixed_race"},
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in _TOGETHER.items() for name in sorted(names)]
)
def test_a_race_is_found(kind: type[wrong.InSteps], name: str) -> None:
    [check] = [check for check in checks_for(kind) if check.name == name]
    assert any(_fails(check, kind(), rounds=10) for _ in range(20)), "whether a race shows depends on timing"


def test_a_replica_that_lags_is_found() -> None:
    [check] = [check for check in checks_for(wrong.Lags) if check.name == "check_read_after_commit"]
    leader = MemoryBackend()
    with pytest.raises((AssertionError, KeyError)):
        check.run(subject_of(check, leader, wrong.Lags(leader)))
