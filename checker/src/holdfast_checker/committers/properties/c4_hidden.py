"""Check C4: nothing of a job is visible before its decision.

`whole_reads` checks that a reader never sees only part of a job.
"""

from __future__ import annotations

from holdfast_checker.committers.cluster import Phase
from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, of_main
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def hidden(sandbox: Sandbox) -> Property:
    """Return the property C4: until a driver starts to commit the job, a plain listing shows none of its files."""

    def step(before: View, after: View, actor: str) -> str | None:
        if cluster_of(after).phase is Phase.COMMITTING:
            return None
        there = of_main(visible(after))
        return (
            f"no driver has started to commit, and the destination shows {in_words(there.values())}" if there else None
        )

    return Property(
        name="C4",
        title="hidden",
        meaning="nothing of a job is visible before its decision",
        step=step,
    )
