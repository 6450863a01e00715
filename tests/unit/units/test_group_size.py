"""Groups shrink while they conflict, and grow when they do not; settings of units, the size of groups among them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.units.unit import UnitSettings
from holdfast.units.unit_loop import AdaptiveGroupSize
from tests.units_world import Shaky, UnitWorld, units


def test_it_grows_after_ten_groups_without_a_conflict() -> None:
    size = AdaptiveGroupSize(100)
    for expected in (16, 32, 64, 100, 100):
        for _ in range(10):
            assert size.now == expected
            size.committed(0.0)
    size.note_conflict()
    assert size.now == 50


def test_a_conflict_begins_the_count_anew() -> None:
    size = AdaptiveGroupSize(100)
    for _ in range(9):
        size.committed(0.0)
    size.note_conflict()
    for _ in range(10):
        assert size.now == 8
        size.committed(0.0)
    assert size.now == 16


def test_it_stays_at_one_and_below_the_most() -> None:
    size = AdaptiveGroupSize(3)
    for expected in (3, 1, 1):
        assert size.now == expected
        size.note_conflict()


def test_a_long_group_shrinks_it() -> None:
    size = AdaptiveGroupSize(100)
    for duration_s, expected in ((1.0, 16), (1.001, 8)):
        size.committed(duration_s)
        assert size.now == expected


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"groups": 1}, "no such setting for units: did you mean group"),
        ({"buffering": "none"}, "no such buffering"),
        *(({"group": given}, "group is a number from 1 to 1024") for given in (0, 1025, 2.5, True)),
        *(({"lease_s": given}, "lease_s is a number of seconds") for given in (0, -1, 10**7, "1", True)),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        UnitSettings.of(wrong)


def test_all_settings_can_be_given() -> None:
    for given in ({one.name: one.default for one in fields(UnitSettings)}, {"group": 1024, "rounds": 1}):
        assert UnitSettings.of(given) == UnitSettings(**given)


def test_units_that_run_one_by_one_after_a_conflict_do_not_make_groups_grow() -> None:
    """Each group conflicts, and none of the units that run by themselves then: groups become single units."""
    world = UnitWorld()

    def step(txn: Any, key: Row, value: object) -> None:
        txn.get("t", "hot")
        txn.add("t", key)

    def before(number: int, name: str) -> None:
        before_commit = shaky.calls[-3:].count("commit") == 1
        if name == "commit" and before_commit and task._loop.group_size > 1 and number not in alone:
            alone.update(range(number + 1, number + 2 * 16 + 2))
            world.db.add("t", "hot")

    alone: set[int] = set()
    shaky = Shaky(world.inner, before)
    task = world.task(step, UnitSettings(group=16), database=shaky)
    task.run(units(range(64)))
    assert task._loop.group_size < 16


def test_all_units_of_a_group_that_conflicts_run_one_by_one_also_if_some_of_them_are_put_off() -> None:
    world = UnitWorld()
    tries: list[Row] = []

    def step(txn: Any, key: Row, value: object) -> None:
        txn.put("t", key, txn.get("t", key, default=0))
        if key in ("a", "b") and tries.count(key) < 2:
            tries.append(key)
            world.db.add("t", key)

    found = world.run(step, "abcdefg", UnitSettings(group=4))
    assert (found.units, found.conflicts, found.deferred) == (7, 3, 2)
    assert found.groups == len(["c", "d", "ef", "g", "a", "b"])
