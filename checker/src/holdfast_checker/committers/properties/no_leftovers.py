"""Check that no pending upload and no hidden file of a job remains after recovery."""

from __future__ import annotations

from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def no_leftovers(sandbox: Sandbox) -> Property:
    """Return the property that after recovery no store contains an upload or a hidden file with the job's id."""

    def end(view: View) -> str | None:
        job = cluster_of(view).job
        if job is None:
            return None
        settled = sandbox.settled(view)
        left = settled.left(job.job)
        if not left:
            return None
        did = "; ".join(settled.recovered) or "it found nothing to do"
        return f"after recovery {left[0]} is left (recovery: {did})"

    return Property(
        name="no-leftovers",
        title="no leftovers",
        meaning="no pending upload and no hidden file of a job remains after recovery",
        end=end,
    )
