"""The plain counter of paper 003 (4.5.1) is wrong together with the paper's own queue of conflicts (4.5.3).

The paper's system table has, for each task, the number of functions that were committed; a task that is executed again
starts from there. A function that conflicts goes to the end of its task's queue. `_Paper` is a model of both: it does
what the text says. The schedule is the same for it and for Holdfast: unit 7 conflicts, unit 8 commits, the task dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.records.row_keys import Row
from holdfast.units.unit import Unit, UnitSettings
from tests.units_world import Death, Shaky, UnitWorld, units

_UNITS = range(1, 11)
_CONFLICTS = 7
_LAST = 8


@dataclass
class _Paper:
    """The system table of the paper, and a database that counts how often each unit took effect.

    Attributes:
        committed: the entry of the task in the system table: how many of its functions were committed.
    """

    committed: int = 0
    effects: Counter[int] = field(default_factory=Counter)

    def run(self, conflicts: int = 0, dies_after: int = 0) -> None:
        """Execute the task, from the place that the system table names."""
        queue: list[int] = []
        for unit in list(_UNITS)[self.committed :]:
            if unit == conflicts:
                queue.append(unit)
                continue
            self._commit(unit)
            if unit == dies_after:
                return
        for unit in queue:
            self._commit(unit)

    def _commit(self, unit: int) -> None:
        self.effects[unit] += 1
        self.committed += 1


def test_the_counter_of_the_paper_loses_one_unit_and_repeats_another() -> None:
    paper = _Paper()
    paper.run(conflicts=_CONFLICTS, dies_after=_LAST)
    assert paper.committed == 7  # units 1 to 6, and 8: the number does not say which
    paper.run()
    assert paper.effects[_CONFLICTS] == 0, "nobody runs unit 7 again"
    assert paper.effects[_LAST] == 2, "unit 8 runs twice"


def test_the_counter_is_right_without_conflicts() -> None:
    paper = _Paper()
    paper.run(dies_after=_LAST)
    paper.run()
    assert paper.effects == Counter(_UNITS)


def _step(txn: Any, key: Row, value: object) -> None:
    if key == _CONFLICTS:
        txn.put("t", "seen", txn.get("t", "hot", default=0))
    txn.add("t", key)


def _effects(world: UnitWorld) -> Counter[Any]:
    cells = world.cells
    return Counter({key: cells[key, "value"] for key in _UNITS if (key, "value") in cells})


@pytest.mark.parametrize(("group", "conflicts_at"), [(1, [6]), (3, [6, 6]), (32, [0, 6])])
def test_holdfast_names_the_units_that_are_put_off(group: int, conflicts_at: list[int]) -> None:
    """A unit conflicts with its group first, and then by itself, when so many others are done."""
    world = UnitWorld()
    left = list(conflicts_at)

    def before(number: int, name: str) -> None:
        if name != "commit":
            return
        if _effects(world)[_LAST]:
            raise Death
        if left and _effects(world).total() == left[0]:
            left.pop(0)
            world.db.add("t", "hot")

    with pytest.raises(Death):
        world.task(_step, UnitSettings(group=group), database=Shaky(world.inner, before)).run(units(_UNITS))
    progress = world.progress
    assert list(progress.deferred) == [Unit.of(_CONFLICTS, None).id]
    assert progress.done == _LAST - 1
    attempts: Sequence[int] = [world.run(_step, _UNITS).units, world.run(_step, _UNITS).units]
    assert attempts == [3, 0]
    assert _effects(world) == Counter(_UNITS)
