"""Define the records besides inodes, and encode and decode them as JSON: leases, places, deleted trees, pending
uploads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from holdfast.errors import MALFORMED, NotFoundError
from holdfast.namespace.inode import (
    Extent,
    Inode,
    convert_decoding_errors,
    decode_extent,
    decode_inode,
    encode_extent,
    encode_inode,
    require_inode_id,
    require_natural_number,
    require_text,
)
from holdfast.namespace.keys import (
    ROOT_ID,
    ROOT_KEY,
    deleted_key,
    entry_name_in_key,
    id_in_key,
    parent_id_in_key,
    rename_record_key,
)
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import ResolvedPath
from holdfast.transactions.base import Backend

# --- places -----------------------------------------------------------------------------------------------------------
# A key tells the parent's id, not the parent's key, so nothing leads from an inode up to the root. A writer needs that
# if its file is renamed, or a directory above it. So a lease contains its file's *trail*: the directories above it,
# when the file was opened or last renamed. And the rename of a directory records its place, with the trail to there; a
# directory without such a record is where it was created. Together they give the present path. It need not be exact:
# the operation on it validates every inode on the path, and the writer.
Trail: TypeAlias = tuple[tuple[int, bytes], ...]
"""Directories on a path, from the one below the root down, each with its id and its name."""


def list_ancestor_directories(chain: ResolvedPath, depth: int) -> Trail:
    """Return the ids and names of the directories on a resolved path, from below the root down to `depth`; the root has
    depth 0.
    """
    return tuple((chain.inodes[at].id, chain.path.names[at - 1]) for at in range(1, depth + 1))


def encode_trail_fields(trail: Trail) -> list[list[int | str]]:
    """Encode a trail, the directories on a path, as a JSON list of pairs: id and name."""
    return [[number, name.decode()] for number, name in trail]


def decode_trail_fields(fields: object) -> Trail:
    """Decode a trail, the directories on a path, from its JSON list.

    Raises:
        ValueError, TypeError: the list is malformed.
    """
    if not isinstance(fields, list):
        raise TypeError("not a list")
    return tuple((require_inode_id(number), require_text(name).encode()) for number, name in fields)


def encode_trail(trail: Trail) -> bytes:
    """Return the value of a place record, the directories down to a renamed directory."""
    return json.dumps(encode_trail_fields(trail), separators=(",", ":"), ensure_ascii=False).encode()


def decode_trail(key: bytes, value: bytes) -> Trail:
    """Decode a place record, which says where a directory was last renamed to, given the record's key and value.

    Raises:
        CorruptDataError: the record is damaged. Keep it, and run fsck.
    """
    with convert_decoding_errors("a directory's place", key):
        trail = decode_trail_fields(json.loads(value))
        if not trail or trail[-1][0] != id_in_key(key):
            raise ValueError("another directory's record")
    return trail


def find_path(store: Backend, key: bytes, trail: Trail) -> NsPath | None:
    """Find the present path of an inode, given its key and an older path; the records of renamed directories say what
    has changed.

    Args:
        key: the key of the inode's record.
        trail: the directories down to its parent, at some earlier time.

    Returns:
        None if the records contradict each other: they changed meanwhile.
    """
    above: dict[int, tuple[int, bytes]] = {}
    _note_directory_parents(above, trail)
    asked: set[int] = set()
    while True:
        names = [entry_name_in_key(key)]
        seen: list[int] = []
        at = parent_id_in_key(key)
        while at != ROOT_ID:
            if at not in above or at in seen:
                return None
            seen.append(at)
            at, name = above[at]
            names.append(name)
        new = [rename_record_key(number) for number in seen if number not in asked]
        if not new:
            return NsPath(tuple(reversed(names)))
        asked.update(seen)
        for place, record in store.get_many(new).items():
            found = decode_trail(place, record.value)
            above.pop(id_in_key(place))  # it was renamed since
            _note_directory_parents(above, found)


def _note_directory_parents(above: dict[int, tuple[int, bytes]], trail: Trail) -> None:
    """Note the parents of directories that are not known yet: those of others may be out of date."""
    parent = ROOT_ID
    for number, name in trail:
        above.setdefault(number, (parent, name))
        parent = number


# --- leases -----------------------------------------------------------------------------------------------------------
# Source: Hadoop's ``HdfsConstants``: after the soft limit, other clients may take the lease over; after the hard limit,
# the leader recovers it.
SOFT_LIMIT_MS = 60_000
HARD_LIMIT_MS = 20 * 60_000
_MOST_AHEAD_MS = 24 * 3600_000
"""A time further ahead than this tells nothing: a writer whose clock is wrong would block its file until that time."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one writer to change a file, until the writer is silent for too long.

    Attributes:
        holder: the writer, a token that no other writer has.
        renewed_ms: when the writer was last heard of, milliseconds since the epoch. A wrong clock can only let another
            client recover the lease too early; the writer then fails, because every write of it validates the lease.
        key: the key of the file's inode.
        trail: the directories above the file, when the file was opened or last renamed (`find_path`).
    """

    holder: str
    renewed_ms: int
    key: bytes
    trail: Trail = ()

    def is_renewal_overdue(self, now_ms: int, limit_ms: int) -> bool:
        """Return whether the writer has not renewed the lease for `limit_ms`. A renewal more than a day in the future,
        by a wrong clock, counts as silence.
        """
        return not -_MOST_AHEAD_MS <= now_ms - self.renewed_ms <= limit_ms

    def encode(self) -> bytes:
        """Return the value of the lease's record, as JSON."""
        fields = {
            "holder": self.holder,
            "renewed": self.renewed_ms,
            "key": self.key.hex(),
            "trail": encode_trail_fields(self.trail),
        }
        return json.dumps(fields, ensure_ascii=False).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> Lease:
        """Decode the lease in a record, given the record's key and value.

        Raises:
            CorruptDataError: the record is not a lease. Keep it, and run fsck.
        """
        with convert_decoding_errors("a lease", key):
            fields = json.loads(value)
            inode = bytes.fromhex(fields["key"])
            if not inode.startswith(b"i") or len(inode) <= len(ROOT_KEY):  # the root is no file
                raise ValueError("not the key of an inode")
            renewed_ms = require_natural_number(fields["renewed"])
            return Lease(require_text(fields["holder"]), renewed_ms, inode, decode_trail_fields(fields["trail"]))


