"""Check that the destination is the result of its log's decisions, carried out one after another."""

from __future__ import annotations

from holdfast_checker.committers.log_judge import Judge
from holdfast_checker.committers.output import DESTINATION
from holdfast_checker.committers.property_support import just_told
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def log_order(sandbox: Sandbox) -> Property:
    """Return the property that every state of a destination with a log is one that the sequential model allows.

    The property judges listings, reads, the outcomes that jobs learn, and ``_SUCCESS``, which must report the newest
    published decision and never return to an earlier one. After the history and recovery, every decision must be
    carried out, and it must be possible to commit another job.
    """
    judge = Judge(sandbox) if sandbox.keeps_log else None

    def step(before: View, after: View, actor: str) -> str | None:
        assert judge is not None
        if before.states[DESTINATION] is not after.states[DESTINATION]:
            words = judge.state(after) or judge.success_goes_back(before, after)
            if words:
                return words
        if cluster_of(before).told is cluster_of(after).told:
            return None
        return next((words for told in just_told(before, after) if (words := judge.told(after, told))), None)

    def end(view: View) -> str | None:
        assert judge is not None
        return judge.end(view) or None

    return Property(
        name="log-order",
        title="log order",
        meaning="the destination is the result of its log's decisions, carried out one after the other",
        step=step if judge else None,
        end=end if judge else None,
    )
