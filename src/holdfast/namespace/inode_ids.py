"""Make inode ids, which are never used twice.

An id is drawn, not reserved: a database that forgets a reservation would give its ids to two clients, and two
directories with one id have one list of entries. The time comes first, so that the entries of new directories are
neighbors in the database's index, as in RFC 9562 (UUID version 7).
"""

from __future__ import annotations

from typing import TypeGuard

from holdfast.runtime import Environment

ID_BYTES = 16
MOST_ID = (1 << 8 * ID_BYTES) - 2
"""The largest id: a range of keys ends with the id after it."""

_RANDOM_BITS = 86
_MILLISECONDS = 2**42


def new_id(environment: Environment) -> int:
    """Return a new id: the milliseconds since the epoch, in 42 bits, and 86 random bits.

    The time may be wrong, or come again: nothing but the order depends on it.
    """
    now_ms = int(environment.clock.now_s() * 1000) % _MILLISECONDS
    random = int(environment.ids.token() + environment.ids.token(), 16) % (1 << _RANDOM_BITS)
    return min(now_ms << _RANDOM_BITS | random, MOST_ID)


def is_id(value: object) -> TypeGuard[int]:
    """Check whether a value of a record is an id of an inode."""
    return type(value) is int and 0 < value <= MOST_ID
