"""Check C9: if any process dies at any store call, recovery ends with all of the job visible, or nothing of it."""

from __future__ import annotations

from holdfast_checker.committers.property_support import in_words, of_main, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def recoverable(sandbox: Sandbox) -> Property:
    """Return the property C9: after recovery, all files of one attempt of every task are visible, or no file at all."""

    def end(view: View) -> str | None:
        settled = sandbox.settled(view)
        found = of_main(settled.visible())
        if not found:
            return None
        for winner in winners(cluster_of(view), found, sandbox.setting.files):
            did = "; ".join(settled.recovered) or "it found nothing to do"
            if winner.attempt is None:
                return f"after recovery the job is visible without {in_words(winner.missing)} (recovery: {did})"
            if winner.strange:
                return f"after recovery {in_words(winner.strange)} is visible beside the job (recovery: {did})"
        return None

    return Property(
        name="C9",
        title="recoverable",
        meaning="no matter what dies, recovery ends with all of the job visible, or nothing of it",
        end=end,
    )
