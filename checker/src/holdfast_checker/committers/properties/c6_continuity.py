"""Check C6: after a job's decision no slow or partitioned attempt or driver can change the destination."""

from __future__ import annotations

from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, of_main, was_told
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.kernel.world import Property, View


def continuity(sandbox: Sandbox) -> Property:
    """Return the property C6: once a driver is told that the job is committed, the job's visible files do not change.

    While the job's clean-up is pending, files may still appear, but none may disappear or change.
    """

    def step(before: View, after: View, actor: str) -> str | None:
        told = was_told(before, "committed")
        if not told:
            return None
        old, new = of_main(visible(before)), of_main(visible(after))
        changed = {path: origin for path, origin in old.items() if new.get(path) != origin}
        if changed:
            return f"{told[0].who} was told that the job is committed, and {actor} removes {in_words(changed.values())}"
        added = [origin for path, origin in new.items() if path not in old]
        if added and any(one.detail for one in told):
            return f"{told[0].who} was told that the job is committed, and {actor} adds {in_words(added)}"
        return None

    return Property(
        name="C6",
        title="continuity",
        meaning="after the decision no slow attempt or driver changes the destination",
        step=step,
    )
