"""Name the records of a store. All keys begin with ``S``, so that a namespace may live in the same database.

| key | record |
|---|---|
| ``St`` table | the definition of a table; it guards the cells of the table |
| ``Sc`` table id, row, column | a cell |
| ``Sh`` table id, row, column, 0, update counter | an earlier or present value of a cell, in tables with history |
| ``Sd`` table id | a table that was dropped, and whose cells are not all deleted yet |
| ``Sl`` load id | a load that has not ended; see `holdfast.records.loads` |
| ``Sj`` job | a job of computation units |
| ``Sp`` job id, shard | how far a task of a job is |
| ``Sl``, ``Sw``, ``Sb`` … | work lists: see `holdfast.units.work_list` |
| ``Sn`` job id, slot | how many units a worker of a work list has done, as its number |

Ids are 8 bytes, most significant first.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records.row_keys import Row, after_prefix, decode_row, encode_row
from holdfast.transactions.base import MAX_KEY_BYTES

__all__ = [
    "ID_BYTES",
    "cell_key",
    "cell_of",
    "cells_range",
    "column_bytes",
    "counter_of",
    "dropped_key",
    "dropped_range",
    "dropped_table_of",
    "history_key",
    "history_range",
    "id_bytes",
    "load_key",
    "load_of",
    "loads_range",
    "row_prefix",
    "table_histories_range",
    "table_key",
    "table_name_of",
    "tables_range",
]

_ID = Struct(">Q")
ID_BYTES = _ID.size
_CELL, _HISTORY, _TABLE, _DROPPED, _LOAD = b"Sc", b"Sh", b"St", b"Sd", b"Sl"
_SPARE_BYTES = 16
"""Room for what the key of a history entry has more than that of its cell."""


def id_bytes(number: int) -> bytes:
    """Return the bytes of an id."""
    return _ID.pack(number)


def table_key(name: str) -> bytes:
    """Return the key of a table's definition."""
    return _TABLE + name.encode()


def table_name_of(key: bytes) -> str:
    """Return the name in the key of a table's definition."""
    return key[len(_TABLE) :].decode()


def tables_range() -> tuple[bytes, bytes]:
    """Return the range of all definitions of tables."""
    return _TABLE, after_prefix(_TABLE)


def dropped_key(table_id: int) -> bytes:
    """Return the key of the mark of a dropped table."""
    return _DROPPED + id_bytes(table_id)


def dropped_table_of(key: bytes) -> int:
    """Return the id in the key of the mark of a dropped table."""
    return int(_ID.unpack_from(key, len(_DROPPED))[0])


def dropped_range() -> tuple[bytes, bytes]:
    """Return the range of the marks of all dropped tables."""
    return _DROPPED, after_prefix(_DROPPED)


def load_key(load_id: int) -> bytes:
    """Return the key of the record of a load."""
    return _LOAD + id_bytes(load_id)


def load_of(key: bytes) -> int:
    """Return the id in the key of the record of a load."""
    return int(_ID.unpack_from(key, len(_LOAD))[0])


def loads_range() -> tuple[bytes, bytes]:
    """Return the range of the records of all loads."""
    return _LOAD, after_prefix(_LOAD)


def column_bytes(column: object) -> bytes:
    """Return the bytes of a column.

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
    """Return the bytes with which the keys of a row's cells begin, and no others."""
    return _cells_prefix(table_id) + encode_row(row)


@lru_cache(maxsize=1024)
def _cells_prefix(table_id: int) -> bytes:
    return _CELL + id_bytes(table_id)


def cell_key(table_id: int, row: Row, column: bytes) -> bytes:
    """Return the key of a cell.

    Raises:
        InvalidRequestError: row and column are too long together.
    """
    key = row_prefix(table_id, row) + column
    if len(key) > MAX_KEY_BYTES - _SPARE_BYTES:
        most = MAX_KEY_BYTES - _SPARE_BYTES - len(_CELL) - ID_BYTES
        raise InvalidRequestError(
            f"row and column have at most {most} bytes together: shorten them",
            bytes=len(key) - len(_CELL) - ID_BYTES,
        )
    return key


def cell_of(key: bytes) -> tuple[Row, str]:
    """Return the row and the column of a cell.

    Raises:
        CorruptDataError: the key is none of a cell.
    """
    row, end = decode_row(key, len(_CELL) + ID_BYTES)
    try:
        return row, key[end:].decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError("a stored key names no column: keep the database and report it", key=key) from error


def cells_range(table_id: int) -> tuple[bytes, bytes]:
    """Return the range of a table's cells."""
    prefix = _cells_prefix(table_id)
    return prefix, after_prefix(prefix)


def history_key(cell: bytes, counter: int) -> bytes:
    """Return the key of a history entry of a cell."""
    return history_range(cell)[0] + _ID.pack(counter)


def history_range(cell: bytes) -> tuple[bytes, bytes]:
    """Return the range of a cell's history entries."""
    prefix = _HISTORY + cell[len(_CELL) :] + b"\0"
    return prefix, prefix + b"\xff" * ID_BYTES + b"\xff"


def counter_of(key: bytes) -> int:
    """Return the update counter in the key of a history entry."""
    return int(_ID.unpack_from(key, len(key) - ID_BYTES)[0])


def table_histories_range(table_id: int) -> tuple[bytes, bytes]:
    """Return the range of the history entries of all cells of a table."""
    prefix = _HISTORY + id_bytes(table_id)
    return prefix, after_prefix(prefix)
