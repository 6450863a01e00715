"""Define units, the functions that they call, and what these functions get."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, time, timedelta
from decimal import Decimal
from threading import get_ident
from typing import Any, TypeAlias, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.records.cell_transaction import CellAccessMethods, CellTransaction
from holdfast.records.cells import CellReader
from holdfast.records.row_keys import Row, encode_row
from holdfast.records.values import Value
from holdfast.runtime import TimeIsUp
from holdfast.units.work_list import NewItem, WorkList, encode_new_items
from holdfast.wording import suggest_nearest

UnitFunction: TypeAlias = "Callable[..., object]"
"""Takes a `UnitTransaction`, a key and a value."""

Cell: TypeAlias = "tuple[str, Row] | tuple[str, Row, str]"
"""Table, row and perhaps column."""

UnitReads: TypeAlias = "Callable[[Any, Any], Iterable[Cell]]"
"""Takes a key and a value, and names cells that the unit will read."""

MAX_ID_BYTES = 32 * 1024
"""The ids of all units that are deferred are part of one record."""

_MOST_SHOWN = 100
"""Characters of a key in a message."""

_IMMUTABLE = (str, bytes, int, float, bool, complex, type(None), Decimal, date, time, timedelta)


@dataclass(frozen=True, slots=True)
class Unit:
    """One call of a user's function, with a key and a value, which takes effect exactly once in its job.

    Attributes:
        key: identifies the unit in its job.
        id: the key as bytes, which sort as the keys do.
    """

    key: Row
    id: bytes
    _value: object = field(repr=False)
    _pickled: bytes | None = field(default=None, repr=False)

    @staticmethod
    def of(key: Row, value: object, unit_id: bytes | None = None) -> Unit:
        """Make a unit from a key and a value.

        Args:
            unit_id: what identifies it in its task, if the key alone does not.

        Raises:
            InvalidRequestError: the key is no text, integer, bytes or tuple of these, it is too long, or the value
                cannot be copied.
        """
        if unit_id is None:
            unit_id = encode_unit_id(key)
        if _is_immutable(value):
            return Unit(key, unit_id, value)
        try:
            return Unit(key, unit_id, None, pickle.dumps(value, 5))
        except Exception as error:
            raise InvalidRequestError(
                "the value of a unit cannot be copied for each run: pass plain values, such as lists or dictionaries",
                unit=format_key(key),
                type=type(value).__name__,
            ) from error

    @property
    def value(self) -> object:
        """Return the value: a copy each time, if a function could change it. Every run of the unit gets the same."""
        return self._value if self._pickled is None else pickle.loads(self._pickled)


def encode_unit_id(key: Row) -> bytes:
    """Encode the key of a unit as bytes, which sort as keys do.

    Raises:
        InvalidRequestError: the key is no text, integer, bytes or tuple of these, or it is too long.
    """
    unit_id = encode_row(key)
    if len(unit_id) > MAX_ID_BYTES:
        raise InvalidRequestError(
            f"the key of a unit is limited to {MAX_ID_BYTES} bytes: use a digest of it", bytes=len(unit_id)
        )
    return unit_id


def format_key(key: Row) -> Row:
    """Return the key of a unit for a message; of a long key, only the beginning as text."""
    text = repr(key)
    return key if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _is_immutable(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_immutable, value))
    return isinstance(value, _IMMUTABLE)


CLIENT, SERVER = "client", "server"

_BUFFERING = (CLIENT, SERVER)
MOST_DEFERRED = 100
"""So many ids of the longest kind fit into the record of a task's progress."""

