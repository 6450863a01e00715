"""Random units over tables with and without history do what a dictionary does."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.transactions.base import Committed
from tests.unit.records.databases import begin, memory_db

_Cell: TypeAlias = tuple[str, Row, str]
_TABLES = {"plain": 0, "some": 2, "all": 2**62 - 1}
_ROWS: list[Row] = ["a", ("a", 1), 7]
_cells = st.tuples(st.sampled_from(list(_TABLES)), st.sampled_from(_ROWS), st.sampled_from(["value", "c"]))
_values: st.SearchStrategy[Value] = st.integers(-9, 9) | st.sampled_from(["text", b"", [1]])


def _order(row: Row) -> list[tuple[bool, object]]:
    return [(isinstance(part, int), part) for part in (row if isinstance(row, tuple) else (row,))]


class CellMachine(RuleBasedStateMachine):
    """Compares a transaction of several units with dictionaries: of the commits, the ended units and the own one."""

    @initialize()
    def create(self) -> None:
        self.db = memory_db()
        for table, history in _TABLES.items():
            self.db.create_table(table, history=history)
        self.committed: dict[_Cell, Value] = {}
        self.written: dict[_Cell, list[Value | None]] = {}  # each value that the cell had, in order
        self._begin()

    def _begin(self) -> None:
        self.cells = begin(self.db.backend)
        self.ended = dict(self.committed)
        self.own = dict(self.committed)
        self.ended_writes: list[tuple[_Cell, Value | None]] = []
        self.own_writes: list[tuple[_Cell, Value | None]] = []

    @rule(cell=_cells)
    def get(self, cell: _Cell) -> None:
        table, row, column = cell
        assert self.cells.get(table, row, column=column) == self.own.get(cell)

    @rule(cell=_cells)
    def get_many(self, cell: _Cell) -> None:
        table, _row, column = cell
        expected = {row: self.own[table, row, column] for row in _ROWS if (table, row, column) in self.own}
        assert self.cells.get_many(table, _ROWS, column=column) == expected

    @rule(cell=_cells)
    def get_row(self, cell: _Cell) -> None:
        assert self.cells.get_row(cell[0], cell[1]) == self._rows(cell[0]).get(cell[1], {})

    @rule(cell=_cells, limit=st.none() | st.integers(1, 6), part=st.sampled_from(["all", "prefix", "start", "end"]))
    def scan(self, cell: _Cell, limit: int | None, part: str) -> None:
        table, row, _column = cell
        bounds: dict[str, Any] = {} if part == "all" else {part: ("a",) if part == "prefix" else row}
        rows = self._rows(table).items()
        if part == "prefix":
            rows = {one: columns for one, columns in rows if _order(one)[:1] == [(False, "a")]}.items()
        elif part == "start":
            rows = {one: columns for one, columns in rows if _order(one) >= _order(row)}.items()
        elif part == "end":
            rows = {one: columns for one, columns in rows if _order(one) < _order(row)}.items()
        assert self.cells.scan(table, limit=limit, **bounds) == list(rows)[:limit]

    @rule(cell=_cells, value=_values)
    def put(self, cell: _Cell, value: Value) -> None:
        self.cells.put(cell[0], cell[1], value, column=cell[2])
        self.own[cell] = value
        self.own_writes.append((cell, value))

    @rule(cell=_cells)
    def delete(self, cell: _Cell) -> None:
        self.cells.delete(cell[0], cell[1], column=cell[2])
        if cell in self.own:
            del self.own[cell]
            self.own_writes.append((cell, None))

    @rule(cell=_cells, amount=st.integers(-5, 5))
    def add(self, cell: _Cell, amount: int) -> None:
        before = self.own.get(cell, 0)
        if not isinstance(before, int):
            self.get(cell)  # or the transaction could not know
            with pytest.raises(InvalidRequestError, match="only an integer"):
                self.cells.add(cell[0], cell[1], amount, column=cell[2])
            return
        self.cells.add(cell[0], cell[1], amount, column=cell[2])
        self.own[cell] = before + amount
        self.own_writes.append((cell, before + amount))

    @rule()
    def end_unit(self) -> None:
        self.cells.end_unit()
        self.ended = dict(self.own)
        self.ended_writes += self.own_writes
        self.own_writes = []

    @rule()
    def drop_unit(self) -> None:
        self.cells.drop_unit()
        self.own = dict(self.ended)
        self.own_writes = []

    @precondition(lambda self: not self.own_writes)
    @rule()
    def commit(self) -> None:
        assert isinstance(self.db.backend.commit(self.cells.to_commit()), Committed)
        self.committed = dict(self.ended)
        for cell, value in self.ended_writes:
            self.written.setdefault(cell, []).append(value)
        self._begin()
        for table, history in _TABLES.items():
            assert dict(self.db.scan(table)) == self._rows(table)
            if history:
                self._compare_histories(table, history)

    def _compare_histories(self, table: str, history: int) -> None:
        for row in _ROWS:
            for column in ("value", "c"):
                values = self.written.get((table, row, column), [])
                kept = list(enumerate(values, start=1))[-history:]
                assert self.db.history(table, row, column=column) == kept

    def _rows(self, table: str) -> dict[Row, dict[str, Value]]:
        found: dict[Row, dict[str, Value]] = {}
        for _table, row, column in sorted(
            (cell for cell in self.own if cell[0] == table), key=lambda cell: (_order(cell[1]), cell[2])
        ):
            found.setdefault(row, {})[column] = self.own[table, row, column]
        return found


TestCellMachine = CellMachine.TestCase
TestCellMachine.settings = settings(max_examples=25, stateful_step_count=40)
