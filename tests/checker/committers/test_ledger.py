"""What the checker knows of decisions whose marks it has not seen."""

from __future__ import annotations

from holdfast.commit import layout
from holdfast_checker.committers.ledger import DecisionLedger, LogDecision, extend_ledger
from holdfast_checker.committers.output import HOME
from holdfast_checker.simulated.memory import RestorableStore


def test_a_commit_that_recovery_has_published_and_trimmed_was_visible() -> None:
    """Defect: a read after recovery was said to show the files of a commit that was not visible."""
    store = RestorableStore()
    store.put(HOME + layout.log_entry_path(3), b"{}")
    decisions = tuple(
        LogDecision(seq, f"job {seq}", commits=commits, batch=None, data=b"")
        for seq, commits in ((1, True), (2, False))
    )
    after = extend_ledger(DecisionLedger(decisions=decisions), store.take_snapshot())
    assert [one.seq for one in after.decisions] == [1, 2, 3]
    assert (after.visible, after.done) == ((1,), (1, 2))
