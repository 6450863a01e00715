"""The times in the figures of a task: what its functions, its reads and its commits took, each counted once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.runtime import Alarm
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.units.execution import UnitExecution
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import SERVER, UnitReads, UnitSettings
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
    assert found.commit_s == len(_KEYS) * _COMMIT_S
    assert found.groups == len(_KEYS)
    of_ledger = 2  # how far the task is, before and after
    assert found.read_s == (database.calls.count("get_many") - of_ledger) * _READ_S
    measured_s = found.function_s + found.read_s + found.commit_s
    assert found.run_s == measured_s + _READ_S, "all but the record of the end, which has this figure"
    assert world.progress.statistics.run_s == found.run_s


class _Shield(Alarm):
    is_held = False

    @contextmanager
    def shielded(self) -> Iterator[None]:
        self.is_held = True
        yield
        self.is_held = False


@pytest.mark.slow
@pytest.mark.parametrize("settings", [UnitSettings(), UnitSettings(buffering=SERVER)], ids=["client", "server"])
def test_no_alarm_breaks_off_a_call_of_the_database(settings: UnitSettings) -> None:
    """It would leave a connection behind that cannot be used."""
    world, alarm = UnitWorld(), _Shield()
    is_running = False

    def check(_number: int, _name: str) -> None:
        assert alarm.is_held or not is_running

    def step(txn: Any, key: int, value: object) -> None:
        nonlocal is_running
        is_running = True
        txn.put("t", key, txn.get("t", key, default=0))
        list(txn.scan("t"))
        is_running = False

    database = Shaky(world.inner, check)
    execution = UnitExecution(step, database, settings, world.environment, alarm=alarm)
    ShardTask(execution, database, world.job, 0).run(units(_KEYS))
    assert {"get_many", "scan"} & {*database.calls} or settings.buffering == SERVER
