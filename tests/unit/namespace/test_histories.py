"""Histories of clients in several processes are linearizable (N2): each answer fits a tree that one client could have.

The clients work on the same few paths at the same time. What they asked for and were told, and when, is judged by the
checker's own judge, against its model of a namespace, which knows nothing of inodes and transactions.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from threading import Barrier
from typing import cast

import pytest

from holdfast.errors import TransactionConflictError
from holdfast.namespace import Namespace
from holdfast.runtime import SeededRandom, SystemClock
from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.linearizable import Linearizability, Model, judge_linearizable
from holdfast_checker.namespace.calls import ANSWERS, NamespaceCallExecutor
from holdfast_checker.namespace.model import ModelNode, ModelTree, apply_to_model
from tests.children import run_in_children
from tests.patience import PATIENCE_S
from tests.shared_namespace import SHARED, SharedNamespace

PROCESSES = 8
_CALLS = 4
_ROUNDS = 20
_PATHS = ("/a", "/b", "/a/x", "/b/x", "/a/b", "/a/b/x")
_MODEL = Model(initial=ModelTree((((), ModelNode()),)), apply=apply_to_model)
_CLOCK = SystemClock()


class _Client:
    """Makes calls in a directory of its own, as if it were the root, and records them."""

    def __init__(self, namespace: Namespace, number: int, directory: str) -> None:
        self.who = f"client {number}"
        self.calls = NamespaceCallExecutor(namespace, _CLOCK, {})
        self.directory = directory
        self.history: list[Operation] = []

    def call(self, name: str, *args: str) -> None:
        """Make a call, and record it."""
        there = [self.directory + one.rstrip("/") if one.startswith("/") else one for one in args]
        outcome, begun = Outcome.OK, _now()
        try:
            value = self.calls.execute_by_name(name, *there)
        except ANSWERS as error:
            value = type(error).__name__
        except TransactionConflictError:
            outcome, value = Outcome.FAILED, None
        if isinstance(value, tuple):
            value = tuple(one.removeprefix(self.directory) for one in value)
        self.history.append(
            Operation(who=self.who, name=name, args=args, invoked=begun, ended=_now(), outcome=outcome, value=value)
        )

    def call_something(self, chance: SeededRandom, mark: str) -> None:
        """Make a call of any kind."""
        name = chance.pick(
            ["mkdirs", "create", "overwrite", "delete", "delete_tree", "rename", "replace", "list", "read", "walk"]
        )
        if name == "walk":
            self.call(name, "/")
        elif name in ("create", "overwrite"):
            self.call(name, chance.pick(_PATHS), mark)
        elif name in ("rename", "replace"):
            self.call(name, chance.pick(_PATHS), chance.pick(_PATHS))
        else:
            self.call(name, chance.pick(_PATHS))


def _now() -> int:
    return int(_CLOCK.elapsed_s() * 1e9)


def _histories(shared: SharedNamespace, rounds: int) -> list[list[Operation]]:
    """Let clients work in one directory after the other, together; return the history of each directory."""
    with shared.open() as namespace:
        for number in range(rounds):
            namespace.mkdirs(f"/round{number}")
    together = cast("Barrier", multiprocessing.get_context("fork").Barrier(PROCESSES, timeout=PATIENCE_S))

    def work(number: int) -> list[list[Operation]]:
        found = []
        with shared.open() as namespace:
            for turn in range(rounds):
                client = _Client(namespace, number, f"/round{turn}")
                chance = SeededRandom(1000 * number + turn)
                together.wait()
                for call in range(_CALLS):
                    client.call_something(chance, f"<{number}-{call}>")
                found.append(client.history)
        return found

    of_processes = run_in_children(PROCESSES, work)
    found = [[operation for one in of_processes for operation in one[turn]] for turn in range(rounds)]
    with shared.open() as namespace:
        for turn, history in enumerate(found):
            afterwards = _Client(namespace, PROCESSES, f"/round{turn}")
            afterwards.call("walk", "/")
            for path in cast("tuple[str, ...]", afterwards.history[0].value):
                afterwards.call("list", path)
            history += afterwards.history
    return found


@pytest.mark.parametrize("shared", SHARED, indirect=True)
def test_answers_fit_one_order(shared: SharedNamespace) -> None:
    histories = _histories(shared, _ROUNDS * shared.rounds)
    for history in histories:
        verdict = judge_linearizable(history, _MODEL)
        assert verdict.answer is Linearizability.YES, verdict.words
    overlaps = sum(
        not one.precedes(other) and not other.precedes(one)
        for history in histories
        for number, one in enumerate(history)
        for other in history[:number]
    )
    assert overlaps > len(histories), "the clients worked at the same time"
    failed = sum(one.outcome is Outcome.FAILED for history in histories for one in history)
    assert failed * 20 < sum(map(len, histories))
    shared.is_whole_after_collection()


@pytest.mark.parametrize("shared", SHARED[:1], indirect=True)
def test_a_wrong_answer_fits_nowhere(shared: SharedNamespace) -> None:
    for history in _histories(shared, 3):
        last = next(number for number, one in enumerate(history) if one.who == f"client {PROCESSES}")
        seen = cast("tuple[str, ...]", history[last].value)
        for wrong in ((*seen, "/ghost"), seen[1:] if seen else ("/a",)):
            altered = [*history[:last], replace(history[last], value=wrong), *history[last + 1 :]]
            assert judge_linearizable(altered, _MODEL).answer is Linearizability.NO
