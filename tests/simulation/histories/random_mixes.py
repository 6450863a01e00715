"""Run random transactions concurrently, record what each saw, and judge whether some order of them explains it all.

The judge is that of the checker's worlds (`holdfast_checker.transactions.scripts`): the whole database is one object,
and each transaction is one operation on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.errors import TransactionConflictError
from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Backend
from holdfast.transactions.transaction import Transaction, run_transaction
from holdfast_checker.histories.linearizable import Model, Verdict, judge_linearizable
from holdfast_checker.transactions.scripts import ScriptLog, Step, apply_to_model, run_script
from tests.simulation.histories.told import Told, operations_of

__all__ = ["judge_mixes", "run_mixes"]

_KEYS = "0123"


def run_mixes(backend: Backend, prefix: str, who: str, seed: int, count: int) -> list[Told]:
    """Run random transactions, one after the other, and tell what they did."""
    chance = SeededRandom(seed)
    environment = Environment(chance=SeededRandom(seed + 1))
    told = []
    for number in range(count):
        script = _script(chance, f"{who}-{number}")
        attempts: list[tuple[float, ScriptLog]] = []

        def run(
            transaction: Transaction,
            script: Sequence[Step] = script,
            attempts: list[tuple[float, ScriptLog]] = attempts,
        ) -> None:
            attempts.append((environment.clock.elapsed_s(), ScriptLog()))
            run_script(transaction, script, attempts[-1][1], prefix=prefix, pause=partial(environment.clock.sleep, 0))

        try:
            run_transaction(backend, run, environment, attempts=50)
        except TransactionConflictError:
            continue
        began_s, played = attempts[-1]
        ended_s = environment.clock.elapsed_s()
        told.append(Told(who, tuple(played.steps), tuple(played.saw), began_s, ended_s))
    return told


def _script(chance: SeededRandom, name: str) -> list[Step]:
    """Draw what a transaction does; few keys mean many conflicts."""
    script: list[Step] = []
    for number in range(chance.pick(range(1, 6))):
        key, other = chance.shuffled(_KEYS)[:2]
        script.append(
            chance.pick(
                (
                    ("get", key),
                    ("get_many", key, other),
                    ("scan", *sorted((key, other)), chance.pick((None, 1, 2))),
                    ("scan", key, "4", None),
                    ("put", key, f"{name}.{number}"),
                    ("append", key, "+"),
                    ("create", key, f"{name}.{number}"),
                    ("delete", key),
                    ("add", key, chance.pick((1, 10, -3))),
                    ("add", key, 1),
                )
            )
        )
    return script


def judge_mixes(told: Sequence[Told], limit: int = 400_000) -> Verdict:
    """Judge whether some order of the transactions, which respects real time, explains what all of them saw."""
    operations = operations_of(told, lambda one: {"name": "transaction", "args": one.steps, "value": ("saw", one.saw)})
    return judge_linearizable(operations, Model(initial=(), apply=apply_to_model), limit=limit)
