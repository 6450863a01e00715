"""Do every ordered pair of operations on one cell, in one unit and in two, and compare with a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import pytest

from holdfast.records import CellTransaction, Database
from holdfast.transactions.base import Committed
from tests.unit.records.databases import FAST, SERVERS, begin, open_dbs

_Model: TypeAlias = "dict[str, int]"  # row -> value


class _Operation(NamedTuple):
    """An operation on the cell of a row, and what it does to the model; both return what a caller gets to see."""

    run: Callable[[CellTransaction, str, str], object]
    apply: Callable[[_Model, str], object]


def _add(model: _Model, row: str) -> None:
    model[row] = model.get(row, 0) + 3


_OPERATIONS = {
    "get": _Operation(lambda cells, table, row: cells.get(table, row), lambda model, row: model.get(row)),
    "put": _Operation(lambda cells, table, row: cells.put(table, row, 40), lambda model, row: model.update({row: 40})),
    "add": _Operation(lambda cells, table, row: cells.add(table, row, 3), _add),
    "delete": _Operation(
        lambda cells, table, row: cells.delete(table, row), lambda model, row: (model.pop(row, None), None)[1]
    ),
    "scan": _Operation(
        lambda cells, table, row: cells.scan(table, prefix=row),
        lambda model, row: [(row, {"value": model[row]})] if row in model else [],
    ),
    "get_many": _Operation(
        lambda cells, table, row: cells.get_many(table, [row, f"{row}/none"]),
        lambda model, row: {row: model[row]} if row in model else {},
    ),
    "get_row": _Operation(
        lambda cells, table, row: cells.get_row(table, row),
        lambda model, row: {"value": model[row]} if row in model else {},
    ),
}
_ENDS = ("one unit", "two units", "first dropped", "second dropped")


class _Case(NamedTuple):
    first: str
    second: str
    before: int | None
    end: str

    @property
    def row(self) -> str:
        return "/".join(map(str, self)) + "."


def _cases(ends: Sequence[str] = _ENDS) -> Iterator[_Case]:
    for first, second, before, end in product(_OPERATIONS, _OPERATIONS, (None, 5), ends):
        yield _Case(first, second, before, end)


def _run(cells: CellTransaction, table: str, case: _Case, model: _Model) -> None:
    """Do the two operations, and compare each answer; leave in the model what the transaction has made of the cell."""
    first, second = _OPERATIONS[case.first], _OPERATIONS[case.second]
    before = dict(model)
    assert first.run(cells, table, case.row) == first.apply(model, case.row), case
    if case.end == "first dropped":
        cells.drop_unit()
        model.clear()
        model.update(before)
    elif case.end != "one unit":
        cells.end_unit()
    before = dict(model)
    assert second.run(cells, table, case.row) == second.apply(model, case.row), case
    if case.end == "second dropped":
        cells.drop_unit()
        model.clear()
        model.update(before)
    else:
        cells.end_unit()
    assert cells.get(table, case.row) == model.get(case.row), case


def _prepare(db: Database, table: str, cases: Sequence[_Case]) -> None:
    def write(cells: CellTransaction) -> None:
        for case in cases:
            if case.before is not None:
                cells.put(table, case.row, case.before)

    db.transact(write)


@pytest.mark.parametrize("history", [False, 1, 2, True])
@pytest.mark.parametrize("backend", FAST)
def test_every_pair_in_transactions_of_their_own(
    backend: str, history: bool | int, request: pytest.FixtureRequest
) -> None:
    cases = list(_cases(_ENDS if backend == "memory" else ("two units",)))
    with open_dbs(backend, request) as (db, other):
        db.create_table("pairs", history=history)
        _prepare(db, "pairs", cases)
        for case in cases:
            model = {} if case.before is None else {case.row: case.before}
            cells = begin(db.backend)
            _run(cells, "pairs", case, model)
            assert isinstance(db.backend.commit(cells.to_commit()), Committed), case
            assert other.get("pairs", case.row) == model.get(case.row), case


@pytest.mark.parametrize("history", [False, 2])
@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_every_pair_in_one_large_transaction(backend: str, history: int, request: pytest.FixtureRequest) -> None:
    cases = list(_cases())
    with open_dbs(backend, request) as (db, other):
        db.create_table("pairs", history=history)
        _prepare(db, "pairs", cases)
        cells = begin(db.backend)
        with db.snapshot() as snapshot:
            cells.prefetch(cells.cell_key("pairs", case.row) for case in cases)
            model: _Model = {}
            for case in cases:
                own = {} if case.before is None else {case.row: case.before}
                _run(cells, "pairs", case, own)
                model |= own
            assert isinstance(db.backend.commit(cells.to_commit()), Committed)
            assert dict(snapshot.scan("pairs")) == {
                case.row: {"value": case.before} for case in cases if case.before is not None
            }
        assert dict(other.scan("pairs")) == {row: {"value": value} for row, value in model.items()}
