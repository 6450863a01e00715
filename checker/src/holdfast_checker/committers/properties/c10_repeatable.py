"""Check C10: every step can be run again."""

from __future__ import annotations

from holdfast.commit import JobOutcome, layout
from holdfast.errors import FencedError, OutcomeUnknownError
from holdfast_checker.committers.ledger import ledger_in
from holdfast_checker.committers.output import DESTINATION, HOME
from holdfast_checker.committers.property_support import was_told
from holdfast_checker.committers.sandbox import Copy, Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def repeatable(sandbox: Sandbox) -> Property:
    """Return the property C10: to repeat recovery, a commit or an abort changes nothing.

    If a recovery found nothing to do, the next recovery finds nothing to do either. If a later process repeats a commit
    or an abort, the outcome is the one that was reported before, and nothing visible changes. An abort of a committed
    job does not change anything visible either. If the log has trimmed the job's decision, the answer may be that the
    outcome is unknown.
    """

    def end(view: View) -> str | None:
        if sandbox.again(sandbox.settled(view)).recover():
            return "recovery, repeated after it found nothing to do, changes the store"
        cluster = cluster_of(view)
        if cluster.job is None:
            return None
        forgotten = sandbox.keeps_log and _is_forgotten(view, sandbox.settled(view), cluster.job.base_seq)
        reports = [accepted[1] for accepted in cluster.accepted if accepted is not None]
        asked = []
        if was_told(view, "committed"):
            asked = [("commit", reports, True), ("abort", None, True)]
        elif was_told(view, "aborted"):
            asked = [("abort", None, False)]
        for word, given, committed in asked:
            copy = sandbox.again(sandbox.settled(view))
            before = copy.visible()
            outcome = copy.end(cluster.job, given)
            if forgotten and isinstance(outcome, FencedError | OutcomeUnknownError):
                continue
            if not isinstance(outcome, JobOutcome):
                return f"the job's {word}, repeated, fails: {outcome.message}"
            if outcome.committed != committed:
                return f"the job's {word}, repeated, reports that it is {'not ' if committed else ''}committed"
            if copy.visible() != before:
                return f"the job's {word}, repeated, changes what is visible"
        return None

    return Property(
        name="C10",
        title="repeatable",
        meaning="every step can be run again",
        end=end,
    )


def _is_forgotten(view: View, settled: Copy, base_seq: int) -> bool:
    """Check whether the log has trimmed a decision that was made after the job started."""
    kept = settled.stores[DESTINATION].image().objects
    keys = {HOME + layout.log_entry(one.seq): one for one in ledger_in(view, DESTINATION).decisions}
    return any(one.seq > base_seq and (key not in kept or kept[key].data != one.data) for key, one in keys.items())
