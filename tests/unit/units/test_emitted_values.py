"""What is added to a work list runs: no value takes the place of another one, and values that are combined count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import add
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.records.batches import read_records
from holdfast.records.database import Database
from holdfast.records.row_keys import Row
from holdfast.runtime import Alarm, NeverPeriodic
from holdfast.transactions.base import Backend
from holdfast.units.claims import Claim, dissolve, take_items
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job
from holdfast.units.open_work_list import open_work_list
from holdfast.units.unit import UnitFunction, UnitSettings
from holdfast.units.work_list import WorkList, find_work_list
from holdfast.units.work_task import WorkTask
from tests.units_world import FAULTS, Death, Shaky, UnitWorld, fail_at, interleaved


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
        WorkTask(execution, database, self.job, slot, self.list, periodic=NeverPeriodic()).run()

    def take(self, slot: int) -> Claim:
        """Claim all that waits."""
        waiting = list(read_records(self.inner, *self.list.waiting))
        claim = take_items(self.inner, self.list, self.list.claim_key(slot, "a"), waiting, {})
        assert claim is not None
        return claim

    @property
    def waiting(self) -> list[tuple[Any, Any]]:
        """Keys and values of all items that wait."""
        found = [self.list.item_of(key, record) for key, record in read_records(self.inner, *self.list.waiting)]
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


def spread(txn: Any, node: int, label: int, combine: Callable[[int, int], int] | None) -> None:
    """Give a node the smallest label that reaches it, and pass that on: nothing but the value says what it is."""
    if label < txn.get("t", node, default=label + 1):
        txn.put("t", node, label)
        txn.emit_many([(near, label) for near in _NEAR[node]], combine=combine)


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("combine", [None, min])
def test_labels_spread_without_a_priority(combine: Callable[[int, int], int] | None, group: int) -> None:
    world = _Listed()
    world.items.add_many([(node, node) for node in sorted(_NEAR, reverse=True)], combine=combine)
    world.work(partial(spread, combine=combine), group=group)
    assert world.cells == _COMPONENTS


# --- values that are combined -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("combine", "value"), [(min, 1), (max, 4), (add, 8), (lambda old, new: old, 3), (lambda old, new: None, None)]
)
def test_a_key_waits_once_with_the_combined_value(combine: Callable[[Any, Any], Any], value: int | None) -> None:
    world = _Listed()
    world.items.add("x", 3, combine=combine)
    assert world.items.add_many([("x", 1), ("y", 9), ("x", 4)], combine=combine) == 3
    assert world.waiting == [("x", value), ("y", 9)]


def _merged(waiting: list[int], new: list[int]) -> list[int]:
    """Add the list that waits to the new one, and change that, as users may."""
    new.extend(waiting)
    return new


def test_a_combiner_may_change_its_values_though_the_transaction_is_repeated() -> None:
    world = _Listed()
    world.items.add("x", [1], combine=_merged)
    late = iter([2, 3])

    def others(_number: int, name: str) -> None:
        if name == "get_many" and (value := next(late, None)) is not None:
            world.items.add("x", [value], combine=_merged)  # what this transaction is about to read, or has read

    shaky = Shaky(world.inner, after=others)
    items = open_work_list(Database(shaky, "memory://", world.environment), "list")
    value = [4]
    items.add_many([("x", value), ("y", value), ("x", [5])], combine=_merged)
    assert [(key, sorted(found)) for key, found in world.waiting] == [("x", [1, 2, 3, 4, 5]), ("y", [4])]
    assert value == [4], "the caller's own"


def test_units_combine_with_what_others_and_they_themselves_have_emitted() -> None:
    world = _Listed()
    world.items.add("sum", 1, priority=5, combine=add)
    world.items.add_many([(key, None) for key in ("a", "b", "c")])
    sums: list[int] = []

    def emits(txn: Any, key: Row, value: Any) -> None:
        if key == "sum":
            sums.append(value)
        else:
            txn.emit("sum", 10, priority=5, combine=add)
            txn.emit_many([("sum", 100, 5), ("sum", 1000, 5)], combine=add)

    world.work(emits, group=2)
    assert sum(sums) == 3331 and len(sums) <= 2, "a worker takes several keys at a time"


def test_what_is_added_by_itself_is_not_combined() -> None:
    world = _Listed()
    world.items.add("x", 5, combine=min)
    world.items.add("x", 3)
    world.items.add("x", 7, combine=min)
    assert world.waiting == [("x", 3), ("x", 5)]


def test_what_cannot_be_combined_is_refused() -> None:
    world = _Listed()
    with pytest.raises(InvalidRequestError, match="pass it itself, not its name combine='min'"):
        world.items.add("x", 1, combine="min")  # type: ignore[arg-type]  # as users do
    world.items.add("x", 1, combine=min)
    with pytest.raises(TypeError):
        world.items.add("x", "text", combine=min)
    with pytest.raises(InvalidRequestError, match="a value is bytes"):
        world.items.add("x", 2, combine=lambda old, new: {old, new})
    assert world.waiting == [("x", 1)]


@pytest.mark.parametrize("second", ["x" * 3_000_000, b"x"])
def test_a_call_whose_values_are_refused_adds_none_of_them(second: object) -> None:
    """The function may catch the error of a call, and do something else with all of its items."""

    def emit(txn: Any, key: Row, value: object) -> None:
        assert key == 0, "nothing was added"
        with pytest.raises(InvalidRequestError):
            txn.emit_many([(1, value), (2, second), (2, second), (3, value)], combine=_joined)

    world = _Listed()
    world.items.add(0, "y")
    world.work(emit)
    assert world.waiting == []


def _joined(one: Any, other: Any) -> object:
    return {one, other} if isinstance(one, bytes) else one + other


def test_nobody_combines_in_a_dropped_list() -> None:
    world = _Listed()
    before = world.items
    before.drop()
    open_work_list(world.db, "list", create=True)
    with pytest.raises(NotFoundError, match="the work list was dropped"):
        before.add("x", 1, combine=min)
    assert world.items.counts() == (0, 0)


# --- faults -----------------------------------------------------------------------------------------------------------
_PARTS = 4


def collect(txn: Any, key: Row, value: int | None) -> None:
    """Add 1 to what waits under one key, which adds what it gets to a cell."""
    if key == "sum":
        txn.add("t", "sum", value)
    else:
        txn.emit("sum", 1, combine=add)


def _filled() -> _Listed:
    world = _Listed()
    world.items.add_many([(key, None) for key in "abcd"[:_PARTS]])
    return world


def _calls() -> int:
    world = _filled()
    shaky = Shaky(world.inner)
    world.work(collect, database=shaky)
    assert world.cells == {("sum", "value"): _PARTS}
    return len(shaky.calls)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_sum_is_right_whatever_fails(fault: str) -> None:
    for call in range(1, _calls() + 1):
        world = _filled()
        shaky = Shaky(world.inner)
        fail_at(shaky, call, fault)
        try:
            world.work(collect, database=shaky)
        except Death:
            world.work(collect, slot=1)
        assert world.cells == {("sum", "value"): _PARTS}, f"call {call}"


def test_a_sum_is_right_if_two_workers_add_to_it() -> None:
    calls = _calls()
    for first in range(1, calls + 1, 2):
        for second in range(1 + first % 3, calls + 1, 3):
            world = _filled()

            def worker(slot: int, call: int, at_point: Callable[[], None], world: _Listed = world) -> None:
                shaky = Shaky(world.inner, lambda now, _name: at_point() if now == call else None)
                world.work(collect, slot, 1, shaky)

            interleaved(partial(worker, 0, first), partial(worker, 1, second))
            assert world.cells == {("sum", "value"): _PARTS}


def _taken(world: _Listed, values: Iterable[int]) -> list[Claim]:
    claims = []
    for slot, value in enumerate(values):
        world.items.add("x", value, combine=add)
        claims.append(world.take(slot))
    return claims


@pytest.mark.parametrize("values", [(3, 3), (3, 4)], ids=["equal", "different"])
def test_no_value_is_lost_when_claims_of_a_combined_key_are_dissolved(values: tuple[int, int]) -> None:
    """Two workers have taken one key, one after the other, while a third value waits; both die, and die again."""
    world = _Listed()
    claims = _taken(world, values)
    world.items.add("x", 5, combine=add)
    assert all(dissolve(world.inner, world.list, claim) for claim in claims)
    for _ in range(2):
        assert world.waiting == sorted([("x", 5), *(("x", value) for value in values)])
        assert dissolve(world.inner, world.list, world.take(7))
