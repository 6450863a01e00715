"""Read the records that an operation needs as one snapshot, a view: the semantic related group of paper 004, 3.1 and
3.2.

The key of an inode contains the id of its parent, so a path of n components seems to need n round trips. Hints shorten
them to one: the keys of all components are guessed from earlier reads and fetched together, as one snapshot. A wrong
guess shows at once, because the fetched parent does not have the id that the guess assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.errors import CorruptDataError, FencedError, UnavailableError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, inode_key
from holdfast.namespace.paths import NsPath
from holdfast.transactions.base import ABSENT, Record, ScanPage

_MOST_HINTS = 100_000
_RECEIPT = ord("q")
_SPARE_READS = 20


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record as it was read: its version, and an inode, other bytes (`value`) or a counter (`number`)."""

    version: int
    inode: Inode | None
    value: bytes = b""
    number: int = 0


class InodeCache:
    """A cache of the inodes and leases that this process last read. It may be out of date, so a commit validates all
    that is taken from it.

    Args:
        identity: of the namespace: see `require_expected_namespace_root`.
    """

    def __init__(self, identity: str = "") -> None:
        self.identity = identity
        self._entries: dict[bytes, SeenRecord] = {}
        self.get: Callable[[bytes], SeenRecord | None] = self._entries.get
        """Returns what was last seen at a key."""

    def put(self, key: bytes, entry: SeenRecord) -> None:
        """Cache the record that was read or written at a key."""
        if len(self._entries) >= _MOST_HINTS:
            self._entries.clear()  # rare, and cheaper than to keep an order at each look-up
        self._entries[key] = entry

    def drop(self, keys: Collection[bytes]) -> None:
        """Remove keys from the cache."""
        for key in keys:
            self._entries.pop(key, None)


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path with the inodes on it, from the root down, as far as they exist.

    Attributes:
        inodes: from the root down, as far as they exist.
        keys: their keys, and the key of the first component that does not exist, unless its parent is a file.
    """

    path: NsPath
    inodes: tuple[Inode, ...]
    keys: tuple[bytes, ...]

    @property
    def target(self) -> Inode | None:
        """The inode of the file or directory that has the path; None if it does not exist."""
        return self.inodes[-1] if len(self.inodes) > len(self.path.names) else None

    @property
    def parent(self) -> Inode | None:
        """The inode of the directory above the target; None if it does not exist, or if the target is the root."""
        count = len(self.path.names)
        return self.inodes[count - 1] if 0 < count <= len(self.inodes) else None

    @property
    def ancestors(self) -> tuple[Inode, ...]:
        """The inodes of the existing directories above the target."""
        return self.inodes[: len(self.path.names)]

    @property
    def target_key(self) -> bytes:
        """The key of the target's inode record. The target need not exist, but its parent must be a directory."""
        assert len(self.keys) == len(self.path.names) + 1, "the parent exists"
        return self.keys[-1]


@dataclass(slots=True)
class View:
    """The snapshot of the records that an operation reads.

    Attributes:
        chains: the inodes on each path of the operation.
        entries: the existing records by key: those on the paths, and those that the operation asked for.
        absent: the keys that were read and have no record.
        is_guess: whether the view comes from the cache: then it may be wrong, until a commit validates it.
        page, has_more: the first records of the range for which the operation asked, and whether the range has more.
            A view from the cache has none.
    """

    chains: tuple[ResolvedPath, ...]
    entries: dict[bytes, SeenRecord]
    absent: set[bytes] = field(default_factory=set)
    is_guess: bool = False
    page: Sequence[tuple[bytes, Record]] = ()
    has_more: bool = False

    @property
    def has_records_in_extra_range(self) -> bool:
        """Whether the range of keys that the operation has asked for (`extra_range`) contains a record."""
        return bool(self.page)

    def collect_seen_versions(self) -> dict[bytes, int]:
        """Return the version of every record of the view by key, `ABSENT` for those that do not exist: the reads that a
        commit validates.
        """
        found = {key: entry.version for key, entry in self.entries.items()}
        found.update(dict.fromkeys(self.absent, ABSENT))
        return found

    def value(self, key: bytes) -> bytes | None:
        """Return the value of a record of the view, such as a lease; None if it does not exist."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value


class OperationReads(Protocol):
    """Names the records that an operation reads: paper 004's semantic related group."""

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths of the operation: the inodes on them are read."""
        ...

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the keys of records to read besides the inodes on the paths, such as a lease, given the resolved
        paths.
        """
        ...

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        """Return the range of keys of which the first records are read too, such as the children of a directory; None
        for no range.
        """
        ...


class Reader(Protocol):
    """Reads records of a database, of a snapshot, or of a transaction that locks them."""

    def get_many(self, keys: Collection[bytes]) -> Mapping[bytes, Record]: ...

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage: ...


def scan_pages(
    reader: Reader, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()
) -> Iterator[ScanPage]:
    """Yield the records from `start` (included) to `end` (excluded) in pages of at most `limit` records."""
    more = True
    while more:
        page = reader.scan(start, end, limit, guards)
        yield page
        more = page.more
        if more:
            start = page.records[-1][0] + b"\0"


def resolve_path(path: NsPath, look: Callable[[bytes], SeenRecord | None]) -> ResolvedPath:
    """Resolve a path from the root down, as far as its inodes exist.

    Args:
        look: returns the record at a key, or None.
    """
    inodes: list[Inode] = []
    keys = [ROOT_KEY]
    for depth in range(len(path.names) + 1):
        entry = look(keys[-1])
        if entry is None or entry.inode is None:
            break
        inodes.append(entry.inode)
        if depth == len(path.names) or not entry.inode.is_directory:
            break
        keys.append(inode_key(entry.inode.id, path.names[depth]))
    return ResolvedPath(path, tuple(inodes), tuple(keys))


