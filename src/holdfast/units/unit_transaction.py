"""Give a unit's function its view of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.records.cell_transaction import CellCalls, CellTransaction
from holdfast.records.cells import CellReader
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.runtime import TimeIsUp
from holdfast.units.work_list import Combine, NewItem, WorkList, new_records

T = TypeVar("T")


class UnitTransaction(CellCalls):
    """The transaction of one unit: the first argument of its function.

    Guarantee: all that the function reads and writes through it takes effect in one step, exactly once, as if the units
    of all tasks ran one after the other. The function may run several times before that, and may then see cells that
    never existed together; whatever it does with them is dropped. So it writes nothing elsewhere, and its loops end.
    After the function has returned, and in other threads and forked children, every call is refused.

    Attributes:
        failure: what a call found wrong with the database; the unit fails then, even if the function goes on.
    """

    __slots__ = ("_cells", "_emit_to", "_is_over", "_thread", "failure")

    def __init__(self, cells: CellTransaction, emit_to: WorkList | None) -> None:
        self._cells = cells
        self._emit_to = emit_to
        self._thread = get_ident()
        self._is_over = False
        self.failure: BaseException | None = None

    def end(self) -> None:
        """Refuse further calls: what somebody who has kept the transaction writes now would be another unit's."""
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
        return self._call(lambda cells: cells.scan(table, start=start, end=end, prefix=prefix, limit=limit))

    def emit(self, key: Row, value: Value | None = None, *, priority: int = 0, combine: Combine | None = None) -> None:
        """Add a key to the work list, in the same step as everything else. See `OpenWorkList.add`."""
        self.emit_many([(key, value, priority)], combine=combine)

    def emit_many(self, items: Iterable[NewItem], *, combine: Combine | None = None) -> None:
        """Add many keys to the work list, in the same step as everything else.

        Args:
            items: pairs of key and value, or triples with a priority.
            combine: see `OpenWorkList.add_many`. What waits is read then, in one round trip, so the unit conflicts with
                whoever adds one of the keys meanwhile, or takes it.
        """
        self._call(lambda cells: self._add_work(cells, items, combine))

    def _add_work(self, cells: CellTransaction, items: Iterable[NewItem], combine: Combine | None) -> None:
        work = self._emit_to
        if work is None:
            raise InvalidRequestError("the job has no work list: pass emit_to='name of the list'")
        records = list(new_records(work, items, combine))
        cells.require(work.definition_key, work.version)
        if combine is not None:
            cells.prefetch(one.key for one in records)
        waiting: dict[bytes, bytes] = {}  # written at the end: the function may catch the error of a value
        for one in records:
            encoded = one.encoded
            if combine is not None:
                before = waiting[one.key] if one.key in waiting else cells.get_record(one.key)
                encoded = one.combined_with(before, combine)
            waiting[one.key] = encoded
        for key, encoded in waiting.items():
            cells.put_record(key, encoded)

    def _read(self, call: Callable[[CellReader], T]) -> T:
        return self._call(call)

    def _write(self, call: Callable[[CellTransaction], T]) -> T:
        return self._call(call)

    def _call(self, call: Callable[[CellTransaction], T]) -> T:
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
