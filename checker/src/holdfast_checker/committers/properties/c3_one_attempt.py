"""Check C3: of each task, the attempt whose result the driver received counts, and no other."""

from __future__ import annotations

from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import told_finished, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def one_attempt(sandbox: Sandbox) -> Property:
    """Return the property C3: a job reported as committed shows, for each task, the files of the accepted attempt."""

    def step(before: View, after: View, actor: str) -> str | None:
        told = told_finished(before, after)
        if not told:
            return None
        for winner in winners(cluster_of(after), visible(after), sandbox.setting.files):
            if winner.attempt not in (None, winner.accepted):
                return (
                    f"{told} accepted attempt {winner.accepted} of task {winner.task}, and the destination holds the "
                    f"files of attempt {winner.attempt}"
                )
        return None

    return Property(
        name="C3",
        title="one attempt per task",
        meaning="the files of each task are those of the attempt whose result the driver received",
        step=step,
    )
