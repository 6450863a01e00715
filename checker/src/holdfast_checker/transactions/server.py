"""Define the actors that stand for the server of a simulated database: what it forgets, and what comes late."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.histories.history import mark
from holdfast_checker.histories.undone import CRASH
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.process import Actor, Port
from holdfast_checker.transactions.database import DATABASE


def server(budgets: Mapping[Fault, int], crashes: int, *, marks: bool) -> list[Actor]:
    """Return one actor for each reply that may be lost, whose commit may come late, and one for each crash.

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
    """As the network, deliver a commit that its caller no longer waits for."""
    port.call(Call(DATABASE, "carry_out"))


def _crash(port: Port) -> object:
    """As the database, crash, and lose any number of the newest commits that are not durable; return the number."""
    return port.call(Call(DATABASE, "crash"))


def _crash_and_mark(port: Port) -> None:
    lost = _crash(port)
    if lost:
        mark(port, CRASH, lost)
