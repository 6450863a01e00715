"""Run single reads and blind writes of several records, and judge whether each record is a linearizable register."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Backend, Commit, Committed
from holdfast_checker.histories.history import Operation
from holdfast_checker.histories.linearizable import Linearizability, Model, Verdict, judge_linearizable
from tests.simulation.histories.told import Told, operations_of

__all__ = ["judge_registers", "run_registers"]

_KEYS = 6


def run_registers(backend: Backend, prefix: str, who: str, seed: int, count: int) -> list[Told]:
    """Read and write, one call after the other, and tell what was read and written."""
    chance, clock = SeededRandom(seed), Environment().clock
    told = []
    for number in range(count):
        number_of_key = chance.pick(range(_KEYS))
        key = f"{prefix}{number_of_key}".encode()
        value = f"{who}.{number}"
        began_s = clock.elapsed_s()
        clock.sleep(0)  # lets others run
        if chance.happens(0.4):
            outcome = backend.commit(Commit(puts={key: value.encode()}))
            assert isinstance(outcome, Committed), "a blind put never conflicts"
            told.append(Told(who, (("write", number_of_key, value),), (None,), began_s, clock.elapsed_s()))
            continue
        if chance.happens(0.5):
            record = backend.get_many([key]).get(key)
        else:
            record = dict(backend.scan(key, key + b"\0", 1).records).get(key)
        found = "" if record is None else record.value.decode()
        told.append(Told(who, (("read", number_of_key),), (found,), began_s, clock.elapsed_s()))
    return told


def _apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    return (state, state) if operation.name == "read" else (operation.args[1], None)


def judge_registers(told: Sequence[Told]) -> Verdict:
    """Judge whether each read returns the last value that was written before it, in an order that fits real time."""
    operations = operations_of(
        told, lambda one: {"name": one.steps[0][0], "args": one.steps[0][1:], "value": one.saw[0]}
    )
    keys = {operation.args[0] for operation in operations}
    verdicts = (
        judge_linearizable([one for one in operations if one.args[0] == key], Model(initial="", apply=_apply))
        for key in keys
    )
    return next((one for one in verdicts if one.answer is not Linearizability.YES), Verdict(Linearizability.YES))
