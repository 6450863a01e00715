"""Simulate time that stands still, or jumps once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply

CLOCK = "clock"


class TimeSource:
    """A resource: the time, which all processes share. `now` reads it, and `pass` lets much time pass.

    Args:
        start_s: the time at the start, seconds since the epoch.
        jump_s: how much time passes at once.
    """

    def __init__(self, start_s: float, jump_s: float) -> None:
        self._start_s = start_s
        self._jump_s = jump_s

    def initial(self) -> float:
        return self._start_s

    def key(self, state: object) -> Hashable:
        return cast("float", state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation == "now":
            return [Alternative(state=state, reply=Reply(state))]
        after = cast("float", state) + self._jump_s
        return [Alternative(state=after, label="much later", fault=Fault.CLOCK)]

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access(CLOCK, "", writes=call.operation == "pass")})

    def waits_for(self, state: object, call: Call) -> None:
        return None

    def bury(self, state: object, actor: str) -> object:
        return state
