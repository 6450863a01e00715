"""Let Spark's tasks die at chosen moments while they run units; Spark's processes import this module.

Spark starts a task that has failed again: up to four attempts in all. So a plan says what each attempt dies of, and the
attempts after the last of the plan live. Whoever dies leaves a mark first, so that tests know that it happened.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from holdfast.errors import OutcomeUnknownError
from holdfast.records.database import Database
from holdfast.units.execution import UnitExecution
from tests.patience import PATIENCE_S

__all__ = [
    "ANYTIME",
    "BETWEEN",
    "COMMITTED",
    "COMMITTING",
    "FUNCTION",
    "RAISING",
    "UNKNOWN",
    "Dying",
    "add_words",
    "change_words",
    "counted",
    "counted_words",
    "lines_of_words",
    "marks",
    "naive",
    "put_number_of_values",
]

FUNCTION = "in the function"
"""os._exit in the middle of the function."""

BETWEEN = "between"
"""os._exit at the end of the function, before the commit of its group."""

COMMITTING = "committing"
"""os._exit right before the commit is called."""

COMMITTED = "committed"
"""os._exit right after the commit has returned."""

RAISING = "raising"
"""An exception in the middle of the function."""

UNKNOWN = "unknown"
"""The reply of a commit is lost; nobody dies."""

ANYTIME = "anytime"
"""SIGKILL some milliseconds after the first unit."""

_LONGEST_LIFE_S = 0.1
_LAST_CALL = 200
"""At this call, whoever is to die waits for it: so two attempts cannot do 400 units before they die."""


# --- the work ---------------------------------------------------------------------------------------------------------
def lines_of_words(count: int, words: int = 10, seed: int = 13) -> list[tuple[int, str]]:
    """Return numbered lines of words, which are as frequent as those of a text."""
    chance = random.Random(seed)
    known = [f"w{number}" for number in range(1000)]
    weights = [1 / (number + 1) ** 1.1 for number in range(1000)]
    return [(number, " ".join(chance.choices(known, weights, k=words))) for number in range(count)]


def counted(lines: Sequence[tuple[int, str]]) -> Counter[str]:
    """Return the right answer."""
    return Counter(word for _number, line in lines for word in line.split())


def counted_words(db: Database) -> Counter[str]:
    """Return what a database says."""
    with db.snapshot() as snapshot:
        return Counter({row: columns["value"] for row, columns in snapshot.scan("words")})


def text_of(value: Any) -> str:
    """Return the line in a row or in the value of a pair."""
    return value if isinstance(value, str) else value["line"]


def add_words(txn: Any, number: int, value: Any) -> None:
    """Count the words of a line by blind additions."""
    for word in text_of(value).split():
        txn.add("words", word)


def change_words(txn: Any, number: int, value: Any) -> None:
    """Count the words of a line by reading and writing: units conflict."""
    for word in text_of(value).split():
        txn.put("words", word, txn.get("words", word, default=0) + 1)


def put_number_of_values(txn: Any, word: str, values: Sequence[int]) -> None:
    """Count a word by the number of the values of its key; a second time adds."""
    txn.put("words", word, len(values) + txn.get("words", word, default=0))


# --- death ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Attempt:
    """The attempt that runs in this process.

    Attributes:
        calls, commits: how many there were.
        point: what it dies of; None if it lives.
    """

    token: tuple[int, int]
    point: str | None
    marks: Path
    after: int
    calls: int = 0
    commits: int = 0

    def is_time(self, point: str, number: int) -> bool:
        return self.point == point and number == self.after

    def mark(self) -> None:
        partition, attempt = self.token
        (self.marks / f"{partition}.{attempt}.{self.point}").touch()

    def die(self) -> None:
        self.mark()
        os._exit(7)


_now: _Attempt | None = None
_commit = UnitExecution._commit_and_read_ahead


def _dying_commit(execution: UnitExecution, commit: Any, following: Any) -> Any:
    now = _now
    if now is None or TaskContext.get() is None or now.token != _token() or not commit.puts:
        return _commit(execution, commit, following)
    now.commits += 1
    if now.is_time(COMMITTING, now.commits):
        now.die()
    outcome = _commit(execution, commit, following)
    if now.is_time(COMMITTED, now.commits):
        now.die()
    if now.is_time(UNKNOWN, now.commits):
        now.mark()
        raise OutcomeUnknownError("the reply was lost")
    return outcome


def _token() -> tuple[int, int]:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.taskAttemptId()


def kill_soon(delay_s: float) -> None:
    """Kill this process with SIGKILL at about this time, whatever it does then."""

    def wait() -> None:
        threading.Event().wait(delay_s)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


@dataclass(frozen=True)
class Dying:
    """A function of units in whose tasks attempts die.

    Attributes:
        plan: what attempt 0, 1, … of each task dies of.
        marks: directory for one file for each death.
        after: with which call or commit it dies.
    """

    function: Callable[[Any, Any, Any], object]
    plan: Sequence[str]
    marks: Path
    after: int = 3

    def __call__(self, txn: Any, key: Any, value: Any) -> None:
        now = self._begin()
        now.calls += 1
        if now.is_time(FUNCTION, now.calls):
            txn.add("words", "of an attempt that dies")
            now.die()
        if now.point == RAISING and now.calls >= now.after:  # once would not do: a unit with stale reads is run again
            txn.add("words", "of an attempt that fails")
            now.mark()
            raise ValueError("injected")
        if now.point == ANYTIME and now.calls == _LAST_CALL:
            threading.Event().wait(PATIENCE_S)
        self.function(txn, key, value)
        if now.is_time(BETWEEN, now.calls):
            now.die()

    def _begin(self) -> _Attempt:
        global _now
        if _now is None or _now.token != _token():
            UnitExecution._commit_and_read_ahead = _dying_commit  # type: ignore[method-assign] # the product has no hook for deaths
            context = TaskContext.get()
            assert context is not None
            number = context.attemptNumber()
            point = self.plan[number] if number < len(self.plan) else None
            _now = _Attempt(_token(), point, self.marks, self.after)
            if point == ANYTIME:
                _now.mark()
                kill_soon(random.Random(f"{_now.token}").random() * _LONGEST_LIFE_S)
        return _now


def marks(folder: Path) -> Counter[str]:
    """Return how many attempts died, or failed, of what."""
    return Counter(path.name.rpartition(".")[2] for path in folder.iterdir())


def naive(url: str, plan: Sequence[str], folder: Path, after: int) -> Callable[[Iterator[Any]], None]:
    """Return what people write without units: increments from `foreachPartition`, each line in its own transaction."""
    from holdfast.records.database import open_database

    def run(rows: Iterator[Any]) -> None:
        context = TaskContext.get()
        assert context is not None
        number = context.attemptNumber()
        point = plan[number] if number < len(plan) else None
        now = _Attempt(_token(), point, folder, after)
        with open_database(url) as db:
            for row in rows:
                now.calls += 1
                db.transact(lambda cells, row=row: add_words(cells, row["number"], row), attempts=1000)  # type: ignore[misc] # a lambda in a loop
                if now.calls == now.after and now.point == RAISING:
                    now.mark()
                    raise ValueError("injected")
                if now.calls == now.after and now.point is not None:
                    now.die()

    return run
