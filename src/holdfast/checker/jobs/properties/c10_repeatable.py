"""C10: every step can be run again."""

from __future__ import annotations

from holdfast.checker.jobs.bench import Bench, cluster_of
from holdfast.checker.jobs.judging import was_told
from holdfast.checker.kernel.world import Property, View
from holdfast.commit import JobOutcome

__all__ = ["repeatable"]


def repeatable(bench: Bench) -> Property:
    """Recovery that has ended finds nothing to do. A commit or an abort that is asked for again, by a process that
    comes later, has the outcome that was told before, and changes nothing that is visible; nor does an abort of a job
    that is committed."""

    def end(view: View) -> str | None:
        if bench.again(bench.settled(view)).recover():
            return "recovery, run again when it had nothing to do, changes the store"
        cluster = cluster_of(view)
        if cluster.job is None:
            return None
        reports = [accepted[1] for accepted in cluster.accepted if accepted is not None]
        asked = []
        if was_told(view, "committed"):
            asked = [("commit", reports, True), ("abort", None, True)]
        elif was_told(view, "aborted"):
            asked = [("abort", None, False)]
        for word, given, committed in asked:
            copy = bench.again(bench.settled(view))
            before = copy.visible()
            outcome = copy.end(cluster.job, given)
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