# --- deleted trees ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class DeletedTree:
    """A deleted directory whose entries still wait to be removed by the collector.

    Attributes:
        root: the inode of the directory.
        path: which the directory had.
        since_ms: when it was deleted, milliseconds since the epoch.
        charged: ids of the quotas that count the tree until it is collected.
    """

    root: Inode
    path: str
    since_ms: int
    charged: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the value of the deleted tree's record, as JSON."""
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
        """Decode the deleted tree in a record, given the record's key and value.

        Raises:
            CorruptDataError: the record is not a deleted tree. Keep it, and run fsck.
        """
        with convert_decoding_errors("a deleted tree", key):
            fields = json.loads(value)
            root = decode_inode(key, json.dumps(fields["inode"]).encode())
            if deleted_key(root.id) != key or not root.is_directory:
                raise ValueError("another record")
            charged = tuple(map(require_inode_id, fields["charged"]))
            return DeletedTree(root, require_text(fields["path"]), require_natural_number(fields["since"]), charged)


# --- pending uploads --------------------------------------------------------------------------------------------------
METADATA = "user.holdfast.metadata"
"""The extended attribute that holds the metadata of an object."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A pending multipart upload of the object store: a file that is written in parts and stays invisible until it is
    completed.

    Attributes:
        path: of the file to be.
        file_id: the inode id of the file to be.
        initiated_ms: milliseconds since the epoch.
        metadata: of the object to be.
        parts: the blob of each part, by its number.
    """

    path: str
    file_id: int
    initiated_ms: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[int, Extent] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the value of the upload's record, as JSON."""
        fields = {
            "path": self.path,
            "file": self.file_id,
            "initiated": self.initiated_ms,
            "metadata": dict(self.metadata),
            "parts": {number: encode_extent(part) for number, part in self.parts.items()},
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> Upload:
        """Decode the pending upload in a record, given the record's key and value.

        Raises:
            CorruptDataError: the record is not an upload. Keep it, and run fsck.
        """
        with convert_decoding_errors("a pending upload", key):
            fields = json.loads(value)
            return Upload(
                require_text(fields["path"]),
                require_inode_id(fields["file"]),
                require_natural_number(fields["initiated"]),
                {require_text(name): require_text(text) for name, text in fields["metadata"].items()},
                {int(number): decode_extent(part) for number, part in fields["parts"].items()},
            )


def no_such_upload_error(key: str, upload_id: str) -> NotFoundError:
    """Return the error for an upload id that is not, or no longer, pending for a key."""
    return NotFoundError("no such upload: it was completed or aborted", key=key, upload_id=upload_id)


def encode_metadata(metadata: Mapping[str, str] | None) -> dict[str, bytes]:
    """Return an object's metadata as the extended attribute that stores it; empty for no metadata."""
    return {METADATA: json.dumps(dict(metadata)).encode()} if metadata else {}


def decode_metadata(xattrs: Mapping[str, bytes]) -> dict[str, str]:
    """Return an object's metadata from the extended attributes of its file; empty if there is none, or another program
    wrote it.
    """
    try:
        found = json.loads(xattrs.get(METADATA, b"{}"))
        return {str(name): str(text) for name, text in found.items()}
    except MALFORMED:
        return {}
