"""Let people fill and look at work lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.errors import NotFoundError
from holdfast.records.batches import batches, in_several_commits, read_records
from holdfast.records.cells import apply_writes
from holdfast.records.database import Database, require_open_database
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.transactions.base import Commit, Conflict, SnapshotReader
from holdfast.transactions.retry import run_transaction
from holdfast.transactions.transaction import Transaction
from holdfast.units.claims import decode_claim
from holdfast.units.work_list import (
    Combine,
    NewItem,
    NewRecord,
    WorkList,
    create_work_list,
    drop_work_list,
    find_work_list,
    new_records,
)

_BATCH = 500


class OpenWorkList:
    """A work list of an open database: keys with values and priorities, which workers take and units add to.

    Attributes:
        name: of the list.
    """

    def __init__(self, database: Database, work: WorkList) -> None:
        self.name = work.name
        self._database = database
        self._work = work

    def add(self, key: Row, value: Value | None = None, *, priority: int = 0, combine: Combine | None = None) -> None:
        """Add a key. What waits already with this value and this priority waits, and runs, once.

        A job that runs takes it too, unless it has ended: then give the next run another name.

        Args:
            priority: keys with smaller numbers are taken first.
            combine: see `add_many`.

        Raises:
            NotFoundError: the list was dropped.
        """
        self.add_many([(key, value, priority)], combine=combine)

    def add_many(self, items: Iterable[NewItem], *, combine: Combine | None = None) -> int:
        """Add many keys, some hundreds in each transaction; return how many were given.

        Args:
            combine: makes one value of two, such as `min`: a key that waits already with this priority, added with
                `combine` too, then waits once, with the combined value. Without it, each of its values runs.

        Raises:
            InvalidRequestError: an item is not valid.
            NotFoundError: the list was dropped.
            ConflictError: the database has lost some of the keys meanwhile, as in a failover.
            TransactionConflictError: others kept changing what waits; some of the keys may be there.
            OutcomeUnknownError: the reply was lost.

        Crash: some are there. After that, and after these errors, add all of them again, unless to combine values twice
            changes them, as sums do, or a job works on the list: what it has done already would run again. So fill a
            list before its job begins, or let the units see what is done, in a table.
        """
        count = 0
        found = batches(new_records(self._work, items, combine), _BATCH, lambda one: len(one.encoded))
        for batch, adds in in_several_commits(found, self._database.backend, self._database.environment):
            if combine is None:
                self._put(batch, adds)
            else:
                self._combine(batch, combine, adds)
            count += len(batch)
        return count

    def _put(self, batch: Sequence[NewRecord], adds: Mapping[bytes, int]) -> None:
        puts = {one.key: one.encoded for one in batch}
        commit = Commit(reads={self._work.definition_key: self._work.version}, puts=puts, adds=adds)
        if isinstance(self._database.backend.commit(commit), Conflict):
            raise self._dropped()

    def _combine(self, batch: Sequence[NewRecord], combine: Combine, adds: Mapping[bytes, int]) -> None:
        definition_key = self._work.definition_key

        def add(transaction: Transaction) -> None:
            found = transaction.get_many([definition_key, *(one.key for one in batch)])
            if definition_key not in found or found[definition_key].version != self._work.version:
                raise self._dropped()
            for one in batch:
                waiting = transaction.get(one.key)
                transaction.put(one.key, one.combined_with(None if waiting is None else waiting.value, combine))
            apply_writes(adds, transaction)

        run_transaction(self._database.backend, add, self._database.environment)

    def _dropped(self) -> NotFoundError:
        return NotFoundError("the work list was dropped: open it again with create=True", list=self.name)

    def counts(self) -> tuple[int, int]:
        """Return how many keys wait, and how many workers have taken, at one moment."""
        with self._database.backend.snapshot() as reader:
            return count_items(reader, self._work)

    def drop(self) -> None:
        """Drop the list with everything that waits."""
        drop_work_list(self._database.backend, self.name, self._database.environment)

    def __repr__(self) -> str:
        return f"OpenWorkList({self.name!r})"


def count_items(reader: SnapshotReader, work: WorkList) -> tuple[int, int]:
    """Return how many keys of a list wait, and how many workers have taken."""
    waiting = claimed = 0
    for key, record in read_records(reader, *work.range):
        if work.item_of(key, record) is not None:
            waiting += 1
        else:
            claimed += len(decode_claim(key, record).items)
    return waiting, claimed


def open_work_list(database: Database, name: str, *, create: bool = False) -> OpenWorkList:
    """Open a work list of a database.

    Args:
        create: whether to create it if it does not exist.

    Raises:
        InvalidRequestError: `database` is not an open database, or the name is not valid.
        NotFoundError: it does not exist.
    """
    require_open_database(database)
    if create:
        return OpenWorkList(database, create_work_list(database.backend, name, database.environment, exist_ok=True))
    return OpenWorkList(database, find_work_list(database.backend, name))
