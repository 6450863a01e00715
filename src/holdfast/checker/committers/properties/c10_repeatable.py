"""C10: every step can be run again."""

from __future__ import annotations

from holdfast.checker.committers.ledger import ledger_in
from holdfast.checker.committers.output import DESTINATION, HOME
from holdfast.checker.committers.property_support import was_told
from holdfast.checker.committers.sandbox import Copy, Sandbox, cluster_of
from holdfast.checker.kernel.world import Property, View
from holdfast.commit import JobOutcome, layout
from holdfast.errors import FencedError, OutcomeUnknownError

__all__ = ["repeatable"]


def repeatable(sandbox: Sandbox) -> Property:
    """Recovery that has ended finds nothing to do. A commit or an abort that is asked for again, by a process that
    comes later, has the outcome that was told before, and changes nothing that is visible; nor does an abort of a job
    that is committed. Of a job that the log has forgotten it may be said that nobody knows how it ended."""

    def end(view: View) -> str | None:
        if sandbox.again(sandbox.settled(view)).recover():
            return "recovery, run again when it had nothing to do, changes the store"
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
                return f"the job's {word}, run again, fails: {outcome.message}"
            if outcome.committed != committed:
                return f"the job's {word}, run again, says that it is {'not ' if committed else ''}committed"
            if copy.visible() != before:
                return f"the job's {word}, run again, changes what is visible"
        return None

    return Property(
        name="C10",
        title="repeatable",
        meaning="every step can be run again",
        end=end,
    )


def _is_forgotten(view: View, settled: Copy, base_seq: int) -> bool:
    """Whether the log does not reach back any more to where it was when the job began."""
    kept = settled.stores[DESTINATION].image().objects
    keys = {HOME + layout.log_entry(one.seq): one for one in ledger_in(view, DESTINATION).decisions}
    return any(one.seq > base_seq and (key not in kept or kept[key].data != one.data) for key, one in keys.items())