_NUMBERS = {"group": 1024, "max_reads": 10**9, "rounds": 1000, "most_deferred": MOST_DEFERRED}
"""The most that a setting may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSettings:
    """The settings with which the units of a job run.

    Attributes:
        group: the most units that share one commit; 1 commits each by itself. Groups shrink while they conflict.
            More units in a commit need fewer round trips, and become visible later.
        buffering: where the read list of a unit is (paper 003, 4.3): ``client`` keeps what was read in the memory of
            the task, and validates it at the commit; ``server`` keeps it as locks in the database, for units that read
            too much for the memory of a task: each read is a round trip then, and each unit has a commit of its own.
        max_reads: how many cells a unit may read.
        timeout_s: how long one run of a unit's function may take, seconds.
        patience_s: how long a task waits for a database that is not available, seconds.
        lease_s: after how many seconds without a heartbeat of a work list's worker others take over its items. A C call
            that holds the GIL for longer makes others run the unit again and again.
        rounds: how often a unit that conflicts is tried again at the end of its task. Then follow up to ten attempts
            in which the unit locks what it reads; if it still conflicts, the task fails.
        most_deferred: how many units may be deferred because they conflict, before they are tried again at once: their
            keys are part of every commit, and the units stay in memory.
    """

    group: int = 32
    buffering: str = CLIENT
    max_reads: int = 100_000
    timeout_s: float = 60.0
    patience_s: float = 120.0
    lease_s: float = 30.0
    rounds: int = 7
    most_deferred: int = MOST_DEFERRED

    @staticmethod
    def of(given: Mapping[str, Any]) -> UnitSettings:
        """Make settings from keyword arguments, and check them.

        Raises:
            InvalidRequestError: there is no such setting, or a value is out of range.
        """
        known = [one.name for one in fields(UnitSettings)]
        for name in given:
            if name not in known:
                raise InvalidRequestError(
                    f"there is no such setting for units: {suggest_nearest(name, known)}", setting=name
                )
        return UnitSettings(**given)

    def __post_init__(self) -> None:
        if self.buffering not in _BUFFERING:
            raise InvalidRequestError(
                f"no such buffering: {suggest_nearest(str(self.buffering), _BUFFERING)}", buffering=self.buffering
            )
        for name, most in _NUMBERS.items():
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
                raise InvalidRequestError(f"{name} is a number from 1 to {most}: change it", given=given)
        for name in ("timeout_s", "patience_s", "lease_s"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 10**7:
                raise InvalidRequestError(f"{name} is a number of seconds greater than 0: change it", given=given)


# --- what a function gets ---------------------------------------------------------------------------------------------
T = TypeVar("T")


class UnitTransaction(CellAccessMethods):
    """The transaction of one unit, with which its function reads and writes cells: the function's first argument.

    Guarantee: all that the function reads and writes through it takes effect in one step, exactly once, as if the units
    of all tasks ran one after the other. The function may run several times before that, and may then see cells that
    never existed together; all writes of such a run are dropped. The function must not write elsewhere, and
    its loops must end.
    After the function has returned, and in other threads and forked children, every call is refused.

    Attributes:
        failure: an error of the database in a call; the unit fails then, even if the function goes on.
    """

    __slots__ = ("_cells", "_emit_to", "_is_over", "_thread", "failure")

    def __init__(self, cells: CellTransaction, emit_to: WorkList | None) -> None:
        self._cells = cells
        self._emit_to = emit_to
        self._thread = get_ident()
        self._is_over = False
        self.failure: BaseException | None = None

    def end(self) -> None:
        """Refuse further calls, because they would read and write for another unit."""
        self._is_over = True

    def scan(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        limit: int | None = None,
    ) -> list[tuple[Row, dict[str, Value]]]:
        """Return rows in order, each with its values by column.

        A unit that scans conflicts with every unit that changes the range meanwhile: keep the range small.

        Args:
            start, end: the first row, and the first row that is not returned any more.
            prefix: only rows that begin with this text, these bytes, or these parts of a tuple.
            limit: the most rows to return.
        """
        return self._access_cells(lambda cells: cells.scan(table, start=start, end=end, prefix=prefix, limit=limit))

    def emit(self, key: Row, value: Value | None = None, *, priority: int = 0) -> None:
        """Add a key to the job's work list, in the same step as all that the unit writes. See `OpenWorkList.add`."""
        self.emit_many([(key, value, priority)])

    def emit_many(self, items: Iterable[NewItem]) -> None:
        """Add many keys to the job's work list, in the same step as all that the unit writes.

        Args:
            items: pairs of key and value, or triples with a priority.
        """
        self._access_cells(lambda cells: self._add_work(cells, items))

    def _add_work(self, cells: CellTransaction, items: Iterable[NewItem]) -> None:
        work = self._emit_to
        if work is None:
            raise InvalidRequestError("the job has no work list: pass emit_to='name of the list'")
        records = list(encode_new_items(work, items))  # all or none: the function may catch the error of an item
        cells.require_version(work.definition_key, work.version)
        for key, encoded in records:
            cells.put_record(key, encoded)

    def _read(self, call: Callable[[CellReader], T]) -> T:
        return self._access_cells(call)

    def _write(self, call: Callable[[CellTransaction], T]) -> T:
        return self._access_cells(call)

    def _access_cells(self, call: Callable[[CellTransaction], T]) -> T:
        if self._is_over:
            raise InvalidRequestError(
                "the unit of this transaction has ended: use it only while its function runs, and do not keep it"
            )
        if get_ident() != self._thread:
            # Two threads could see two versions of a cell, of which only one is validated.
            error = InvalidRequestError(
                "a transaction belongs to the thread in which its function was called: read and write there"
            )
            self.failure = self.failure or error
            raise error
        try:
            return call(self._cells)
        except TimeIsUp:
            raise  # the alarm comes back to it
        except BaseException as error:
            # The function may catch the error of a wrong call. Nobody validates what is wrong with the database.
            if type(error) is not InvalidRequestError:
                self.failure = self.failure or error
            raise
