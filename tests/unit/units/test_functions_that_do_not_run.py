"""A unit counts as done if its function has run, and not if it has only returned what would run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, starmap
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.units.unit import SERVER, UnitSettings
from tests.units_world import UnitWorld

_KEYS = ("a", "b", "c")

_SETTINGS = [
    pytest.param(UnitSettings(group=1), id="one by one"),
    pytest.param(UnitSettings(group=32), id="groups"),
    pytest.param(UnitSettings(buffering=SERVER), id="server"),
]


def good(txn: Any, key: Row, value: object) -> None:
    txn.add("t", key)


def yields(txn: Any, key: Row, value: object) -> Iterator[None]:
    good(txn, key, value)
    yield


async def waits(txn: Any, key: Row, value: object) -> None:
    good(txn, key, value)


def starts_a_task(txn: Any, key: Row, value: object) -> object:
    async def start() -> object:
        return asyncio.get_running_loop().create_task(waits(txn, key, value))

    return asyncio.run(start())


def starts_a_thread(txn: Any, key: Row, value: object) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(int)


async def waits_and_yields(txn: Any, key: Row, value: object) -> AsyncIterator[None]:
    good(txn, key, value)
    yield


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (yields, "generator"),
        (waits, "coroutine"),
        (waits_and_yields, "async_generator"),
        (lambda txn, key, value: (good(txn, row, value) for row in [key]), "generator"),
        (lambda txn, key, value: map(partial(good, txn, key), [value]), "map"),
        (lambda txn, key, value: starmap(good, [(txn, key, value)]), "starmap"),
        (lambda txn, key, value: zip(map(partial(good, txn, key), [value]), [1], strict=False), "zip"),
        (lambda txn, key, value: chain(good(txn, row, value) for row in [key]), "chain"),
        (lambda txn, key, value: [(good(txn, row, value) for row in [key])], "list"),
        (lambda txn, key, value: True, "bool"),
        (lambda txn, key, value: np.zeros(2), "ndarray"),
        (starts_a_task, "Task"),
        (starts_a_thread, "Future"),
    ],
)
@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_unit_whose_function_has_not_run_is_not_done(
    settings: UnitSettings, function: Callable[..., object], returned: str
) -> None:
    world = UnitWorld()
    with pytest.raises(
        InvalidRequestError,
        match=rf"must return None, because.*returned='{returned}'.*unit='a'",
    ):
        world.run(function, _KEYS, settings)
    assert world.cells == {} and world.progress.done == 0