class PathResolver:
    """Resolves many paths; paths in one directory share the look-ups above it."""

    def __init__(self, look: Callable[[bytes], SeenRecord | None]) -> None:
        self._look = look
        self._directories: dict[tuple[bytes, ...], ResolvedPath] = {}

    def resolve(self, path: NsPath) -> ResolvedPath:
        """Return the inodes on a path, as `resolve_path` does."""
        names = path.names
        if not names:
            return resolve_path(path, self._look)
        above = self._directories.get(names[:-1])
        if above is None:
            above = self._directories[names[:-1]] = resolve_path(path.parent, self._look)
        parent = above.target
        if parent is None or not parent.is_directory:
            return ResolvedPath(path, above.inodes, above.keys)
        key = inode_key(parent.id, names[-1])
        entry = self._look(key)
        inodes = above.inodes if entry is None or entry.inode is None else (*above.inodes, entry.inode)
        return ResolvedPath(path, inodes, (*above.keys, key))


def read_view_from_cache(hints: InodeCache, group: OperationReads) -> View | None:
    """Return the view of an operation from cached records alone, without a read of the database; None if too little is
    cached.

    All ancestors must be known to be directories. What is unknown at the end of a path is taken for absent, with what
    another path names below it; and so are receipts, which hardly ever exist: whoever writes one validates that.
    """
    seen: dict[bytes, SeenRecord | None] = {}  # each key is looked up once: other threads change the hints all the time

    def find_hinted_record(key: bytes) -> SeenRecord | None:
        if key not in seen:
            seen[key] = hints.get(key)
        return seen[key]

    chains = [resolve_path(path, find_hinted_record) for path in group.paths]
    ends = {chain.keys[-1] for chain in chains if len(chain.keys) > len(chain.path.names)}
    if any(not chain.inodes or chain.keys[-1] not in ends for chain in chains):
        return None  # the root exists, and is not taken for absent
    if any(find_hinted_record(key) is None and key[0] != _RECEIPT for key in group.extra_keys(chains)):
        return None
    entries = {key: entry for key, entry in seen.items() if entry is not None}
    return View(tuple(chains), entries, seen.keys() - entries.keys(), is_guess=True)


def read_view(reader: Reader, hints: InodeCache, group: OperationReads, most: int = 1) -> View:
    """Read the records of an operation's group, and up to `most` records of its range, in as few reads as possible.

    Guarantee: everything in the view comes from one call of `reader`, thus from one snapshot.

    Raises:
        UnavailableError: the paths changed faster than they could be read; nothing happened.
        CorruptDataError: a record is damaged, or there is no root.
        FencedError: the database has another namespace by now.
    """
    paths = group.paths
    fetched: dict[bytes, SeenRecord | None] = {}
    peeked: tuple[bytes, bytes] | None = None
    page = nothing = ScanPage([], False, {})

    def find_fetched_record(key: bytes) -> SeenRecord | None:
        return fetched[key] if key in fetched else hints.get(key)

    for _ in range(max(len(path.names) for path in paths) + _SPARE_READS):
        resolver = PathResolver(find_fetched_record)
        chains = tuple(map(resolver.resolve, paths))
        wanted = {key for chain in chains for key in chain.keys}
        wanted.update(group.extra_keys(chains))
        span = group.extra_range(chains)
        if wanted <= fetched.keys() and span == peeked:
            entries = {key: entry for key in wanted if (entry := fetched[key]) is not None}
            return View(chains, entries, wanted - entries.keys(), page=page.records, has_more=page.more)
        if span is None:
            found, page = reader.get_many(wanted), nothing  # not those of a directory that was there before
        else:
            page = reader.scan(*span, most, wanted)
            found = page.guards
        peeked = span
        fetched = {key: _make_seen_record(key, found.get(key), hints) for key in wanted}
    raise UnavailableError("the path changes faster than it can be read: repeat later", path=str(paths[0]))


def _make_seen_record(key: bytes, record: Record | None, hints: InodeCache) -> SeenRecord | None:
    if record is None:
        hints.drop((key,))
        if key == ROOT_KEY:
            require_expected_namespace_root(None, hints.identity)
        return None
    known = hints.get(key)
    if known is not None and known.version == record.version:
        return known  # versions are unique: there is no need to decode it again
    entry = SeenRecord(
        record.version, decode_inode(key, record.value) if key[0] == ord("i") else None, record.value, record.number
    )
    if key == ROOT_KEY:
        require_expected_namespace_root(entry.inode, hints.identity)
    if key[0] not in b"spq":  # the bytes of files would fill the memory, and uploads and receipts are used once
        hints.put(key, entry)
    return entry


def require_expected_namespace_root(root: Inode | None, identity: str) -> None:
    """Check that the root directory exists and belongs to the namespace that this process has opened.

    A database that loses its newest commits may lose the creation of a namespace, and another one may then be created
    there, with its data at another place. Clients of the lost namespace may still run: files that they publish would
    have no bytes at the new place, and they could delete files of the new namespace. So the root names its namespace,
    and because every operation reads and validates the root, no operation of such a client takes effect.

    Args:
        identity: `Configuration.identity`, as this process has read it.

    Raises:
        CorruptDataError: there is no root.
        FencedError: it is the root of another namespace.
    """
    if root is None:
        raise CorruptDataError(
            "the namespace has no root directory, or the database has lost it: run holdfast namespace fsck"
        )
    if root.namespace not in ("", identity):
        raise another_namespace_error()


def another_namespace_error() -> FencedError:
    """Return the `FencedError` for a client whose database contains another namespace than the one it has opened."""
    return FencedError(
        "the database has lost the namespace that this process has opened, in a failover or a restore, and another one "
        "was created there: open the namespace again"
    )
