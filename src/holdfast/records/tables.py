"""Define tables: what a database knows about each of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.records.batches import read_records
from holdfast.records.keys import table_key, table_name_of, tables_range
from holdfast.transactions.base import MAX_NUMBER, Record, SnapshotReader
from holdfast.transactions.transaction import Transaction
from holdfast.wording import nearest

ALL_VERSIONS = MAX_NUMBER
"""The length of a history that forgets nothing."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        id: distinguishes it from a dropped table with the same name.
        history: how many values of each cell are kept, the present one among them; 0 if the table has no history.
        version: of the record with this definition.
    """

    name: str
    id: int
    history: int
    version: int

    @property
    def key(self) -> bytes:
        """The key of the definition, which guards the cells of the table."""
        return table_key(self.name)

    def to_bytes(self) -> bytes:
        """Return the value of the record."""
        return json.dumps({"id": self.id, "history": self.history}).encode()

    @staticmethod
    def of(name: str, record: Record) -> Table:
        """Return the table that a record defines.

        Raises:
            CorruptDataError: the record is damaged.
        """
        try:
            found = json.loads(record.value)
            table_id, history = found["id"], found["history"]
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptDataError("the definition of a table cannot be read: report it", table=name) from error
        if not (type(table_id) is int and 0 <= table_id < 2**63 and type(history) is int and history >= 0):
            raise CorruptDataError("the definition of a table cannot be read: report it", table=name)
        return Table(name, table_id, history, record.version)


def check_table_name(name: object) -> str:
    """Check the name of a table, and return it.

    Raises:
        InvalidRequestError: change it.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            "the name of a table has 1 to 64 letters, digits, points, hyphens and underscores: change it", name=name
        )
    return name


def history_length(history: object) -> int:
    """Return how many values of each cell a table keeps.

    Args:
        history: True for all, False for no history, or a number.
    """
    if isinstance(history, bool):
        return ALL_VERSIONS if history else 0
    if not isinstance(history, int) or not 0 <= history <= ALL_VERSIONS:
        raise InvalidRequestError(
            "the history of a table is True, False or a number of values: change it", given=history
        )
    return history


def list_tables(database: SnapshotReader) -> list[Table]:
    """Return all tables, by name."""
    return [Table.of(table_name_of(key), record) for key, record in read_records(database, *tables_range())]


def missing_table(database: SnapshotReader, name: str) -> NotFoundError:
    """Return the error that a table does not exist."""
    known = [table.name for table in list_tables(database)]
    hint = nearest(name, known) if known else "the database has no tables, create it first"
    return NotFoundError(f"the database has no such table: {hint}", table=name)


def read_table(name: str, reader: SnapshotReader | Transaction, database: SnapshotReader) -> Table:
    """Return a table as a transaction, a snapshot or a database sees it.

    Args:
        reader: reads its definition.
        database: where similar names are looked for.

    Raises:
        NotFoundError: the database has no such table: create it.
    """
    key = table_key(check_table_name(name))
    record = reader.get_many([key]).get(key)
    if record is None:
        raise missing_table(database, name)
    return Table.of(name, record)


class TableCache:
    """The tables that a process has seen. A wrong entry is harmless: every transaction validates the tables it uses."""

    def __init__(self, database: SnapshotReader, known: dict[str, Table] | None = None) -> None:
        self._database = database
        self._known = {} if known is None else known

    def through(self, reader: SnapshotReader) -> TableCache:
        """Return the same tables, of which those that are not known yet are read by other means."""
        return TableCache(reader, self._known)

    def get(self, name: str) -> Table:
        """Return a table.

        Raises:
            NotFoundError: the database has no such table: create it.
        """
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = read_table(name, self._database, self._database)
        return found

    def forget(self) -> None:
        """Read everything again when it is needed."""
        self._known.clear()
