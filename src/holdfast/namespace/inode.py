"""Represent inodes, and encode them as JSON."""

from __future__ import annotations

import base64
import binascii
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.namespace.checksum import CRC_BYTES
from holdfast.namespace.inode_ids import is_id
from holdfast.namespace.terms import is_running

DIRECTORY_MODE = 0o755
FILE_MODE = 0o644

FREEZE_MS = 10 * 60_000
"""How long a directory may be frozen: who needs longer to count the tree does not get the count."""

_MOST_MS = 2**53
"""The latest time: what every JSON parser reads exactly."""

MADE_FOR_OBJECTS = "trusted.holdfast.made-for-objects"
"""The extended attribute of a directory that an object store made because an object needed it."""

_MAX_REPLICATION = 512
"""HDFS's ``dfs.replication.max``."""


class Kind(str, enum.Enum):
    """What an inode is."""

    DIRECTORY = "directory"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Extent:
    """A piece of a file: the first `length` bytes of a blob.

    Attributes:
        blob: name of the blob; blobs are never changed, and a name is never used twice.
        inline: whether the bytes are a record of the database instead of an object of the store.
    """

    blob: str
    length: int
    inline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inode:
    """A file or a directory: a row of paper 004's Table 1, whose key holds the parent's id and the name.

    Attributes:
        id: never changes, and is never used again.
        mode: permission bits, up to the sticky bit (0o1777).
        mtime_ms, atime_ms: milliseconds since the epoch. The entries of a directory have a time of their own, which is
            written later (`directory_times`).
        replication, block_size: what the client asked for; they are returned, and change nothing but space quotas.
        extents: the content, in order. While a file is written, what was synced so far.
        cuts: how often the file was truncated: what was cut off may come again, and its etag must not.
        writer: the holder of the lease if the file is being written, else empty.
        names_quota, space_quota: of a directory; None for no limit.
        quota_id: names the counters of what a directory with a quota uses; 0 without a quota. A directory that gets a
            quota again gets another id: deleted trees that still wait for their collection count for the old one.
        moving: set while the tree below a directory is counted: nobody may change it before `moving_until_ms`, at most
            `FREEZE_MS` away; see `is_frozen`.
        namespace: of the root: the identity of its namespace (see `root`); else empty.
    """

    id: int
    kind: Kind
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int = 0
    replication: int = 0
    block_size: int = 0
    extents: tuple[Extent, ...] = ()
    cuts: int = 0
    writer: str = ""
    names_quota: int | None = None
    space_quota: int | None = None
    quota_id: int = 0
    moving: str = ""
    moving_until_ms: int = 0
    namespace: str = ""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind is Kind.DIRECTORY

    @property
    def size(self) -> int:
        """The length of the file, bytes; 0 for a directory."""
        return sum(extent.length for extent in self.extents)

    @property
    def space(self) -> int:
        """What the inode counts for in space quotas, bytes: HDFS multiplies the length with the replication."""
        return self.size * self.replication

    def is_frozen(self, now_ms: int) -> bool:
        """Whether somebody counts the tree below the directory: a mark whose end is over freezes nothing."""
        return bool(self.moving) and is_running(self.moving_until_ms / 1000, now_ms / 1000, FREEZE_MS / 1000)

    @property
    def is_made_for_objects(self) -> bool:
        """Whether it is a directory that an object store made because an object needed it."""
        return MADE_FOR_OBJECTS in self.xattrs

    @property
    def has_quota(self) -> bool:
        """Whether it is a directory with a quota, whose usage is counted."""
        return self.names_quota is not None or self.space_quota is not None


def is_number(value: object, least: int, most: int) -> bool:
    """Check whether a value is an integer of a range; True and False, which JSON writes as words, are none."""
    return type(value) is int and least <= value <= most


def check_replication(replication: int) -> None:
    """Check a replication by HDFS's limits.

    Raises:
        InvalidRequestError: it is out of range.
    """
    if not is_number(replication, 1, _MAX_REPLICATION):
        raise InvalidRequestError(f"a replication is from 1 to {_MAX_REPLICATION}: change it", replication=replication)


def check_times(mtime_ms: int | None, atime_ms: int | None = None) -> None:
    """Check times that a caller gives; None for no time.

    Raises:
        InvalidRequestError: one of them is out of range.
    """
    if any(time is not None and not is_number(time, 0, _MOST_MS) for time in (mtime_ms, atime_ms)):
        raise InvalidRequestError(
            "a time is from 1970 on, in whole milliseconds: change it", mtime_ms=mtime_ms, atime_ms=atime_ms
        )


