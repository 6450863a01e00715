"""Define the actors that run scripted transactions with the shipped code, and record them as operations of a history.

Every attempt of a transaction is an operation of the history: one that conflicts failed, one whose reply was lost has
an unknown outcome, and one whose function ended with an error has read, and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from holdfast.errors import OutcomeUnknownError, TransactionConflictError, UnavailableError
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast.transactions.base import Backend, Committed
from holdfast.transactions.transaction import Transaction, run_transaction
from holdfast.transactions.validation import count_independent
from holdfast_checker.histories.history import HISTORY, History, Outcome, Recorder
from holdfast_checker.kernel.calls import Alternative, Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.time import ManualClock
from holdfast_checker.transactions.scripts import FAILED, InconsistentReadError, Script, ScriptLog, Step, run_script


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTransaction:
    """A transaction that an actor runs, given as a script, with its limits of retries.

    Attributes:
        repeats: how often the actor starts over if the outcome is unknown, or the database was not available.
        attempts: maximum number of attempts if the transaction conflicts.
        looks: whether it reads the guard record of a range before it creates records there: see `run_script`.
    """

    script: Script
    repeats: int = 0
    attempts: int = 3
    looks: bool = False


class AttemptRecorder(Recorder):
    """A history recorder in which one actor may have several operations open at a time, under different names."""

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        return super().alternatives(cast("History", state), call, str(call.args[0]))


class _AttemptLogger:
    """Records the attempts of one transaction."""

    def __init__(self, port: Port, who: str) -> None:
        self._port = port
        self._who = who
        self._is_open = False

    def begin(self) -> None:
        """Record that an attempt begins, and that the previous one has failed if it is still open."""
        self.end(Outcome.FAILED)
        self._port.call(Call(HISTORY, "invoke", (self._who, "transaction", ())))
        self._is_open = True

    def note(self, steps: Sequence[Step]) -> None:
        """Record the steps of an attempt at a transaction before they run."""
        self._port.call(Call(HISTORY, "note", (self._who, tuple(steps))))

    def end(self, outcome: Outcome, answer: object = None) -> None:
        if self._is_open:
            self._port.call(Call(HISTORY, "end", (self._who, outcome, answer)))
            self._is_open = False


class _OutcomeKnowledge(enum.Enum):
    """The outcome of a transaction, as far as its actor knows it."""

    KNOWN = enum.auto()
    UNKNOWN = enum.auto()
    NOTHING = enum.auto()
    """Nothing happened, because the database was not available."""


def run_transactions(handle: Callable[[Port], Backend], works: Sequence[ScriptedTransaction], port: Port) -> None:
    """Run transactions one after the other, as the program of an actor; stop once the outcome of one is unknown."""
    store, setting = handle(port), _transaction_environment(port)
    for work in works:
        ends = (_run_transaction(port, store, setting, work) for _ in range(1 + work.repeats))
        if all(end is not _OutcomeKnowledge.KNOWN for end in ends):
            return


def _transaction_environment(port: Port) -> Environment:
    return Environment(clock=ManualClock(), ids=port, runner=SerialRunner(), chance=SeededRandom(1))


def _run_transaction(port: Port, store: Backend, setting: Environment, work: ScriptedTransaction) -> _OutcomeKnowledge:
    attempts = _AttemptLogger(port, port.name)
    played = ScriptLog()

    def run_script_and_note_steps(transaction: Transaction) -> tuple[object, ...]:
        nonlocal played
        played = ScriptLog()
        attempts.begin()
        try:
            run_script(transaction, work.script, played, looks=work.looks)
        except Exception:
            attempts.note([*played.steps, FAILED])
            raise
        attempts.note(played.steps)
        return tuple(played.saw)

    try:
        found = run_transaction(store, run_script_and_note_steps, setting, attempts=work.attempts)
    except OutcomeUnknownError:
        return _OutcomeKnowledge.UNKNOWN
    except UnavailableError:
        attempts.end(Outcome.FAILED)
        return _OutcomeKnowledge.NOTHING
    except TransactionConflictError:
        attempts.end(Outcome.FAILED)
    except InconsistentReadError:
        attempts.end(Outcome.OK, ("saw", tuple(played.saw)))
    else:
        attempts.end(Outcome.OK, ("saw", found))
    return _OutcomeKnowledge.KNOWN


def run_group_commits(handle: Callable[[Port], Backend], scripts: Sequence[Script], port: Port) -> None:
    """Commit several transactions in order, each group of independent ones in one call: the program of an actor.

    No transaction may create a record in a range whose records another transaction counts.
    """
    store = handle(port)
    left = []
    for number, script in enumerate(scripts):
        attempts, transaction, played = _AttemptLogger(port, f"{port.name} {number}"), Transaction(store), ScriptLog()
        attempts.begin()
        try:
            run_script(transaction, script, played, looks=False)
        except UnavailableError:
            return
        left.append((attempts, transaction.to_commit(), played))
    while left:
        count = count_independent([commit for _attempts, commit, _played in left])
        group, left = left[:count], left[count:]
        for attempts, _commit, played in group:
            attempts.note(played.steps)
        try:
            outcomes = store.commit_group([commit for _attempts, commit, _played in group])
        except (OutcomeUnknownError, UnavailableError):
            return
        for (attempts, _commit, played), outcome in zip(group, outcomes, strict=True):
            took_effect = isinstance(outcome, Committed)
            attempts.end(Outcome.OK if took_effect else Outcome.FAILED, ("saw", tuple(played.saw)))
