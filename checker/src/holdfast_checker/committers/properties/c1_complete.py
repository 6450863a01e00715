"""Check C1: after a successful job commit the destination holds every file of every committed task, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.committers.output import Origin, visible
from holdfast_checker.committers.property_support import in_words, told_finished, was_told, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def complete(sandbox: Sandbox) -> Property:
    """Return the property C1: for every task, all files of one attempt are visible. C3 says which attempt it must be.

    A job that is committed with its clean-up pending must be complete after recovery.
    """

    def lacking(view: View, found: Mapping[str, Origin]) -> str:
        missing = (winner.missing for winner in winners(cluster_of(view), found, sandbox.setting.files))
        return next((in_words(one) for one in missing if one), "")

    def step(before: View, after: View, actor: str) -> str | None:
        told = told_finished(before, after)
        lacks = lacking(after, visible(after)) if told else ""
        return f"{told} was told that the job is committed, and the destination lacks {lacks}" if lacks else None

    def end(view: View) -> str | None:
        told = was_told(view, "committed")
        lacks = lacking(view, sandbox.settled(view).visible()) if told else ""
        if not lacks:
            return None
        return f"{told[0].who} was told that the job is committed, and after recovery the destination lacks {lacks}"

    return Property(
        name="C1",
        title="complete",
        meaning="after a job commit the destination holds every file of every committed task, byte for byte",
        step=step,
        end=end,
    )
