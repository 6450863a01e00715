"""Run transactions that append to lists and read them, and judge their histories for anomalies by name.

Every attempt is recorded, also those that conflict: nobody may ever see what they wrote.

Source: `tests.simulation.histories.anomalies.appends`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Backend, Committed
from holdfast.transactions.transaction import Transaction
from tests.simulation.histories.anomalies.appends import find_anomalies_of_appends
from tests.simulation.histories.anomalies.transactions import Anomaly, Read, Write, transactions_of
from tests.simulation.histories.told import Told, operations_of

__all__ = ["judge_lists", "run_lists"]

_KEYS = 5


def run_lists(backend: Backend, prefix: str, who: str, seed: int, count: int) -> list[Told]:
    """Run attempts, one after the other, and tell what each read and appended, and whether it took effect."""
    chance, clock = SeededRandom(seed), Environment().clock
    told = []
    for number in range(count):
        transaction = Transaction(backend)
        began_s = clock.elapsed_s()
        steps: list[tuple[object, ...]] = []
        for key in chance.shuffled(range(_KEYS))[: chance.pick((1, 2, 3))]:
            name = f"{prefix}{key}".encode()
            record = transaction.get(name)
            elements = record.value.decode().split(",") if record is not None else []
            steps.append(("read", key, tuple(elements)))
            clock.sleep(0)  # lets others run
            if chance.happens(0.6):
                element = f"{who}.{number}.{key}"
                transaction.put(name, ",".join([*elements, element]).encode())
                steps.append(("append", key, element))
        outcome = backend.commit(transaction.to_commit())
        told.append(Told(who, tuple(steps), (), began_s, clock.elapsed_s(), isinstance(outcome, Committed)))
    return told


def judge_lists(told: Sequence[Told]) -> list[Anomaly]:
    """Return what proves that the attempts that took effect were not strictly serializable."""
    operations = operations_of(
        told,
        lambda one: {
            "name": "transaction",
            "notes": tuple(
                Write(str(key), what) if kind == "append" else Read(str(key), what) for kind, key, what in one.steps
            ),
        },
    )
    return find_anomalies_of_appends(transactions_of(operations))
