"""Run random transactions concurrently, record what each saw, and judge whether some order of them explains it all.

The whole database is one object with a sequential model, and each transaction is one operation on it: its steps are the
arguments, and what it saw is the answer. So `judge_linearizable` decides whether the history is strictly serializable:
with blind writes, deletes, adds, absent records and ranges, which checkers of reads and writes do not know.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from holdfast.checker.histories.history import Operation
from holdfast.checker.histories.linearizable import Model, Verdict, judge_linearizable
from holdfast.errors import InvalidRequestError, TransactionConflictError
from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Record, TransactionStore
from holdfast.transactions.retry import run_transaction
from holdfast.transactions.transaction import Transaction
from tests.transactions.told import Told, operations_of

__all__ = ["judge_mixes", "run_mixes"]


_KINDS = ("get", "get", "get_many", "scan", "scan", "put", "put", "insert", "delete", "add", "add")
_KEYS = 4
_MOST_STEPS = 5


# --- workers ----------------------------------------------------------------------------------------------------------
def run_mixes(store: TransactionStore, prefix: str, who: str, seed: int, count: int) -> list[Told]:
    """Run random transactions, one after the other, and tell what they did."""
    chance = SeededRandom(seed)
    environment = Environment(chance=SeededRandom(seed + 1))
    told = []
    for number in range(count):
        script = _script(chance, f"{who}-{number}")
        attempts: list[tuple[float, list[tuple[Any, ...]], list[Any]]] = []

        def play(
            transaction: Transaction,
            script: Sequence[tuple[Any, ...]] = script,
            attempts: list[tuple[float, list[tuple[Any, ...]], list[Any]]] = attempts,
        ) -> None:
            attempts.append((environment.clock.elapsed_s(), [], []))
            for step in script:
                _take(transaction, prefix, step, *attempts[-1][1:])
                environment.clock.sleep(0)  # lets others run

        try:
            run_transaction(store, play, environment, attempts=50)
        except TransactionConflictError:
            continue
        began_s, steps, saw = attempts[-1]
        ended_s = environment.clock.elapsed_s()
        told.append(Told(who, tuple(steps), tuple(saw), began_s, ended_s))
    return told


def _key(prefix: str, name: object) -> bytes:
    return f"{prefix}{name}".encode()


def _script(chance: SeededRandom, name: str) -> list[tuple[Any, ...]]:
    script: list[tuple[Any, ...]] = []
    for number in range(chance.pick(range(1, _MOST_STEPS + 1))):
        kind = chance.pick(_KINDS)
        key = chance.pick(range(_KEYS))
        if kind == "get_many":
            script.append((kind, *chance.shuffled(range(_KEYS))[:2]))
        elif kind == "scan":
            script.append((kind, key, chance.pick(range(key + 1, _KEYS + 1)), chance.pick((None, 1, 2))))
        elif kind in ("put", "insert"):
            script.append((kind, key, f"{name}.{number}"))
        else:
            script.append((kind, key, chance.pick((1, 10, -3))) if kind == "add" else (kind, key))
    return script


def _take(
    transaction: Transaction, prefix: str, step: tuple[Any, ...], steps: list[tuple[Any, ...]], saw: list[Any]
) -> None:
    """Take a step, if it is possible, and note it and what it returned."""
    guard = _key(prefix, "guard")
    kind, first, *rest = step
    if kind == "get":
        saw.append(_content(transaction.get(_key(prefix, first))))
    elif kind == "get_many":
        found = transaction.get_many([_key(prefix, first), _key(prefix, rest[0])])
        saw.append(tuple(_content(found.get(_key(prefix, number))) for number in (first, rest[0])))
    elif kind == "scan":
        end, limit = rest
        page = transaction.scan(_key(prefix, first), _key(prefix, end), limit, guard=guard)
        saw.append(tuple((key.decode()[len(prefix) :], _content(record)) for key, record in page))
    elif kind == "delete":
        transaction.delete(_key(prefix, first))
    else:
        transaction.get(guard)  # the step may create a record in a range
        if kind == "insert":
            saw.append(_content(transaction.get(_key(prefix, first))))
            steps.append(("get", first))
        if kind == "put" or (kind == "insert" and saw[-1] is None):
            getattr(transaction, kind)(_key(prefix, first), rest[0].encode())
        elif kind == "add":
            try:
                transaction.add(_key(prefix, first), rest[0])
            except InvalidRequestError:
                return  # it has put or deleted the record
        else:
            return
    steps.append(step)


def _content(record: Record | None) -> tuple[str, int] | None:
    return None if record is None else (record.value.decode(), record.number)


# --- judging ----------------------------------------------------------------------------------------------------------
_State = tuple[tuple[str, tuple[str, int]], ...]


def _apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Run a transaction on a dictionary, and return what its reads see."""
    records: dict[str, tuple[str, int]] = dict(state)  # type: ignore[call-overload]  # a state is such pairs
    saw: list[object] = []
    steps: Any = operation.args
    for kind, first, *rest in steps:
        key = str(first)
        if kind == "get":
            saw.append(records.get(key))
        elif kind == "get_many":
            saw.append((records.get(key), records.get(str(rest[0]))))
        elif kind == "scan":
            end, limit = rest
            found = [(one, records[one]) for one in sorted(records) if key <= one < str(end)]
            saw.append(tuple(found[:limit]))
        elif kind == "delete":
            records.pop(key, None)
        elif kind == "add":
            value, number = records.get(key, ("", 0))
            records[key] = (value, number + rest[0])
        else:
            records[key] = (rest[0], 0)
    return tuple(sorted(records.items())), tuple(saw)


def judge_mixes(told: Sequence[Told], limit: int = 400_000) -> Verdict:
    """Judge whether some order of the transactions, which respects real time, explains what all of them saw."""
    operations = operations_of(told, lambda one: {"name": "transaction", "args": one.steps, "value": one.saw})
    return judge_linearizable(operations, Model(initial=(), apply=_apply), limit=limit)
