"""C9: kill any process at any store call; recovery ends with the job wholly there or wholly absent."""

from __future__ import annotations

from holdfast.checker.committers.property_support import in_words, of_main, winners
from holdfast.checker.committers.sandbox import Sandbox, cluster_of
from holdfast.checker.kernel.world import Property, View

__all__ = ["recoverable"]


def recoverable(sandbox: Sandbox) -> Property:
    """When nobody acts any more and recovery has run: every task has all the files of one attempt, or none has any."""

    def end(view: View) -> str | None:
        settled = sandbox.settled(view)
        found = of_main(settled.visible())
        if not found:
            return None
        for winner in winners(cluster_of(view), found, sandbox.setting.files):
            did = "; ".join(settled.recovered) or "it found nothing to do"
            if winner.attempt is None:
                return f"after recovery there is a part of the job: no {in_words(winner.missing)} (recovery: {did})"
            if winner.strange:
                return f"after recovery there is {in_words(winner.strange)} beside the job (recovery: {did})"
        return None

    return Property(
        name="C9",
        title="recoverable",
        meaning="whatever dies, recovery ends with the job wholly there or wholly absent",
        end=end,
    )
