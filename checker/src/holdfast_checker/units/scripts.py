"""Run the scripts of computation units, on real transactions and on a sequential model.

A script is a tuple of steps, and a step is a tuple: its kind, then its arguments. Played on plain values, it is the
sequential meaning of a unit. A unit writes down what it saw, and counts its effects, in the same transaction as
everything else; so the state of the database shows which units took effect, how often, and what they had read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from holdfast.records.cells import VALUE
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast_checker.histories.history import Operation

CELLS, EFFECTS = "cells", "effects"
"""The tables: what scripts read and write; and what is known of units, with one row for each of them."""

TIMES, SAW = "times", "saw"
"""The columns of a unit: how often it took effect, and what it had read."""

Script: TypeAlias = Sequence[tuple[Any, ...]]

Shards: TypeAlias = tuple[Mapping[str, Script], ...]
"""The units of each task of a job: scripts by key."""

Contents: TypeAlias = tuple[tuple[str, Value], ...]
"""All cells in the order of their rows."""


_READS = {"read": 1, "increment": 1, "create": 1, "move": 2, "together": 1}
"""By the kind of a step, how many of its first arguments are rows that it is known to read. Of cells that are read
together, only one is, so that the other one comes from another snapshot."""


class InconsistentReadError(Exception):
    """Raised if a script reads different values of two cells that are equal in every committed state."""


class CellAccess(Protocol):
    """The part of the `UnitTransaction` interface that scripts use: reads and writes of cells."""

    def get(self, table: str, row: Row) -> Value | None: ...

    def scan(self, table: str, *, prefix: Row | None = None) -> list[tuple[Row, dict[str, Value]]]: ...

    def put(self, table: str, row: Row, value: Value, *, column: str = VALUE) -> None: ...

    def add(self, table: str, row: Row, amount: int = 1, *, column: str = VALUE) -> None: ...

    def delete(self, table: str, row: Row) -> None: ...

    def emit(self, key: Row) -> None: ...


def run_unit(cells: CellAccess, key: Row, script: Script) -> None:
    """Run the script of a unit, and record in the same transaction that the unit took effect and what it read.

    Raises:
        InconsistentReadError: the reads of the script do not belong to one snapshot.
    """
    saw = _run_script_steps(cells, script)
    cells.add(EFFECTS, key, 1, column=TIMES)
    cells.put(EFFECTS, key, saw, column=SAW)


def declared_cells_of(script: Script) -> list[tuple[str, str]]:
    """Return the cells that a script declares to read, as (table, row) without duplicates."""
    rows = [row for kind, *arguments in script if kind in _READS for row in arguments[: _READS[kind]]]
    return [(CELLS, row) for row in dict.fromkeys(rows)]


def apply_to_model(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Apply the script of a unit to the cells of the sequential model.

    Returns:
        The cells afterwards, and the values that the script read.
    """
    cells = _DictionaryCells(dict(cast("Contents", state)))
    if operation.name == "empty":
        return (), None
    if operation.name == "everything":
        return state, state
    saw = _run_script_steps(cells, cast("Script", operation.args))
    return tuple(sorted(cells.values.items())), saw


def _run_script_steps(cells: CellAccess, script: Script) -> list[Any]:
    interpreter = _UnitScriptInterpreter(cells)
    for kind, *arguments in script:
        getattr(interpreter, kind)(*arguments)
    return interpreter.saw


class _UnitScriptInterpreter:
    """Runs the steps of a unit's script on cells, and collects what its reads return in `saw`."""

    def __init__(self, cells: CellAccess) -> None:
        self.saw: list[Any] = []
        self._cells = cells

    # --- single cells -------------------------------------------------------------------------------------------------
    def read(self, row: str) -> Value | None:
        found = self._cells.get(CELLS, row)
        self.saw.append(found)
        return found

    def put(self, row: str, value: Value) -> None:
        self._cells.put(CELLS, row, value)

    def add(self, row: str, amount: int) -> None:
        self._cells.add(CELLS, row, amount)

    def delete(self, row: str) -> None:
        self._cells.delete(CELLS, row)

    def emit(self, key: str) -> None:
        """Add a key to the work list."""
        self._cells.emit(key)

    # --- writes that depend on reads ----------------------------------------------------------------------------------
    def increment(self, row: str) -> None:
        """Read a number, and write the next one."""
        found = self.read(row)
        self.put(row, (found if isinstance(found, int) else 0) + 1)

    def create(self, row: str, value: Value) -> None:
        """Write a cell if it does not exist."""
        if self.read(row) is None:
            self.put(row, value)

    def swap_off(self, own: str, other: str) -> None:
        """Turn a cell off if another one is on, so that one of them always stays on."""
        if self.read(other) == "on":
            self.put(own, "off")

    def count(self, prefix: str, row: str) -> None:
        """Count the rows whose keys begin with a prefix, and write the number to a cell."""
        self.put(row, len(self._scan(prefix)))

    def claim(self, prefix: str, row: str) -> None:
        """Write a cell if no row begins with a prefix."""
        if not self._scan(prefix):
            self.put(row, "claimed")

    def move(self, one: str, other: str) -> None:
        """Increment two cells that are equal in every state."""
        self.increment(one)
        self.increment(other)

    def together(self, one: str, other: str) -> None:
        """Read two cells that are equal in every state.

        Raises:
            InconsistentReadError: they differ.
        """
        if self.read(one) != self.read(other):
            raise InconsistentReadError(f"{one} and {other} differ")

    def fail(self) -> None:
        """Fail, whatever the cells contain."""
        raise InconsistentReadError("always")

    def _scan(self, prefix: str) -> list[Any]:
        found = [[row, columns[VALUE]] for row, columns in self._cells.scan(CELLS, prefix=prefix)]
        self.saw.append(found)
        return found


class _DictionaryCells:
    """The cells of one table, as a dictionary."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def get(self, table: str, row: Row) -> Value | None:
        return self.values.get(cast("str", row))

    def scan(self, table: str, *, prefix: Row | None = None) -> list[tuple[Row, dict[str, Value]]]:
        start = cast("str", prefix)
        return [(row, {VALUE: value}) for row, value in sorted(self.values.items()) if row.startswith(start)]

    def put(self, table: str, row: Row, value: Value, *, column: str = VALUE) -> None:
        self.values[cast("str", row)] = value

    def add(self, table: str, row: Row, amount: int = 1, *, column: str = VALUE) -> None:
        before = self.values.get(cast("str", row), 0)
        assert isinstance(before, int), "scripts add to numbers"
        self.values[cast("str", row)] = before + amount

    def delete(self, table: str, row: Row) -> None:
        self.values.pop(cast("str", row), None)

    def emit(self, key: Row) -> None:
        """Do nothing: the work list is checked separately."""
