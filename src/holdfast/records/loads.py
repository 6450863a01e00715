"""Load rows into a table from many tasks, of which each may fail, be repeated, or go on after it was given up.

A load has a record, which every transaction of its tasks reads, and which its end changes. So whatever a task writes
after the end conflicts. There are two kinds of loads:

* One that makes or replaces a table writes into a *hidden* table: an id that no definition names. Its end counts what
  is there, and then defines the table with this id, in one transaction.
* One that appends to a table writes into the table itself. Together with each row it writes a *mark*, so that a task
  that is repeated leaves out what is done. The marks are in the range of the hidden table.

Each attempt at a task has a record in the range of the load's own id: how many batches it has written. Every batch
advances it. So if the database has crashed and lost one of them, and whatever this attempt has seen before, the next
batch shows it, or the end of the attempt, before which everything is made durable. If it is lost later, as in a
failover, the end of the load shows it: it looks once more for the last batch of each attempt that counts.

| state of the record | means | who ends it |
|---|---|---|
| open | tasks write | `finish_load` or `abort_load` |
| sealed | nobody writes anymore; what tasks have written is checked | the same |
| committed | the load has taken effect | whoever sees it deletes the record |
| no record | the load has ended | |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from holdfast.errors import ConflictError, CorruptDataError, FencedError, InvalidRequestError, UnavailableError
from holdfast.records.batches import delete_if_unchanged, read_records
from holdfast.records.cells import read_cells
from holdfast.records.keys import ID_BYTES, cells_range, dropped_key, load_key, load_of, loads_range, new_id, table_key
from holdfast.records.row_keys import decode_row
from holdfast.records.tables import Table, check_table_name
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record
from holdfast.transactions.retry import run_until_known
from holdfast.transactions.transaction import Transaction
from holdfast.wording import counted

_CRASHES = 5

_PAGE = 1000
"""Records of attempts that are read at once."""


# --- the beginning ----------------------------------------------------------------------------------------------------
def begin_load(backend: Backend, environment: Environment, table: str, *, overwrite: bool) -> Load:
    """Begin a load into a table. That is durable.

    Args:
        overwrite: whether the rows replace those of the table; else they are added to them. A table that does not
            exist is made, without history.

    Raises:
        UnavailableError: the database went away, or loses what it has committed. Repeat later.

    Crash: a record of the load remains; `abort_old_loads` finds it. It also finds that of a begin whose reply was lost.
    """
    name = check_table_name(table)
    now_s = environment.clock.now_s()

    def begin(transaction: Transaction) -> Load:
        record = transaction.get(table_key(name))
        found = None if record is None else Table.of(name, record)
        # Each attempt has new ids: one whose reply was lost may take effect late, when the load has ended long since.
        load_id, hidden = new_id(environment.ids), new_id(environment.ids)
        load = Load(
            id=load_id,
            table=name,
            hidden=hidden,
            history=0 if found is None else found.history,
            before=None if found is None else found.id,
            appends=found is not None and not overwrite,
            started_s=now_s,
        )
        transaction.insert(load.key, load.to_bytes(OPEN))
        return load

    for _ in range(_CRASHES):
        load = until_known(backend, begin, environment)
        backend.make_durable()
        if load.key in backend.get_many([load.key]):
            return load
    raise _losing(name)


# --- the end ----------------------------------------------------------------------------------------------------------
def finish_load(backend: Backend, environment: Environment, load: Load, reports: Sequence[AttemptReport]) -> None:
    """End a load: what its tasks have written takes effect.

    Guarantee: it takes effect only if everything is there that the tasks report, also after a failover. A load that
    makes or replaces a table takes effect in one step, and only if there is nothing else. That is durable. May be
    repeated.

    Args:
        reports: one for each task.

    Raises:
        InvalidRequestError: two tasks, or two batches of one, have written the same row.
        ConflictError: the database has lost rows, or has others than reported, or the table was made, replaced or
            dropped meanwhile: load the rows again.
        FencedError: the load was aborted.
        UnavailableError, OutcomeUnknownError: the database went away. Call this again, or `abort_load`.

    Crash: the load has taken effect, or goes on. The next collection deletes what it replaced, or the marks.
    """
    for _ in range(_CRASHES):
        if _end(backend, environment, load, SEALED) != COMMITTED:
            _require_batches(backend, load, reports)
            if not load.appends:
                _require_cells(backend, environment, load, reports)
        if _end(backend, environment, load, COMMITTED) != COMMITTED:
            continue  # a crash has undone the seal: what was there may have changed
        backend.make_durable()
        if _forget(backend, load):
            return
        # Also without a record: a crash has perhaps undone the end, and a collection has aborted the load since.
    raise _losing(load.table)


def _end(backend: Backend, environment: Environment, load: Load, state: str) -> str:
    """Advance the record of a load, and return its state: a load is not committed before it is sealed."""

    def end(transaction: Transaction) -> str:
        record = transaction.get(load.key)
        if record is None:
            raise FencedError("the load was aborted: start it again", table=load.table)
        present = load_and_state(load.key, record)[1]
        if present in (state, COMMITTED) or (state == COMMITTED and present == OPEN):
            return present
        transaction.put(load.key, load.to_bytes(state))
        if state == COMMITTED:
            transaction.put(dropped_key(load.id), b"")
        if state == COMMITTED and load.appends:
            transaction.put(dropped_key(load.hidden), b"")
        elif state == COMMITTED:
            require_table(load, transaction.get(table_key(load.table)))
            table = Table(load.table, load.hidden, load.history, version=0)
            transaction.put(table.key, table.to_bytes())
            if load.before is not None:
                transaction.put(dropped_key(load.before), b"")
        return state

    return until_known(backend, end, environment)


def abort_load(backend: Backend, environment: Environment, load: Load) -> bool:
    """Abort a load, unless it has taken effect. What a load that appends has written remains in the table.

    Guarantee: what was hidden is never seen, whoever goes on writing. May be repeated.

    Returns:
        Whether the load has taken effect, as far as its record still tells.

    Crash: the load goes on, or the next collection deletes what it has written.
    """

    def abort(transaction: Transaction) -> bool:
        record = transaction.get(load.key)
        if record is None:
            return False
        if load_and_state(load.key, record)[1] == COMMITTED:
            return True
        transaction.delete(load.key)
        transaction.put(dropped_key(load.id), b"")
        transaction.put(dropped_key(load.hidden), b"")
        return False

    committed = until_known(backend, abort, environment)
    if committed:
        _forget(backend, load)
    return committed


def abort_old_loads(backend: Backend, environment: Environment, older_than_s: float) -> int:
    """Abort the loads that began long ago, whose driver has probably died. Return how many that were.

    Guarantee: a load that is aborted although it still runs fails, and leaves nothing hidden behind.
    """
    now_s = environment.clock.now_s()
    aborted = 0
    for key, record in read_records(backend, *loads_range()):
        load, _state = load_and_state(key, record)
        if now_s - load.started_s > older_than_s:
            aborted += not abort_load(backend, environment, load)
    return aborted


def _losing(table: str) -> UnavailableError:
    return UnavailableError("the database loses what it has committed: load the rows again later", table=table)


def _forget(backend: Backend, load: Load) -> bool:
    """Delete the record of a load, if that says that it has taken effect, and return whether it does.

    If the deletion fails, a collection does it.
    """
    record = backend.get_many([load.key]).get(load.key)
    if record is None or load_and_state(load.key, record)[1] != COMMITTED:
        return False
    return delete_if_unchanged(backend, load.key, record.version)


def _require_batches(backend: Backend, load: Load, reports: Sequence[AttemptReport]) -> None:
    """Check that the last batch of each attempt is there: a database that has it has lost nothing that came before.

    Raises:
        ConflictError: it is not.
    """
    written = [report for report in reports if report.batches]
    for start in range(0, len(written), _PAGE):
        page = written[start : start + _PAGE]
        found = backend.get_many([report.key for report in page])
        if any(report.key not in found or found[report.key].value != b"%d" % report.batches for report in page):
            raise ConflictError(
                "the database has lost rows that tasks had written, perhaps in a failover: load them again",
                table=load.table,
            )


def _require_cells(backend: Backend, environment: Environment, load: Load, reports: Sequence[AttemptReport]) -> None:
    """Check that the hidden table has exactly the cells that are reported.

    Raises: see `finish_load`.
    """
    expected = sum((report.loaded for report in reports), Loaded())
    found = _count(backend, load)
    if found == expected:
        return
    _end(backend, environment, load, SEALED)  # perhaps somebody has aborted it while the cells were counted
    _require_batches(backend, load, reports)  # or a failover has lost some
    if found.rows < expected.rows or found.cells < expected.cells:
        shared = counted(max(expected.rows - found.rows, 1), "row")
        raise InvalidRequestError(
            f"several rows have the same name, {shared} too many: aggregate them, or drop some", table=load.table
        )
    raise ConflictError(
        "the rows of a repeated task were not the same as the first time: store what is random, then load it",
        table=load.table,
        rows=found.rows,
        expected=expected.rows,
    )


def _count(backend: Backend, load: Load) -> Loaded:
    rows = cells = digest = 0
    first, last = cells_range(load.hidden)
    row = b"\0"
    for key, content in read_cells(backend, first, last):
        if not key.startswith(row):
            row = key[: decode_row(key, len(first))[1]]
            rows += 1
        cells += 1
        digest += cell_digest(key, content.encoded)
    return Loaded() + Loaded(rows, cells, digest)


T = TypeVar("T")

OPEN, SEALED, COMMITTED = "open", "sealed", "committed"
"""The states of a load."""

_ATTEMPTS = 50
_LOST_REPLIES = 5
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Load:
    """A load; a plain value, which may be sent to other processes.

    Attributes:
        table: the name of the table.
        hidden: the id under which rows, or marks, are written.
        history: how many values of each cell the table keeps; see `Table.history`.
        before: the id of the table that had the name when the load began, None if there was none.
        appends: whether the rows go into the table that is there.
        started_s: when it began, in seconds since the epoch.
    """

    id: int
    table: str
    hidden: int
    history: int
    before: int | None
    appends: bool
    started_s: float

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return load_key(self.id)

    def to_bytes(self, state: str) -> bytes:
        """Return the value of the record."""
        fields = {name: getattr(self, name) for name in ("table", "hidden", "history", "before", "appends")}
        return json.dumps({**fields, "started_s": self.started_s, "state": state}).encode()


def load_and_state(key: bytes, record: Record) -> tuple[Load, str]:
    """Return a load and its state, from its record.

    Raises:
        CorruptDataError: the record is damaged.
    """
    try:
        found = json.loads(record.value)
        state = found.pop("state")
        load = Load(id=load_of(key), **found)
        ids = [load.hidden, *(() if load.before is None else (load.before,))]
        valid = all(type(one) is int and 0 <= one < 2 ** (8 * ID_BYTES - 1) for one in ids)
        valid = valid and type(load.history) is int and load.history >= 0 and type(load.appends) is bool
        valid = valid and type(load.started_s) in (int, float) and state in (OPEN, SEALED, COMMITTED)
        check_table_name(load.table)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidRequestError) as error:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key) from error
    if not valid:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key)
    return load, state


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written: by a task's attempt, or altogether.

    Attributes:
        rows, cells: how many have a value.
        digest: the sum of the digests of all cells; it does not depend on their order.
    """

    rows: int = 0
    cells: int = 0
    digest: int = 0

    def __add__(self, other: Loaded) -> Loaded:
        digest = (self.digest + other.digest) % 2 ** (8 * _DIGEST_BYTES)
        return Loaded(self.rows + other.rows, self.cells + other.cells, digest)


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """What an attempt at a task reports.

    Attributes:
        loaded: what it has written.
        key: of its record, if it has written anything.
        batches: how many batches it has written: the value of its record.
    """

    loaded: Loaded
    key: bytes
    batches: int


def require_open(load: Load, record: Record | None) -> None:
    """Check that the tasks of a load may write.

    Raises:
        FencedError: it has ended: stop.
    """
    if record is None or load_and_state(load.key, record)[1] != OPEN:
        raise FencedError("the load has ended, and takes no more rows: stop", table=load.table)


def require_table(load: Load, record: Record | None) -> None:
    """Check that the name of the table still has the meaning that it had when the load began.

    Args:
        record: the table's definition; None if there is none.

    Raises:
        ConflictError: it has another one: start the load again.
    """
    found = None if record is None else Table.of(load.table, record).id
    if found != load.before:
        raise ConflictError("another table has the name now: start the load again", table=load.table)


def cell_digest(key: bytes, value: bytes) -> int:
    """Return the digest of a cell: for `Loaded`, with its sums."""
    both = blake2b(len(key).to_bytes(2, "big") + key + value, digest_size=_DIGEST_BYTES)
    return int.from_bytes(both.digest(), "big")


def until_known(backend: Backend, function: Callable[[Transaction], T], environment: Environment) -> T:
    """Run a transaction of a load, with its bounds; see `run_until_known`."""
    return run_until_known(backend, function, environment, lost_replies=_LOST_REPLIES, attempts=_ATTEMPTS)
