"""Check C2: the destination holds nothing from any other attempt."""

from __future__ import annotations

from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, told_finished, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def exclusive(sandbox: Sandbox) -> Property:
    """Return the property C2: in a job reported as committed, no task has damaged files or files of two attempts."""

    def step(before: View, after: View, actor: str) -> str | None:
        told = told_finished(before, after)
        if not told:
            return None
        for winner in winners(cluster_of(after), visible(after), sandbox.setting.files):
            if winner.strange:
                return (
                    f"{told} was told that the job is committed, and beside the files of the attempt at task "
                    f"{winner.task} that counts the destination holds {in_words(winner.strange)}"
                )
        return None

    return Property(
        name="C2",
        title="exclusive",
        meaning="after a job commit the destination holds nothing from any other attempt",
        step=step,
    )
