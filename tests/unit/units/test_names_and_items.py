"""Names of jobs and lists, and items of lists, that cannot be: each is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.units.jobs import forget_job
from holdfast.units.report import poll
from holdfast.units.watch import watch
from holdfast.units.work_list import open_work_list
from tests.units_world import UnitWorld

_NAMES: list[Any] = [5, None, "", "two words", "\udc80"]

_OF_JOBS: dict[str, Callable[[UnitWorld, Any], object]] = {
    "begin": lambda world, name: world.begin(name),
    "poll": lambda world, name: poll(world.inner, name),
    "forget": lambda world, name: forget_job(world.inner, name, world.environment),
    "watch": lambda world, name: next(_watched(world, name)),
}


def _watched(world: UnitWorld, name: Any) -> Iterator[object]:
    return watch(world.db, "t", job="" if name is None else name)  # None watches no job


@pytest.mark.parametrize("call", _OF_JOBS)
@pytest.mark.parametrize("name", _NAMES, ids=repr)
def test_no_job_has_such_a_name(name: Any, call: str) -> None:
    with pytest.raises(InvalidRequestError, match="the name of a job has 1 to 128 letters"):
        _OF_JOBS[call](UnitWorld(), name)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", _NAMES, ids=repr)
def test_no_work_list_has_such_a_name(name: Any, *, create: bool) -> None:
    with pytest.raises(InvalidRequestError, match="the name of a work list has 1 to 64 letters"):
        open_work_list(UnitWorld().db, name, create=create)


@pytest.mark.parametrize("item", ["ab", "abc", 1, None, ("a",), ("a", 1, 2, 3), ["a", 1]], ids=lambda item: f"{item!r}")
def test_an_item_is_a_pair_or_has_a_priority(item: Any) -> None:
    work = open_work_list(UnitWorld().db, "list", create=True)
    with pytest.raises(InvalidRequestError, match=r"an item is a pair \(key, value\)"):
        work.add_many([item])
    assert work.counts() == (0, 0)


@pytest.mark.parametrize("priority", [2.5, True, np.float64(1), np.array([1, 2]), np.array([1.5]), "1", None, 2**63])
def test_a_priority_is_an_integer(priority: Any) -> None:
    work = open_work_list(UnitWorld().db, "list", create=True)
    with pytest.raises(InvalidRequestError, match="a priority is an integer of 62 bits"):
        work.add("a", priority=priority)
    assert work.counts() == (0, 0)


def test_a_priority_may_be_an_integer_of_numpy() -> None:
    work = open_work_list(UnitWorld().db, "list", create=True)
    work.add("a", priority=np.int64(3))
    work.add("a", priority=3)
    assert work.counts() == (1, 0)
