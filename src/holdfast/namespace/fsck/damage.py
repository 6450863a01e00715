"""Remember that records which may have named blobs were damaged, until their blobs are in /lost+found.

A repair keeps the bytes of a damaged record, but it is unknown which blobs they named. Those blobs belong to no file
from then on. A repair gives old ones to /lost+found at once; young ones may be those of a writer that has not published
them yet. So a repair notes when it was, and until another one comes along that finds them old, no sweep touches what is
older than the note.
"""

from __future__ import annotations

import json

from holdfast.namespace.changes import Changes
from holdfast.namespace.keys import DAMAGED
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.view import View
from holdfast.transactions.base import Backend

NAMES_BLOBS = (b"i", b"p", b"q")
"""The kinds of records that name blobs: inodes, and pending uploads with their parts."""


def damage_note(store_now_s: float) -> bytes:
    """Return the value of the record of a repair.

    Args:
        store_now_s: the time of the object store's clock: it dates the blobs.
    """
    return json.dumps({"at": store_now_s}).encode()


def damaged_at_s(store: Backend) -> float:
    """Return when damaged records were repaired whose blobs may be unowned, by the store's clock; else -1.

    A note that cannot be read counts for all blobs.
    """
    record = store.get_many([DAMAGED]).get(DAMAGED)
    if record is None:
        return -1.0
    try:
        return float(json.loads(record.value)["at"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return float("inf")


def forget_damage(store: Backend, lock: MaintenanceLock, store_now_s: float, age_s: float) -> None:
    """Delete the note, if all blobs of its time were old enough for the repair that calls this.

    Args:
        store_now_s: when that repair began, by the store's clock.
        age_s: how old a blob had to be.

    Raises:
        FencedError: the lock is lost.
    """
    at_s = damaged_at_s(store)
    if at_s == float("inf"):
        lock.commit(Changes(None, values={DAMAGED: damage_note(store_now_s)}), View((), {}))
    elif 0 <= at_s < store_now_s - age_s:
        lock.commit(Changes(None, deletes={DAMAGED}), View((), {}))
