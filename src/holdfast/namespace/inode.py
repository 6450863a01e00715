"""Define inodes, the records of files and directories, and encode and decode them as JSON."""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.namespace.errors import ReplicationError
from holdfast.namespace.keys import is_id

INODE_FORMAT = 1
"""The version of the format of inodes. Adding a field keeps it, because releases keep fields that they do not know.
Raise it if older releases must not change the new records: they refuse them."""

CRC_BYTES = 512
"""HDFS's ``dfs.bytes-per-checksum``."""

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


class InodeKind(str, enum.Enum):
    """The type of an inode: directory or file."""

    DIRECTORY = "directory"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Extent:
    """A piece of a file: the first `length` bytes of an immutable blob.

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
        cuts: how often the file was truncated: part of the etag, since bytes that were cut off may come again.
        writer: the holder of the lease if the file is being written, else empty.
        names_quota, space_quota: of a directory; None for no limit.
        quota_id: names the counters of what a directory with a quota uses; 0 without a quota. A directory that gets a
            quota again gets another id: deleted trees that still wait for their collection count for the old one.
        moving: set while the tree below a directory is counted: it is frozen until `moving_until_ms`, at most
            `FREEZE_MS` away; see `is_tree_frozen`.
        namespace: of the root: the identity of its namespace (see `require_expected_namespace_root`); else empty.
        unknown: fields of the record that this release does not know; whatever changes the inode keeps them.
    """

    id: int
    kind: InodeKind
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
    unknown: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        """Whether the inode is a directory, and not a file."""
        return self.kind is InodeKind.DIRECTORY

    @property
    def size(self) -> int:
        """The length of the file, bytes; 0 for a directory."""
        return sum(extent.length for extent in self.extents)

    @property
    def space(self) -> int:
        """The bytes that the inode counts in quotas of space: its size times its replication, as in HDFS."""
        return self.size * self.replication

    def is_tree_frozen(self, now_ms: int) -> bool:
        """Return whether the tree below this directory is being counted, so that no operation may change it. An expired
        freeze does not count.
        """
        return bool(self.moving) and is_term_unexpired(self.moving_until_ms / 1000, now_ms / 1000, FREEZE_MS / 1000)

    @property
    def has_quota(self) -> bool:
        """Whether this is a directory with a quota of names or of space."""
        return self.names_quota is not None or self.space_quota is not None


def is_integer_in_range(value: object, least: int, most: int) -> bool:
    """Return whether a value is an integer from `least` to `most`. Booleans are not."""
    return type(value) is int and least <= value <= most


def check_replication(replication: int) -> None:
    """Check that a replication is in HDFS's limits, 1 to 512.

    Raises:
        ReplicationError: it is out of range.
    """
    if not is_integer_in_range(replication, 1, _MAX_REPLICATION):
        raise ReplicationError(f"a replication is from 1 to {_MAX_REPLICATION}: change it", replication=replication)


def check_times(mtime_ms: int | None, atime_ms: int | None = None) -> None:
    """Check that the given modification and access times are valid, in milliseconds since the epoch; None stands for no
    time.

    Raises:
        InvalidRequestError: one of them is out of range.
    """
    if any(time is not None and not is_integer_in_range(time, 0, _MOST_MS) for time in (mtime_ms, atime_ms)):
        raise InvalidRequestError(
            "a time is from 1970 on, in whole milliseconds: change it", mtime_ms=mtime_ms, atime_ms=atime_ms
        )


def check_block_size(block_size: int) -> None:
    """Check that a block size is a positive multiple of 512 bytes, the unit of HDFS's checksums.

    Raises:
        InvalidRequestError: it is out of range, or no multiple of 512.
    """
    if not is_integer_in_range(block_size, 1, _MOST) or block_size % CRC_BYTES:
        raise InvalidRequestError(
            f"a block size is a positive multiple of {CRC_BYTES}: change it", block_size=block_size
        )


# --- ends that others have set ----------------------------------------------------------------------------------------
MOST_SKEW_S = 3600.0


def is_term_unexpired(until_s: float, now_s: float, term_s: float) -> bool:
    """Return whether a freeze, a lock or a leadership that ends at `until_s` still holds at `now_s`.

    An end that is further ahead than `term_s` and an hour of clock skew counts as over: otherwise a dead process whose
    clock was wrong could block others for months. Safety does not depend on this: whoever has lost a lock finds out
    in the next transaction.

    Args:
        until_s: the end, seconds since the epoch, set by the clock of the owner.
        now_s: the time by our own clock.
        term_s: how far ahead of its own clock an owner sets the end.
    """
    return now_s < until_s <= now_s + term_s + MOST_SKEW_S


# --- records ----------------------------------------------------------------------------------------------------------
_MOST = 2**63 - 1
"""The largest number of a record: lengths and times must fit in the columns of databases."""


