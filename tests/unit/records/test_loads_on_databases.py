"""Load tables into every database, from several tasks at once, some of which run twice."""

from __future__ import annotations

import threading

import pytest

from holdfast.errors import FencedError
from holdfast.records.cells import rows_range
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.records.loads import AttemptReport, Load, begin_load, finish_load
from holdfast.records.splits import divide
from tests.unit.records.databases import FAST, SERVERS, Opened, open_dbs

_TASKS, _ROWS, _BATCH = 3, 120, 30


def rows_of(task: int) -> list[LoadRow]:
    return [((task, number), {"n": number, "text": f"{task}\0{number}"}) for number in range(_ROWS)]


def run(dbs: Opened, load: Load) -> list[AttemptReport]:
    """Run every task twice at once, and return what the first attempts report."""
    found: dict[tuple[int, int], AttemptReport] = {}

    def attempt(task: int, number: int) -> None:
        db = dbs[number]
        one = LoadTask(db.backend, db.environment, load, task)
        rows = rows_of(task)
        for start in range(0, _ROWS, _BATCH):
            one.write(rows[start : start + _BATCH])
        found[task, number] = one.finish()

    threads = [threading.Thread(target=attempt, args=(task, number)) for task in range(_TASKS) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 * _TASKS
    return [found[task, 0] for task in range(_TASKS)]


@pytest.mark.parametrize("backend", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def test_loads_of_every_kind(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as dbs:
        db = dbs.db
        expected = {row: dict(columns) for task in range(_TASKS) for row, columns in rows_of(task)}
        for overwrite, history in ((False, None), (True, None), (False, None), (False, 3), (True, None)):
            if history is not None:
                db.drop_table("t")
                db.create_table("t", history=history)
            load = begin_load(db.backend, db.environment, "t", overwrite=overwrite)
            reports = run(dbs, load)
            zombie = LoadTask(db.backend, db.environment, load, 0)
            finish_load(db.backend, db.environment, load, reports)
            assert dict(dbs.other.scan("t")) == expected
            if load.history:
                assert db.history("t", (1, 7), column="n") == [(1, 7)]
            with pytest.raises(FencedError):
                zombie.write(rows_of(9))
        db.collect()
        with db.snapshot() as snapshot:
            table = snapshot.table("t")
            points = divide(snapshot.reader, table, *rows_range(table), 4).points
        assert 1 <= len(points) <= 3
