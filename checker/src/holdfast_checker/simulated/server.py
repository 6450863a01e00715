"""Define what happens to a simulated database without its callers: crashes, late commits, and the time that passes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from holdfast_checker.histories.history import mark
from holdfast_checker.histories.linearizable import CRASH
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import Actor, Port
from holdfast_checker.simulated.database import DATABASE


def server(budgets: Mapping[Fault, int], crashes: int, *, marks: bool) -> list[Actor]:
    """Return the actors of a database server: one for each commit that may arrive late, and one for each crash.

    Args:
        marks: whether the history of the world tells when a crash has lost commits.
    """
    crash = _crash_and_mark if marks else _crash
    return [
        *(Actor(numbered("network", each), network, mortal=False) for each in range(budgets.get(Fault.LOST_REPLY, 0))),
        *(Actor(numbered("database", each), crash, mortal=False) for each in range(crashes)),
    ]


def numbered(name: str, number: int) -> str:
    """Return the name of one of several actors: ``network``, ``network 1``."""
    return f"{name} {number}" if number else name


def network(port: Port) -> None:
    """Run the network: an actor that delivers a late commit, for which its caller no longer waits."""
    port.call(Call(DATABASE, "carry_out"))


def _crash(port: Port) -> object:
    """As the database, crash, and lose any number of the newest commits that are not durable; return the number."""
    return port.call(Call(DATABASE, "crash"))


def _crash_and_mark(port: Port) -> None:
    lost = _crash(port)
    if lost:
        mark(port, CRASH, lost)


CLOCK = "clock"


class TimeSource:
    """The time that all processes of a world share, as a resource: `now` reads it, and `pass` advances it.

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