def check_block_size(block_size: int) -> None:
    """Check a block size: checksums are made of pieces of 512 bytes, which must not cross the ends of blocks.

    Raises:
        InvalidRequestError: it is out of range, or no multiple of 512.
    """
    if not is_number(block_size, 1, _MOST) or block_size % CRC_BYTES:
        raise InvalidRequestError(
            f"a block size is a positive multiple of {CRC_BYTES}: change it", block_size=block_size
        )


_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode_inode(inode: Inode) -> bytes:
    """Return the value of an inode's record.

    Guarantee: `decode_inode` accepts it. A record that nobody can read would lose the file, and all below a directory.

    Raises:
        InvalidRequestError: the inode has a value that no record can hold; the operations check what they are given, so
            this is the last resort.
    """
    try:
        _check(inode)
        return _encode(inode)
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(
            "an inode would get a value that could not be read back: check the arguments, and the clock of this "
            "machine",
            inode=inode.id,
        ) from error


def _check(inode: Inode) -> None:
    """Apply the rules of `decode_inode` to a value."""
    _id(inode.id)
    for number in (inode.mode, inode.mtime_ms, inode.atime_ms, inode.replication, inode.block_size, inode.cuts):
        _natural(number)
    for text in (inode.owner, inode.group, inode.writer):
        _text(text)
    for extent in inode.extents:
        _text(extent.blob)
        _natural(extent.length)
    if inode.is_directory:
        _optional(inode.names_quota)
        _optional(inode.space_quota)
        _quota_id(inode.quota_id)
        _text(inode.moving)
        _natural(inode.moving_until_ms)
        _text(inode.namespace)
    for name in inode.xattrs:
        _text(name)


def _encode(inode: Inode) -> bytes:
    fields: dict[str, Any] = {
        "id": inode.id,
        "kind": inode.kind.value,
        "mode": inode.mode,
        "owner": inode.owner,
        "group": inode.group,
        "mtime": inode.mtime_ms,
    }
    if inode.atime_ms:
        fields["atime"] = inode.atime_ms
    if inode.kind is Kind.FILE:
        fields["replication"] = inode.replication
        fields["block_size"] = inode.block_size
        if inode.extents:
            fields["extents"] = [[one.blob, one.length, int(one.inline)] for one in inode.extents]
        if inode.cuts:
            fields["cuts"] = inode.cuts
        if inode.writer:
            fields["writer"] = inode.writer
    else:
        if inode.names_quota is not None:
            fields["names_quota"] = inode.names_quota
        if inode.space_quota is not None:
            fields["space_quota"] = inode.space_quota
        if inode.quota_id:
            fields["quota_id"] = inode.quota_id
        if inode.moving:
            fields["moving"] = [inode.moving, inode.moving_until_ms]
        if inode.namespace:
            fields["namespace"] = inode.namespace
    if inode.xattrs:
        fields["xattrs"] = {name: base64.b64encode(value).decode() for name, value in inode.xattrs.items()}
    return _encoder.encode(fields).encode()


def decode_inode(key: bytes, value: bytes) -> Inode:
    """Return the inode in a record.

    Raises:
        CorruptDataError: the record is not an inode. Keep it, and run fsck.
    """
    try:
        fields = json.loads(value)
        moving, moving_until_ms = fields.get("moving", ("", 0))
        inode = Inode(
            id=_id(fields["id"]),
            kind=Kind(fields["kind"]),
            mode=_natural(fields["mode"]),
            owner=_text(fields["owner"]),
            group=_text(fields["group"]),
            mtime_ms=_natural(fields["mtime"]),
            atime_ms=_natural(fields.get("atime", 0)),
            replication=_natural(fields.get("replication", 0)),
            block_size=_natural(fields.get("block_size", 0)),
            extents=tuple(
                Extent(_text(blob), _natural(length), bool(inline))
                for blob, length, inline in fields.get("extents", ())
            ),
            cuts=_natural(fields.get("cuts", 0)),
            writer=_text(fields.get("writer", "")),
            names_quota=_optional(fields.get("names_quota")),
            space_quota=_optional(fields.get("space_quota")),
            quota_id=_quota_id(fields.get("quota_id", 0)),
            moving=_text(moving),
            moving_until_ms=_natural(moving_until_ms),
            namespace=_text(fields.get("namespace", "")),
            xattrs={
                _text(name): base64.b64decode(text, validate=True) for name, text in fields.get("xattrs", {}).items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise CorruptDataError(
            "a record of the namespace is not an inode: run holdfast namespace fsck", key=key
        ) from error
    return inode


_MOST = 2**63 - 1
"""The largest number of a record: lengths and times must fit in the columns of databases."""


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError("not a natural number")
    return value


def _id(value: object) -> int:
    if not is_id(value):
        raise ValueError("not an id")
    return value


def _quota_id(value: object) -> int:
    return 0 if value == 0 else _id(value)


def _optional(value: object) -> int | None:
    return None if value is None else _natural(value)


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value
