"""Define the records that define tables, and find tables by name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.records.batches import iter_records
from holdfast.records.keys import table_key, table_name_in_key, tables_range
from holdfast.transactions.base import MAX_NUMBER, Record, SnapshotReader
from holdfast.transactions.transaction import Transaction
from holdfast.wording import suggest_nearest

ALL_VERSIONS = MAX_NUMBER
"""The length of a history that forgets nothing."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Table:
    """The definition of a table.

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
        """Return the key of the record that defines the table; a transaction that scans the table reads it, too."""
        return table_key(self.name)

    def to_bytes(self) -> bytes:
        """Return the value of the definition's record."""
        return json.dumps({"id": self.id, "history": self.history}).encode()

    @staticmethod
    def of(name: str, record: Record) -> Table:
        """Decode the definition of a table from its record.

        Raises:
            CorruptDataError: the record is damaged.
        """
        try:
            found = json.loads(record.value)
            table_id, history = found["id"], found["history"]
        except MALFORMED as error:
            raise CorruptDataError("the definition of a table cannot be read: report it", table=name) from error
        if not (type(table_id) is int and 0 <= table_id < 2**63 and type(history) is int and history >= 0):
            raise CorruptDataError("the definition of a table cannot be read: report it", table=name)
        return Table(name, table_id, history, record.version)


def check_table_name(name: object) -> str:
    """Check that a text can be the name of a table, and return it.

    Raises:
        InvalidRequestError: the text is no valid name: change it.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            "the name of a table has 1 to 64 letters, digits, points, hyphens and underscores: change it", name=name
        )
    return name


def parse_history_length(history: object) -> int:
    """Convert the argument `history` of `create_table` into the number of values to keep of each cell.

    Args:
        history: True for all, False for no history (0), or a number.

    Raises:
        InvalidRequestError: the argument is of another type, or out of range.
    """
    if isinstance(history, bool):
        return ALL_VERSIONS if history else 0
    if not isinstance(history, int) or not 0 <= history <= ALL_VERSIONS:
        raise InvalidRequestError(
            "the history of a table is True, False or a number of values: change it", given=history
        )
    return history


def list_tables(database: SnapshotReader) -> list[Table]:
    """Return the definitions of all tables of a database, by name."""
    return [Table.of(table_name_in_key(key), record) for key, record in iter_records(database, *tables_range())]


def missing_table_error(database: SnapshotReader, name: str) -> NotFoundError:
    """Return the error for a table that does not exist; it names tables with similar names."""
    known = [table.name for table in list_tables(database)]
    hint = suggest_nearest(name, known) if known else "the database has no tables, create it first"
    return NotFoundError(f"the database has no such table: {hint}", table=name)


def read_table(name: str, reader: SnapshotReader | Transaction, database: SnapshotReader) -> Table:
    """Return the definition of a table as a transaction, a snapshot or a database sees it.

    Args:
        reader: reads the definition.
        database: searched for similar names, for the error message.

    Raises:
        NotFoundError: the database has no such table: create it.
    """
    key = table_key(check_table_name(name))
    record = reader.get_many([key]).get(key)
    if record is None:
        raise missing_table_error(database, name)
    return Table.of(name, record)


class TableCache:
    """Caches definitions of tables. An outdated entry is harmless: every transaction validates the tables it uses."""

    def __init__(self, database: SnapshotReader, known: dict[str, Table] | None = None) -> None:
        self._database = database
        self._known = {} if known is None else known

    def share_with_reader(self, reader: SnapshotReader) -> TableCache:
        """Return a cache that shares these entries, and uses `reader` to read definitions that are not cached."""
        return TableCache(reader, self._known)

    def get(self, name: str) -> Table:
        """Return the definition of a table, from the cache or the database.

        Raises:
            NotFoundError: the database has no such table: create it.
        """
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = read_table(name, self._database, self._database)
        return found

    def forget(self) -> None:
        """Empty the cache."""
        self._known.clear()
