"""Represent a deleted tree that waits for its collection: its root has left the tree; what was below still exists."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from holdfast.errors import CorruptDataError
from holdfast.namespace.inode import Inode, decode_inode, encode_inode
from holdfast.namespace.keys import deleted_key

__all__ = ["DeletedTree"]


@dataclass(frozen=True, slots=True)
class DeletedTree:
    """The root of a deleted tree.

    Attributes:
        root: the inode of the directory.
        path: where the tree was deleted.
        since_ms: when, milliseconds since the epoch.
        charged: ids of the quotas that count the tree until it is collected.
    """

    root: Inode
    path: str
    since_ms: int
    charged: tuple[int, ...]

    def below(self, directory: Inode) -> DeletedTree:
        """Return a directory in this tree as a deleted tree of its own."""
        return replace(self, root=directory)

    def encode(self) -> bytes:
        """Return the value of the tree's record."""
        root = replace(self.root, moving="", moving_until_ms=0)
        fields = {
            "inode": json.loads(encode_inode(root)),
            "path": self.path,
            "since": self.since_ms,
            "charged": list(self.charged),
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
            if deleted_key(root.id) != key or not root.is_directory or type(path) is not str:
                raise ValueError("another record")
            if any(type(number) is not int or not 0 <= number < 2**63 for number in (since_ms, *charged)):
                raise ValueError("not a natural number")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptDataError(
                "a record of the namespace is not a deleted tree: run holdfast namespace fsck", key=key
            ) from error
        return DeletedTree(root, path, since_ms, tuple(charged))
