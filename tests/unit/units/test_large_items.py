"""Items of work lists as large as they may be: whatever can be added can be claimed, and what cannot is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.runtime import Alarm
from holdfast.transactions.base import MAX_KEY_BYTES, Backend, ScanPage
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job
from holdfast.units.unit import UnitSettings
from holdfast.units.work_list import OpenWorkList, claim_items, find_work_list, open_work_list
from holdfast.units.work_task import WorkTask
from tests.clocks import never
from tests.units_world import Shaky, UnitWorld

_MOST = 4 * 1024 * 1024 - 1
"""One byte says which type the value has."""

_GROUP = 1024
"""As many as share a commit at most."""


def note_size(txn: Any, key: Row, value: bytes) -> None:
    txn.put("t", key, len(value))


class _Listed(UnitWorld):
    """A world with a work list."""

    def __init__(self) -> None:
        super().__init__()
        self.items: OpenWorkList = open_work_list(self.db, "w", create=True)

    def work(self, database: Backend | None = None, workers: int = 1) -> None:
        """Run the first worker until the list is at its end."""
        database = database or self.inner
        job = begin_job(self.inner, "work", kind=WORK_LIST, shards=workers, environment=self.environment)
        work = find_work_list(self.inner, "w")
        execution = UnitExecution(
            note_size, database, UnitSettings(), self.environment, emit_to=work, alarm=Alarm(is_on=False)
        )
        WorkTask(execution, database, job, 0, work, repeat=never).run()


def test_the_largest_values_are_claimed() -> None:
    world = _Listed()
    world.items.add_many([(key, bytes(_MOST)) for key in range(3)])
    world.work()
    assert world.cells == {(key, "value"): _MOST for key in range(3)}


def test_whoever_looks_for_work_reads_few_large_values_at_once() -> None:
    world = _Listed()
    world.items.add_many([(key, bytes(_MOST // 8)) for key in range(200)])
    shaky = Shaky(world.inner)
    read: list[int] = []
    shaky.after = lambda _number, name: read.append(_size(shaky.last)) if name == "scan" else None
    world.work(shaky, workers=8)
    assert len(world.cells) == 200
    before, first, *later = read
    assert before == 0, "an earlier attempt has left no claim"
    assert first < 16 * _MOST, "the first look does not know how large the values are"
    assert max(later) < 2 * _MOST


def _size(page: object) -> int:
    assert isinstance(page, ScanPage)
    return sum(len(record.value) for _key, record in page.records)


def test_many_items_with_the_longest_keys_are_claimed() -> None:
    world = _Listed()
    length = MAX_KEY_BYTES - 36
    world.items.add_many([(f"{key:0{length}}", bytes(2 * 1024 - 1)) for key in range(_GROUP)])
    work = find_work_list(world.inner, "w")
    waiting = world.inner.scan(*work.waiting, _GROUP).records
    assert claim_items(world.inner, work, work.claim_key(0), waiting, {}) is not None
    assert world.items.counts() == (0, _GROUP)


def test_larger_values_are_refused() -> None:
    world = _Listed()
    with pytest.raises(InvalidRequestError, match=r"the value of an item is limited to 4194304 bytes.*bytes=4194305"):
        world.items.add("a", bytes(_MOST + 1))
    assert world.items.counts() == (0, 0)
