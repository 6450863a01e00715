"""Simulate the environment of a database server: crashes, delayed commits, and the passing of time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from holdfast_checker.histories.history import record_event
from holdfast_checker.histories.linearizable import CRASH
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import Actor, Port
from holdfast_checker.simulated.database import DATABASE


def server_actors(budgets: Mapping[Fault, int], crashes: int, *, marks: bool) -> list[Actor]:
    """Return the actors that simulate a database server: one per commit that may arrive late, and one per crash.

    Args:
        budgets: `Fault.LOST_REPLY` limits the late commits.
        crashes: how often the database may crash.
        marks: whether crashes that lose commits are recorded in the world's history of operations.
    """
    crash = _crash_database_and_record if marks else _crash_database
    return [
        *(
            Actor(numbered_name("network", each), deliver_late_commit, mortal=False)
            for each in range(budgets.get(Fault.LOST_REPLY, 0))
        ),
        *(Actor(numbered_name("database", each), crash, mortal=False) for each in range(crashes)),
    ]


def numbered_name(name: str, number: int) -> str:
    """Return the name of actor `number` of several with the same role: ``network``, ``network 1``, ``network 2``."""
    return f"{name} {number}" if number else name


def deliver_late_commit(port: Port) -> None:
    """Deliver one delayed commit to the database, whose caller no longer waits for it: the program of an actor."""
    port.call(Call(DATABASE, "carry_out"))


def _crash_database(port: Port) -> object:
    """As the database, crash, and lose any number of the newest commits that are not durable; return the number."""
    return port.call(Call(DATABASE, "crash"))


def _crash_database_and_record(port: Port) -> None:
    lost = _crash_database(port)
    if lost:
        record_event(port, CRASH, lost)


CLOCK = "clock"


class SharedClockResource:
    """The time that all processes of a world share, as a resource: `now` reads it, and `pass` advances it.

    Args:
        start_s: the time at the start, seconds since the epoch.
        jump_s: how much time passes at once.
    """

    def __init__(self, start_s: float, jump_s: float) -> None:
        self._start_s = start_s
        self._jump_s = jump_s

    def initial_state(self) -> float:
        return self._start_s

    def state_key(self, state: object) -> Hashable:
        return cast("float", state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation == "now":
            return [Alternative(state=state, reply=Reply(state))]
        after = cast("float", state) + self._jump_s
        return [Alternative(state=after, label="much later", fault=Fault.CLOCK)]

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access(CLOCK, "", writes=call.operation == "pass")})

    def find_unblockers(self, state: object, call: Call) -> None:
        return None

    def state_after_death(self, state: object, actor: str) -> object:
        return state
