"""Check C7: a job's commit, abort or clean-up never touches another job's pending or committed work."""

from __future__ import annotations

from holdfast.commit import SaveMode
from holdfast.errors import HoldfastError
from holdfast_checker.committers.output import of_job
from holdfast_checker.committers.property_support import just_told
from holdfast_checker.committers.sandbox import Bystander, Copy, Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def isolated(sandbox: Sandbox) -> Property:
    """Return the property C7: after the history, running jobs here and in a neighboring destination can still commit.

    Another job that runs concurrently from start to end, and meets no fault, succeeds as well; its committed files
    stay, unless jobs overwrite.
    """

    def step(before: View, after: View, actor: str) -> str | None:
        for told in just_told(before, after):
            mine = told.who in ("driver", "second driver", "reader") or "recovery" in told.who
            if sandbox.setting.calm and not mine and told.outcome != "committed":
                return f"another job on the destination, which met no fault, is not committed: {told.outcome}"
        return None

    def end(view: View) -> str | None:
        settled = sandbox.settled(view)
        kept = sandbox.setting.mode is SaveMode.APPEND and not sandbox.setting.replaces
        if kept and not of_job(settled.visible().values(), "other"):
            for told in cluster_of(view).told:
                if told.who == "other job" and told.outcome == "committed":
                    return "another job on the destination was told that it is committed, and its file is deleted"
        copy = sandbox.again(settled)
        return next((broke for one in sandbox.bystanders if (broke := _touched(copy, sandbox, one))), None)

    return Property(
        name="C7",
        title="isolated",
        meaning="commit, abort and cleanup never touch another job's work",
        step=step,
        end=end,
    )


def _touched(copy: Copy, sandbox: Sandbox, bystander: Bystander) -> str | None:
    ctx = copy.context(bystander.home)
    try:
        sandbox.setting.committer.commit_job(ctx, bystander.job, [bystander.commit], 1)
    except HoldfastError as error:
        return f"another live job, on {bystander.home}, can no longer commit: {error.message}"
    if not any(origin.job == "bystander" and not origin.damaged for origin in copy.visible(bystander.home).values()):
        return f"another live job, on {bystander.home}, has lost its file"
    return None
