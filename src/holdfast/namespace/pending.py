"""Tell what waits in a namespace: files that are being written, and what the collector has yet to remove."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from holdfast.errors import CorruptDataError
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.keys import garbage_key, kind_range
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.other_records import SOFT_LIMIT_MS, Lease, find_path
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend

_PAGE = 1000
_MOST = 100_000
"""How many records of a kind are counted: a status must not take minutes."""


def count_pending_work(namespace: Namespace, clock: Clock, most: int = _MOST) -> dict[str, int]:
    """Count a namespace's pending work: files being written, deleted trees, and garbage blobs, by kind.

    Args:
        most: how many of a kind are counted; soon after, the count stops.
    """
    database, (start, end) = namespace.database, kind_range(b"g")
    due = garbage_key(max(int((clock.now_s() - namespace.configuration.safety_age_s) * 1000), 0), "")
    return {
        "leases": count_records(database, *kind_range(b"l"), most),
        "deleted_trees": count_records(database, *kind_range(b"r"), most),
        "garbage_blobs": count_records(database, start, end, most),
        "garbage_blobs_due": count_records(database, start, due, most),
    }


def count_records(database: Backend, start: bytes, end: bytes, most: int = _MOST) -> int:
    """Count the records from one key to another; the count stops soon after `most`."""
    number, more = 0, True
    while more and number < most:
        page = database.scan(start, end, _PAGE)
        number += len(page.records)
        more = page.more
        start = page.records[-1][0] + b"\0" if more else end
    return number


# --- files that are being written -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """A file that a writer holds a lease on.

    Attributes:
        path: at present; None if directories above it move just now.
        owner: of the file; empty if it is gone, and only its lease is left.
        size: what other clients can read already, bytes.
        holder: the writer, a token.
        renewed_ms: when the writer was last heard of, milliseconds since the epoch.
        is_silent: whether another client may take the file over.
    """

    path: str | None
    owner: str
    size: int
    holder: str
    renewed_ms: int
    is_silent: bool


def list_open_files(database: Backend, clock: Clock, most: int) -> list[OpenFile]:
    """Return at most `most` of the files that are being written. Damaged records are left to fsck."""
    leases = []
    for key, record in database.scan(*kind_range(b"l"), most).records:
        with suppress(CorruptDataError):
            leases.append(Lease.decode(key, record.value))
    found = database.get_many([lease.key for lease in leases]) if leases else {}
    now_ms = int(clock.now_s() * 1000)
    files = []
    for lease in leases:
        with suppress(CorruptDataError):
            inode = decode_inode(lease.key, found[lease.key].value) if lease.key in found else None
            path = find_path(database, lease.key, lease.trail)
            one = OpenFile(
                path=None if path is None else str(path),
                owner="" if inode is None else inode.owner,
                size=0 if inode is None else inode.size,
                holder=lease.holder,
                renewed_ms=lease.renewed_ms,
                is_silent=lease.is_renewal_overdue(now_ms, SOFT_LIMIT_MS),
            )
            files.append(one)
    return files