@contextmanager
def convert_decoding_errors(what: str, key: bytes) -> Iterator[None]:
    """Turn the error of a block that fails to decode a record into a `CorruptDataError` with the key of the record.

    Raises:
        CorruptDataError: the record is damaged. Keep it, and run fsck.
    """
    try:
        yield
    except MALFORMED as error:
        raise CorruptDataError(
            f"a record of the namespace is not {what}: run holdfast namespace fsck", key=key
        ) from error


def require_natural_number(value: object) -> int:
    """Return a decoded value if it is an integer from 0 to 2**63 - 1; raise ValueError otherwise."""
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError("not a natural number")
    return value


def require_inode_id(value: object) -> int:
    """Return a decoded value if it is a valid inode id; raise ValueError otherwise."""
    if not is_id(value):
        raise ValueError("not an id")
    return value


def _require_quota_id(value: object) -> int:
    return 0 if value == 0 else require_inode_id(value)


def _require_natural_or_none(value: object) -> int | None:
    return None if value is None else require_natural_number(value)


def require_text(value: object) -> str:
    """Return a decoded value if it is a str; raise ValueError otherwise."""
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def encode_extent(extent: Extent) -> list[str | int]:
    """Encode an extent as the JSON list `decode_extent` decodes: name of the blob, length, 1 if it is inline."""
    return [require_text(extent.blob), require_natural_number(extent.length), int(extent.inline)]


def decode_extent(fields: Sequence[object]) -> Extent:
    """Decode an extent from its JSON list; raise ValueError or TypeError if the list is malformed."""
    blob, length, inline = fields
    return Extent(require_text(blob), require_natural_number(length), bool(inline))


_FIELDS: tuple[tuple[str, str, Callable[[object], object], object], ...] = (
    ("id", "id", require_inode_id, ...),
    ("mode", "mode", require_natural_number, ...),
    ("owner", "owner", require_text, ...),
    ("group", "group", require_text, ...),
    ("mtime", "mtime_ms", require_natural_number, ...),
    ("atime", "atime_ms", require_natural_number, 0),
    ("replication", "replication", require_natural_number, 0),
    ("block_size", "block_size", require_natural_number, 0),
    ("cuts", "cuts", require_natural_number, 0),
    ("writer", "writer", require_text, ""),
    ("names_quota", "names_quota", _require_natural_or_none, None),
    ("space_quota", "space_quota", _require_natural_or_none, None),
    ("quota_id", "quota_id", _require_quota_id, 0),
    ("moving", "moving", require_text, ""),
    ("moving_until", "moving_until_ms", require_natural_number, 0),
    ("namespace", "namespace", require_text, ""),
)
"""Field of the record, attribute, what checks its value, and the value that is left out; ``...`` if none is."""

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode_inode(inode: Inode) -> bytes:
    """Encode an inode as JSON, the value of its record.

    Guarantee: `decode_inode` accepts it. A record that cannot be read would lose the file, and all below a directory.

    Raises:
        InvalidRequestError: the inode has a value that no record can hold; the operations check what they are given, so
            this is the last resort.
    """
    try:
        fields: dict[str, Any] = {"format": INODE_FORMAT, "kind": inode.kind.value}
        for name, attribute, check, default in _FIELDS:
            value = check(getattr(inode, attribute))
            if value != default:
                fields[name] = value
        if inode.extents:
            fields["extents"] = list(map(encode_extent, inode.extents))
        if inode.xattrs:
            fields["xattrs"] = {
                require_text(name): base64.b64encode(value).decode() for name, value in inode.xattrs.items()
            }
        return _encoder.encode({**inode.unknown, **fields}).encode()
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(
            "an inode would get a value that could not be read back: check the arguments, and the clock of this "
            "machine",
            inode=inode.id,
        ) from error


def decode_inode(key: bytes, value: bytes) -> Inode:
    """Decode the inode in a record, given the record's key and value.

    Raises:
        CorruptDataError: the record is not an inode. Keep it, and run fsck.
        UnsupportedError: a newer release wrote the record.
    """
    try:
        fields = json.loads(value)
        if require_natural_number(fields.pop("format")) > INODE_FORMAT:
            raise UnsupportedError(
                "a newer release of Holdfast has written a record of this namespace, which this one must not change: "
                "upgrade Holdfast",
                key=key,
            )
        values: dict[str, Any] = {
            attribute: check(fields.pop(name))
            for name, attribute, check, default in _FIELDS
            if name in fields or default is ...
        }
        return Inode(
            kind=InodeKind(fields.pop("kind")),
            extents=tuple(map(decode_extent, fields.pop("extents", ()))),
            xattrs={
                require_text(name): base64.b64decode(text, validate=True)
                for name, text in fields.pop("xattrs", {}).items()
            },
            **values,
            unknown=fields,
        )
    except MALFORMED as error:  # not `convert_decoding_errors`, which takes a microsecond
        raise CorruptDataError(
            "a record of the namespace is not an inode: run holdfast namespace fsck", key=key
        ) from error
