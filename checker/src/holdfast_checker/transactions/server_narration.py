"""Put into words what happens to a simulated database, whatever it stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from holdfast_checker.histories.history import HISTORY
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.narrative.narrator import Act, Event, Weight
from holdfast_checker.transactions.database import DATABASE


def _carry_out(event: Event) -> Act:
    return Act(verb="delivers a commit for which nobody waits any longer", weight=Weight.TURN)


def _make_durable(event: Event) -> Act:
    return Act(verb="makes everything durable", weight=Weight.WORK)


def _crash(event: Event) -> Act:
    lost = cast("int | None", event.reply)
    words = "nothing" if not lost else "the newest commit" if lost == 1 else f"the newest {lost} commits"
    return Act(verb="crashes", tail=f", and loses {words}", weight=Weight.TURN)


def _mark(event: Event) -> Act:
    return Act(verb="is up again", weight=Weight.SMALL)


SERVER_CALLS: Mapping[tuple[str, str], Callable[[Event], Act]] = {
    (DATABASE, "carry_out"): _carry_out,
    (DATABASE, "make_durable"): _make_durable,
    (DATABASE, "crash"): _crash,
    (HISTORY, "mark"): _mark,
}
"""By resource and operation."""


def server_fault(event: Event) -> str:
    """Describe the fault of a call on the database."""
    if event.fault is Fault.LOST_REPLY:
        late = ", and the commit takes effect only later" if "later" in event.label else ""
        return f", but the reply is lost{late}"
    return ", but the request is lost" if event.label == "request lost" else ", but the call fails"
