"""What is added to a work list runs: no value takes the place of another one."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records.batches import iter_records
from holdfast.records.row_keys import Row
from holdfast.runtime import Alarm
from holdfast.transactions.base import Backend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job
from holdfast.units.unit import UnitFunction, UnitSettings
from holdfast.units.work_list import WorkList, find_work_list, open_work_list
from holdfast.units.work_task import WorkTask
from tests.clocks import never
from tests.units_world import UnitWorld


class _Listed(UnitWorld):
    """A world with a work list, and a job with two workers."""

    def __init__(self) -> None:
        super().__init__()
        self.items = open_work_list(self.db, "list", create=True)
        self.job = begin_job(self.inner, "work", kind=WORK_LIST, shards=2, environment=self.environment)

    @property
    def list(self) -> WorkList:
        return find_work_list(self.inner, "list")

    def work(self, function: UnitFunction, slot: int = 0, group: int = 2, database: Backend | None = None) -> None:
        """Run a worker until the list is at its end."""
        database = database or self.inner
        settings = UnitSettings(group=group, lease_s=1.0)
        execution = UnitExecution(
            function, database, settings, self.environment, emit_to=self.list, alarm=Alarm(is_on=False)
        )
        WorkTask(execution, database, self.job, slot, self.list, repeat=never).run()

    @property
    def waiting(self) -> list[tuple[Any, Any]]:
        """Keys and values of all items that wait."""
        found = [self.list.decode_item(key, record) for key, record in iter_records(self.inner, *self.list.waiting)]
        return sorted((item.key, item.value) for item in found if item is not None)


# --- values that run each by itself -----------------------------------------------------------------------------------
def test_each_value_of_a_key_runs_and_equal_ones_run_once() -> None:
    world = _Listed()
    world.items.add_many([("x", 5), ("x", 3), ("x", None), ("x", 5), ("x", None), ("x", 3, 1)])
    ran: list[tuple[Any, Any]] = []
    world.work(lambda _txn, key, value: ran.append((key, value)))
    assert sorted(ran[:3], key=repr) == [("x", 3), ("x", 5), ("x", None)]
    assert ran[3:] == [("x", 3)], "with a larger priority"


_EDGES = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (3, 6), (7, 8), (8, 9)]
_NEAR: dict[int, list[int]] = {
    node: [one for edge in _EDGES if node in edge for one in edge if one != node] for node in range(1, 10)
}
_COMPONENTS = {(node, "value"): 1 if node < 7 else 7 for node in _NEAR}


def spread(txn: Any, node: int, label: int) -> None:
    """Give a node the smallest label that reaches it, and pass that on: nothing but the value says what it is."""
    if label < txn.get("t", node, default=label + 1):
        txn.put("t", node, label)
        txn.emit_many([(near, label) for near in _NEAR[node]])


@pytest.mark.parametrize("group", [1, 4])
def test_labels_spread_without_a_priority(group: int) -> None:
    world = _Listed()
    world.items.add_many([(node, node) for node in sorted(_NEAR, reverse=True)])
    world.work(spread, group=group)
    assert world.cells == _COMPONENTS


@pytest.mark.parametrize("second", ["x" * 5_000_000, {1}])
def test_a_call_whose_values_are_refused_adds_none_of_them(second: object) -> None:
    """The function may catch the error of a call, and do something else with all of its items."""

    def emit(txn: Any, key: Row, value: object) -> None:
        assert key == 0, "nothing was added"
        with pytest.raises(InvalidRequestError):
            txn.emit_many([(1, value), (2, second), (3, value)])

    world = _Listed()
    world.items.add(0, "y")
    world.work(emit)
    assert world.waiting == []
