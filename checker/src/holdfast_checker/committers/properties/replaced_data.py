"""Check that an overwrite never loses the data that it replaces before the new data is complete (C9)."""

from __future__ import annotations

from holdfast_checker.committers.output import of_job, visible
from holdfast_checker.committers.property_support import winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def replaced_data(sandbox: Sandbox) -> Property:
    """Return the property that in every state of an overwrite, all old files exist, or the new files of every task."""

    def step(before: View, after: View, actor: str) -> str | None:
        old, now = visible(before), visible(after)
        gone = of_job(old.values(), "old") - of_job(now.values(), "old")
        if not gone:
            return None
        if all(winner.attempt is not None for winner in winners(cluster_of(after), now, sandbox.setting.files)):
            return None
        return f"{actor} deletes data of an earlier job before its replacement is complete"

    return Property(
        name="replaced-data",
        title="replaced data survive",
        meaning="data that an overwrite replaces exists until its replacement is complete",
        step=step,
    )
