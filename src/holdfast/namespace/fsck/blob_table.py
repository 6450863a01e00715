"""Keep millions of blobs in 36 bytes each: name, size and what is known about it.

A blob's name is two hexadecimal digits, the id of a file and eleven random bytes (`blobs`). The two digits choose one
of 256 sorted tables, and the rest takes 27 bytes. Names that are not ours are kept as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.namespace.blobs import writer_of
from holdfast.namespace.inode_ids import ID_BYTES

YOUNG, NOTED, OWNED, PROTECTED = 1, 2, 4, 8
"""What is known about a blob: it is younger than the safety age; there is a garbage note; a file refers to it; it is
needed by something that is not a file."""

_WIDTH = ID_BYTES + 11


@dataclass(frozen=True, slots=True)
class BlobRow:
    """A blob.

    Attributes:
        flags: see `YOUNG`.
    """

    name: str
    size: int
    flags: int


@dataclass(slots=True)
class _Bucket:
    """The blobs whose names begin with the same two digits; `keys` has `_WIDTH` bytes for each."""

    keys: bytearray = field(default_factory=bytearray)
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    flags: bytearray = field(default_factory=bytearray)

    def key(self, at: int) -> bytes:
        return bytes(self.keys[at * _WIDTH : (at + 1) * _WIDTH])

    def sort(self) -> None:
        order = sorted(range(len(self.flags)), key=self.key)
        self.keys = bytearray().join(self.key(at) for at in order)
        self.sizes = array("Q", (self.sizes[at] for at in order))
        self.flags = bytearray(self.flags[at] for at in order)

    def find(self, key: bytes) -> int | None:
        low, high = 0, len(self.flags)
        while low < high:
            middle = (low + high) // 2
            if self.key(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.flags) and self.key(low) == key else None


class BlobTable:
    """Blobs by name. Add all of them, then `sort`; afterwards, `add_late` adds a few more.

    Attributes:
        count: how many there are.
        bytes: the sum of their sizes.
    """

    def __init__(self) -> None:
        self._buckets = [_Bucket() for _ in range(256)]
        self._others: dict[str, list[int]] = {}
        self.count = 0
        self.bytes = 0

    def add(self, name: str, size: int, flags: int = 0) -> None:
        """Add a blob."""
        if writer_of(name) is None:
            self.add_late(name, size, flags)
            return
        prefix, key = _pack(name)
        bucket = self._buckets[prefix]
        bucket.keys += key
        bucket.sizes.append(size)
        bucket.flags.append(flags)
        self.count += 1
        self.bytes += size

    def add_late(self, name: str, size: int, flags: int = 0) -> None:
        """Add a blob to a table that is sorted already, or one with a foreign name."""
        self._others[name] = [size, flags]
        self.count += 1
        self.bytes += size

    def sort(self) -> None:
        """Prepare for questions."""
        for bucket in self._buckets:
            bucket.sort()

    def mark(self, name: str, flag: int) -> BlobRow | None:
        """Set a flag of a blob; return the blob as it was before, or None if there is none."""
        other = self._others.get(name)
        if other is not None:
            before = BlobRow(name, *other)
            other[1] |= flag
            return before
        if writer_of(name) is None:
            return None
        prefix, key = _pack(name)
        bucket = self._buckets[prefix]
        at = bucket.find(key)
        if at is None:
            return None
        before = BlobRow(name, bucket.sizes[at], bucket.flags[at])
        bucket.flags[at] |= flag
        return before

    def rows_without(self, flags: int) -> Iterator[BlobRow]:
        """Yield the blobs that have none of these flags."""
        for prefix, bucket in enumerate(self._buckets):
            for at, found in enumerate(bucket.flags):
                if not found & flags:
                    yield BlobRow(_unpack(prefix, bucket.key(at)), bucket.sizes[at], found)
        for name, (size, found) in self._others.items():
            if not found & flags:
                yield BlobRow(name, size, found)


def _pack(name: str) -> tuple[int, bytes]:
    number, _, token = name[3:].partition("-")
    return int(name[:2], 16), int(number, 16).to_bytes(ID_BYTES, "big") + bytes.fromhex(token)


def _unpack(prefix: int, key: bytes) -> str:
    return f"{prefix:02x}/{int.from_bytes(key[:ID_BYTES], 'big'):x}-{key[ID_BYTES:].hex()}"
