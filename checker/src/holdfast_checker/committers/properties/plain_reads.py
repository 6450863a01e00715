"""Check that a plain reader never sees part of a job, on a store where a job is committed in one transaction (C4)."""

from __future__ import annotations

from typing import cast

from holdfast.stores.memory import MemoryImage
from holdfast_checker.committers.ledger import ledger_in
from holdfast_checker.committers.log_judge import submissions_of, success_seq
from holdfast_checker.committers.model import after_decisions
from holdfast_checker.committers.output import DESTINATION, visible, visible_in
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def plain_reads(sandbox: Sandbox) -> Property:
    """Return the property that in every state a plain listing shows the result of all decisions, and nothing else.

    A plain reader only lists; it knows nothing of the log. So no state may exist between a decision and its completion.
    ``_SUCCESS``, for which other tools wait, must report the newest commit. The property holds only for stores with
    transactions, so it judges no others.
    """
    transactions = sandbox.keeps_log and sandbox.setting.capabilities[DESTINATION].transactions

    def step(before: View, after: View, actor: str) -> str | None:
        if before.states[DESTINATION] is after.states[DESTINATION]:
            return None
        ledger = ledger_in(after, DESTINATION)
        commits = [one for one in ledger.decisions if one.commits]
        submissions = submissions_of(sandbox, cluster_of(after), ledger)
        if any(one.job not in submissions for one in commits):
            return None  # the log's order judges such a decision
        old = visible_in(cast("MemoryImage", sandbox.first(DESTINATION)))
        wanted, shown = after_decisions(old, commits, submissions), visible(after)
        made = f"after decision {commits[-1].seq}" if commits else "before any decision"
        for path in sorted(wanted.keys() | shown.keys()):
            if wanted.get(path) != shown.get(path):
                found = shown.get(path)
                return f"{made}, a plain listing " + (f"lacks {wanted[path]}" if found is None else f"shows {found}")
        reported = success_seq(cast("MemoryImage", after.states[DESTINATION]))
        if commits and reported != commits[-1].seq:
            return f"{made}, _SUCCESS " + ("does not exist" if reported is None else f"is that of decision {reported}")
        return None

    return Property(
        name="plain-reads",
        title="plain reads",
        meaning="on a store with transactions, a plain listing shows all of a job or nothing",
        step=step if transactions else None,
    )
