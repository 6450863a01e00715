"""Each kind of mistake in a database of transactions makes checks of the suite fail."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.conformance import Check
from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.transactions.base import Backend
from holdfast.transactions.memory import MemoryBackend
from tests.conformance.backends.subject import Subject
from tests.conformance.backends.suite import checks_for, subject_of
from tests.simulation.histories import wrong_backends as wrong


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


# --- mistakes that one caller sees ------------------------------------------------------------------------------------
_MODEL = {"check_pairs_in_order", "check_random_commits"}
_ALONE: Mapping[type[MemoryBackend], set[str]] = {
    wrong.ValidatesNothing: {*_MODEL, "check_huge_commits", "check_locked_conflict"},
    wrong.ValidatesWhatItWrites: {*_MODEL, "check_random_groups"},
    wrong.ValidatesNoAbsence: {*_MODEL, "check_absent_reads_leave_nothing"},
    wrong.InsertsAreGuesses: {*_MODEL, "check_group_of_many"},
    wrong.CountsNothing: {*_MODEL, "check_huge_commits"},
    wrong.CountsItsOwnWrites: _MODEL,
    wrong.CountsAtLeast: {*_MODEL, "check_huge_commits"},
    wrong.ReadsReserve: {*_MODEL, "check_absent_reads_leave_nothing", "check_pairs_in_groups"},
    wrong.ForgetsBounds: {*_MODEL, "check_random_groups", "check_bound_race"},
    wrong.BoundsTheOldNumber: {*_MODEL, "check_random_groups"},
    wrong.LeavesFailedInserts: {*_MODEL, "check_group_of_many"},
    wrong.ConflictsAreNameless: {*_MODEL, "check_number_limits"},
    wrong.FailsGroupsAsOne: {"check_group_of_many", "check_random_groups", "check_pairs_in_groups"},
    wrong.CountsVersions: {*_MODEL, "check_versions"},
    wrong.PutsKeepNumbers: _MODEL,
    wrong.AddsDropValues: {"check_random_commits", "check_values"},
    wrong.PadsKeys: {"check_binary_keys"},
    wrong.IncludesTheEnd: {"check_scan", "check_binary_keys"},
    wrong.AlwaysHasMore: {"check_scan_pages"},
    wrong.GuardsInRangeOnly: {"check_scan_guards"},
    wrong.Truncates: {"check_values"},
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
    except (AssertionError, KeyError, IndexError, InvalidRequestError, UnavailableError):
        return True
    return False


# --- mistakes that only several callers see ---------------------------------------------------------------------------
_TOGETHER: Mapping[type[wrong.InSteps], set[str]] = {
    wrong.JudgesThenApplies: {
        *("check_increment_race", "check_insert_race", "check_skew_race"),
        *("check_phantom_race", "check_bound_race", "check_add_race"),
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
