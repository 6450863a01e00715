"""Check the output of a job in an experiment."""

from __future__ import annotations

from collections.abc import Callable

from holdfast_checker.committers.output import visible
from holdfast_checker.committers.property_support import in_words, winners
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.observed_cluster import observed
from holdfast_checker.kernel.world import View


# --- what is wrong with a job's output --------------------------------------------------------------------------------
def wrong_output(sandbox: Sandbox, view: View) -> str:
    """Describe how the output violates C1 or C2; empty if it does not."""
    for winner in winners(observed(view), visible(view), sandbox.setting.files):
        if winner.attempt is None:
            return f"the destination lacks {in_words(winner.missing)}"
        if winner.strange:
            more = in_words(winner.strange)
            return f"beside the files of attempt {winner.attempt} at task {winner.task} the destination shows {more}"
    return ""


def wrong_attempt(sandbox: Sandbox, view: View) -> str:
    """Describe how the output violates C1, C2 or C3; empty if it does not."""
    for winner in winners(observed(view), visible(view), sandbox.setting.files):
        if winner.attempt not in (None, winner.accepted):
            return f"the driver accepted attempt {winner.accepted}, and the files are those of attempt {winner.attempt}"
    return wrong_output(sandbox, view)


def wrong_end(
    sandbox: Sandbox, view: View, driver: str = "driver", wrong: Callable[[Sandbox, View], str] = wrong_output
) -> str:
    """Describe what is wrong at the end of a history in which the job must be committed; empty if nothing is."""
    told = observed(view).outcome_of(driver)
    if told != "committed":
        return f"{driver} was told that the job is {told or 'not over'}"
    return wrong(sandbox, view)
