"""Make the keys of the records of tables, cells and their histories; `KINDS` lists all kinds of records."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records.row_keys import Row, decode_row, encode_row, end_of_prefix
from holdfast.runtime import Ids
from holdfast.transactions.base import MAX_KEY_BYTES

_ID = Struct(">Q")
ID_BYTES = _ID.size
_SPARE_BYTES = 16
"""Room for what the key of a history entry has more than that of its cell."""


def new_table_id(ids: Ids) -> int:
    """Return a new id for a table, work list or job: a random number of 48 bits."""
    return int(ids.token(), 16)


def id_bytes(number: int) -> bytes:
    """Return an id as bytes, for keys."""
    return _ID.pack(number)


def table_key(name: str) -> bytes:
    """Return the key of the record that defines the table with a name."""
    return TABLE + name.encode()


def table_name_in_key(key: bytes) -> str:
    """Return the name of a table, given the key of its definition."""
    return key[len(TABLE) :].decode()


def tables_range() -> tuple[bytes, bytes]:
    """Return the range of keys of the definitions of all tables."""
    return TABLE, end_of_prefix(TABLE)


def dropped_mark_key(dropped_id: int) -> bytes:
    """Return the key of the record that marks a table or work list as dropped until it is deleted."""
    return DROPPED + id_bytes(dropped_id)


def parse_dropped_mark_key(key: bytes) -> int:
    """Return the id of a dropped table or work list, given a key from `dropped_mark_key`."""
    return int(_ID.unpack_from(key, len(DROPPED))[0])


def dropped_marks_range() -> tuple[bytes, bytes]:
    """Return the range of the keys from `dropped_mark_key` for all dropped tables and work lists."""
    return DROPPED, end_of_prefix(DROPPED)


def commit_count_key(now_s: float, token: str) -> bytes:
    """Return the key of the record that counts the transactions of one call that writes in batches.

    Args:
        now_s: when the call began, in seconds since the epoch.
        token: a random text, unique to the call.
    """
    return COMMITS + id_bytes(int(now_s)) + token.encode()


def old_commit_counts_range(before_s: float) -> tuple[bytes, bytes]:
    """Return the range of keys at which calls that began before a time count the transactions that they committed.

    Args:
        before_s: the time, in seconds since the epoch.
    """
    return COMMITS, COMMITS + id_bytes(max(int(before_s), 0))


def column_bytes(column: object) -> bytes:
    """Return the name of a column as bytes, for keys.

    Raises:
        InvalidRequestError: it is empty, no text, or contains a NUL character.
    """
    if not isinstance(column, str) or not column or "\0" in column:
        raise InvalidRequestError("a column is a text that is not empty and has no NUL: change it", column=column)
    try:
        return column.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError("a column is a text without lone surrogates: change it", column=column) from error


def row_prefix(table_id: int, row: Row) -> bytes:
    """Return the bytes with which the keys of exactly one row's cells begin."""
    return _cells_prefix(table_id) + encode_row(row)


@lru_cache(maxsize=1024)
def _cells_prefix(table_id: int) -> bytes:
    return CELL + id_bytes(table_id)


def cell_key(table_id: int, row: Row, column: bytes) -> bytes:
    """Return the key of the record of a cell.

    Raises:
        InvalidRequestError: row and column are too long together.
    """
    key = row_prefix(table_id, row) + column
    if len(key) > MAX_KEY_BYTES - _SPARE_BYTES:
        most = MAX_KEY_BYTES - _SPARE_BYTES - len(CELL) - ID_BYTES
        raise InvalidRequestError(
            f"row and column have at most {most} bytes together: shorten them",
            bytes=len(key) - len(CELL) - ID_BYTES,
        )
    return key


def parse_cell_key(key: bytes) -> tuple[Row, str]:
    """Return the row and the column of a cell, given the key of its record.

    Raises:
        CorruptDataError: the key is not that of a cell.
    """
    row, end = decode_row(key, len(CELL) + ID_BYTES)
    try:
        return row, key[end:].decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError("a stored key names no column: keep the database and report it", key=key) from error


def cells_range(table_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys of all cells of a table."""
    prefix = _cells_prefix(table_id)
    return prefix, end_of_prefix(prefix)


def history_key(cell: bytes, counter: int) -> bytes:
    """Return the key of the record of an earlier value of a cell.

    Args:
        cell: the key of the cell.
        counter: the update counter of the value.
    """
    return history_range(cell)[0] + _ID.pack(counter)


def history_range(cell: bytes) -> tuple[bytes, bytes]:
    """Return the range of keys of all history entries of a cell, given the key of the cell."""
    prefix = HISTORY + cell[len(CELL) :] + b"\0"
    return prefix, prefix + b"\xff" * ID_BYTES + b"\xff"


def counter_in_history_key(key: bytes) -> int:
    """Return the update counter in the key of a history entry."""
    return int(_ID.unpack_from(key, len(key) - ID_BYTES)[0])


def table_histories_range(table_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys of the history entries of all cells of a table."""
    prefix = HISTORY + id_bytes(table_id)
    return prefix, end_of_prefix(prefix)


KINDS = {
    "TABLE": b"St",  # table: its definition, which guards its cells (`tables`)
    "CELL": b"Sc",  # table id, row, column (`cells`)
    "HISTORY": b"Sh",  # table id, row, column, 0, update counter: an earlier or present value of a cell
    "DROPPED": b"Sd",  # table or list id: one that was dropped, and of which not all is deleted yet (`dropped`)
    "COMMITS": b"Sm",  # seconds, token: how many transactions of a call took effect, as its number (`several_commits`)
    "JOB": b"Sj",  # job: a job of computation units (`holdfast.units.jobs`)
    "PROGRESS": b"Sp",  # job id, shard: how far a task of a job is (`holdfast.units.progress`)
    "COUNTER": b"Sn",  # job id, slot: how many units a worker of a work list has done, as its number
    "WORK_LIST": b"Sl",  # work list: its definition (`holdfast.units.work_list`)
    "WORK": b"Sw",  # list id, …: what waits in a work list, and what is claimed
    "BEAT": b"Sb",  # list id, slot, token: a sign of life of a worker, as its number
}

assert len(set(KINDS.values())) == len(KINDS), "each kind has its own bytes"

TABLE, CELL, HISTORY, DROPPED = KINDS["TABLE"], KINDS["CELL"], KINDS["HISTORY"], KINDS["DROPPED"]
COMMITS, JOB = KINDS["COMMITS"], KINDS["JOB"]
PROGRESS, COUNTER = KINDS["PROGRESS"], KINDS["COUNTER"]
WORK_LIST, WORK, BEAT = KINDS["WORK_LIST"], KINDS["WORK"], KINDS["BEAT"]
