"""Check C5: after an abort nothing of the job ever appears."""

from __future__ import annotations

from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, of_main, was_told
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.kernel.world import Property, View


def abortable(sandbox: Sandbox) -> Property:
    """Return the property C5: once a driver is told that its job is aborted, none of the job's files is visible."""

    def step(before: View, after: View, actor: str) -> str | None:
        told = was_told(after, "aborted")
        there = of_main(visible(after)) if told else {}
        if not there:
            return None
        return f"{told[0].who} was told that the job is aborted, and the destination shows {in_words(there.values())}"

    return Property(
        name="C5",
        title="abortable",
        meaning="after an abort nothing of the job ever appears",
        step=step,
    )
