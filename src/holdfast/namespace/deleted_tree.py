"""Represent a deleted tree that waits for its collection: its root has left the tree; what was below still exists.

If the root was made for objects, the record stays for a while after the collection, as a trace: a file that somebody
is still writing into the object store makes its directories again if they were removed because they were empty
(`object_store.files`), but not if they were deleted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from holdfast.errors import CorruptDataError
from holdfast.namespace.inode import Inode, decode_inode, encode_inode
from holdfast.namespace.inode_ids import is_id
from holdfast.namespace.keys import deleted_key
from holdfast.namespace.terms import MOST_SKEW_S

TRACED_S = 24 * 3600.0
"""For how long after its opening a file is sure to find the trace of a directory that was deleted since."""

_TRACE_MS = int((TRACED_S + MOST_SKEW_S) * 1000)


@dataclass(frozen=True, slots=True)
class DeletedTree:
    """The root of a deleted tree.

    Attributes:
        root: the inode of the directory.
        path: where the tree was deleted.
        since_ms: when, milliseconds since the epoch.
        charged: ids of the quotas that count the tree until it is collected.
        leaves_trace: whether the record stays for a while when the tree is collected.
        is_collected: whether nothing is left of the tree but this record.
    """

    root: Inode
    path: str
    since_ms: int
    charged: tuple[int, ...]
    leaves_trace: bool = False
    is_collected: bool = False

    def below(self, directory: Inode) -> DeletedTree:
        """Return a directory in this tree as a deleted tree of its own."""
        return replace(self, root=directory, leaves_trace=False)

    def collected(self, now_ms: int) -> DeletedTree | None:
        """Return what stays of the tree when it is collected, or later; None if nothing does."""
        if self.leaves_trace and now_ms - self.since_ms < _TRACE_MS:
            return replace(self, charged=(), is_collected=True)
        return None

    def encode(self) -> bytes:
        """Return the value of the tree's record."""
        root = replace(self.root, moving="", moving_until_ms=0)
        fields = {
            "inode": json.loads(encode_inode(root)),
            "path": self.path,
            "since": self.since_ms,
            "charged": list(self.charged),
            **({"trace": self.is_collected} if self.leaves_trace else {}),
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> DeletedTree:
        """Return the tree in a record.

        Raises:
            CorruptDataError: the record is not a deleted tree. Keep it, and run fsck.
        """
        try:
            fields = json.loads(value)
            root = decode_inode(key, json.dumps(fields["inode"]).encode())
            path, since_ms, charged = fields["path"], fields["since"], fields["charged"]
            is_collected = fields.get("trace", False)
            if deleted_key(root.id) != key or not root.is_directory or type(path) is not str:
                raise ValueError("another record")
            if type(since_ms) is not int or not 0 <= since_ms < 2**63:
                raise ValueError("not a time")
            if not all(map(is_id, charged)):
                raise ValueError("not ids")
            if type(is_collected) is not bool:
                raise ValueError("not a trace")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(
                "a record of the namespace is not a deleted tree: run holdfast namespace fsck", key=key
            ) from error
        return DeletedTree(root, path, since_ms, tuple(charged), "trace" in fields, is_collected)
