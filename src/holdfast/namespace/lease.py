"""Represent the lease of a writer: who is writing a file, and when it was last heard of.

Source: Hadoop's ``HdfsConstants``: after the soft limit, other clients may take the lease over; after the hard limit,
the leader recovers it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from holdfast.errors import CorruptDataError
from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.trails import Trail, trail_fields, trail_from

SOFT_LIMIT_MS = 60_000
HARD_LIMIT_MS = 20 * 60_000
_MOST_AHEAD_MS = 24 * 3600_000
"""A time further ahead than this tells nothing: a writer whose clock is wrong would block its file until that time."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one writer to change a file.

    Attributes:
        holder: the writer, a token that no other writer has.
        renewed_ms: when the writer was last heard of, milliseconds since the epoch. A wrong clock can only let somebody
            recover the lease too early; the writer then fails, because every write of it validates the lease.
        key: the key of the file's inode.
        trail: the directories above the file, when the file was opened or last renamed (`trails`).
    """

    holder: str
    renewed_ms: int
    key: bytes
    trail: Trail = ()

    def is_silent(self, now_ms: int, limit_ms: int) -> bool:
        """Check whether the writer has not been heard of for that long; or in a day to come, by a wrong clock."""
        return not -_MOST_AHEAD_MS <= now_ms - self.renewed_ms <= limit_ms

    def encode(self) -> bytes:
        """Return the value of the lease's record."""
        fields = {
            "holder": self.holder,
            "renewed": self.renewed_ms,
            "key": self.key.hex(),
            "trail": trail_fields(self.trail),
        }
        return json.dumps(fields, ensure_ascii=False).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> Lease:
        """Return the lease in a record.

        Raises:
            CorruptDataError: the record is not a lease. Keep it, and run fsck.
        """
        try:
            fields = json.loads(value)
            holder, renewed_ms, inode = fields["holder"], fields["renewed"], bytes.fromhex(fields["key"])
            is_key = inode.startswith(b"i") and len(inode) > len(ROOT_KEY)  # the root is no file
            if type(holder) is not str or type(renewed_ms) is not int or not is_key:
                raise ValueError("not a holder, a time and the key of an inode")
            lease = Lease(holder, renewed_ms, inode, trail_from(fields["trail"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(
                "a record of the namespace is not a lease: run holdfast namespace fsck", key=key
            ) from error
        return lease
