"""The times in the figures of a task: what its functions, its reads and its commits took, each counted once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.runtime import NoAlarm
from holdfast.transactions.base import Commit, LockedTransaction, Outcome, Record
from holdfast.units.metered_backend import MeteredBackend
from holdfast.units.settings import UnitSettings
from holdfast.units.statistics import Statistics
from holdfast.units.unit import UnitReads
from tests.units_world import Shaky, UnitWorld, units

_READ_S, _COMMIT_S, _FUNCTION_S = 2.0, 30.0, 500.0
_KEYS = range(3)


class _Ahead(Shaky):
    """A database that reads ahead."""

    reads_ahead = True

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        return self.commit(commit), self.inner.get_many(keys)


@pytest.mark.parametrize("reads", [None, lambda key, _value: [("t", key)]], ids=["no hints", "hints"])
def test_functions_reads_and_commits_are_told_apart(reads: UnitReads | None) -> None:
    world = UnitWorld()
    world.clock.step_s = 0.0
    takes_s = {"get_many": _READ_S, "commit": _COMMIT_S, "make_durable": 0.0}

    def step(txn: Any, key: int, value: object) -> None:
        world.clock.sleep(_FUNCTION_S)
        txn.put("t", key, txn.get("t", key, default=0))

    database = _Ahead(world.inner, lambda _number, name: world.clock.sleep(takes_s[name]))
    found = world.task(step, UnitSettings(group=1), database=database, reads=reads).run(units(_KEYS))
    assert found.function_s == len(_KEYS) * _FUNCTION_S
    assert found.commit_s == database.calls.count("commit") * _COMMIT_S
    assert found.read_s == database.calls.count("get_many") * _READ_S
    assert found.calls == database.calls.count("commit") + database.calls.count("get_many")
    assert sum(found.commits.buckets.values()) == database.calls.count("commit")
    until_the_end_s = found.function_s + found.read_s - _READ_S + found.commit_s - _COMMIT_S
    assert found.run_s == until_the_end_s, "all but the record of the end, which has this figure"
    assert world.progress.statistics.run_s == until_the_end_s


class _Shield(NoAlarm):
    is_held = False

    @contextmanager
    def shielded(self) -> Iterator[None]:
        self.is_held = True
        yield
        self.is_held = False


def _locked(call: Callable[[LockedTransaction], object]) -> Callable[[MeteredBackend], None]:
    def run(db: MeteredBackend) -> None:
        with db.locked() as transaction:
            call(transaction)

    return run


@pytest.mark.parametrize(
    ("call", "is_commit"),
    [
        (lambda db: db.get_many([b"k"]), False),
        (lambda db: db.scan(b"k", b"l", 1), False),
        (lambda db: db.commit(Commit(adds={b"k": 1})), True),
        (lambda db: db.commit_group([Commit(adds={b"k": 1})]), True),
        (_locked(lambda transaction: transaction.read([b"k"], exclusive=False)), False),
        (_locked(lambda transaction: transaction.scan(b"k", b"l", 1)), False),
        (_locked(lambda transaction: transaction.apply(Commit(adds={b"k": 1}))), True),
    ],
    ids=["get_many", "scan", "commit", "commit_group", "read", "locked scan", "apply"],
)
def test_each_call_is_measured_and_no_alarm_breaks_it_off(
    call: Callable[[MeteredBackend], object], *, is_commit: bool
) -> None:
    world, found, alarm = UnitWorld(), Statistics(), _Shield()
    world.clock.step_s = 0.0

    def take(_number: int, _name: str) -> None:
        assert alarm.is_held
        world.clock.sleep(2.0)

    db = MeteredBackend(Shaky(world.inner, take), world.clock, found, alarm)
    call(db)
    assert (found.calls, db.calls_s, alarm.is_held) == (1, 2.0, False)
    assert (found.read_s, found.commit_s, len(found.commits.buckets)) == ((0.0, 2.0, 1) if is_commit else (2.0, 0.0, 0))
