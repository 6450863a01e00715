"""Read all records of a snapshot once, and collect what a check needs of them as tables in a temporary SQLite file.

To check another kind of record, write a function that yields rows for the tables of `survey.sql`, and add it to
`RECORD_KINDS`. SQLite removes the file from its directory as soon as it is open, so nothing stays, however the process
ends. The file needs about 400 bytes for each inode; the memory is bounded.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

from holdfast.errors import CorruptDataError, StorageFullError
from holdfast.namespace.blobs import BlobStore, content_size, file_id_in_blob_name, find_damaged_frame
from holdfast.namespace.errors import InvalidPathError
from holdfast.namespace.fsck.findings import FINDING_KINDS, Finding, NamespaceCounts, Progress
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.keys import (
    ID_BYTES,
    ROOT_ID,
    ROOT_KEY,
    blob_name_in_key,
    entry_name_in_key,
    id_in_key,
    kind_range,
    parent_id_in_key,
)
from holdfast.namespace.other_records import HARD_LIMIT_MS, DeletedTree, Lease, Upload, decode_trail
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import scan_pages
from holdfast.stores.base import iter_objects
from holdfast.transactions.base import MAX_KEY_BYTES, Record, SnapshotReader
from holdfast.transactions.sql import load_queries

CLOSING_S = 600
"""How old an unowned blob must be in any case before anything is done with it: so long may a writer need from its last
byte to the transaction that publishes the file."""

_PAGE = 1000
_PAGE_OF_DATA = 32
"""Records of small files are up to 1 MiB each."""

_MOST_SPACE = 2**63 - 1
_MOST_LEVELS = 2000

Row = tuple[Any, ...]
"""A table, and the values of its columns."""


class NamespaceSurvey:
    """A temporary SQLite database with what a check knows about a namespace at one moment. Create it with
    `open_survey`.

    Args:
        now_ms: when the survey begins, milliseconds since the epoch.
    """

    def __init__(self, connection: sqlite3.Connection, now_ms: int) -> None:
        self._connection = connection
        self._queries = {**load_queries(__package__, "survey.sql"), **load_queries(__package__, "checks.sql")}
        self.now_ms = now_ms
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):  # KiB
            connection.execute(f"PRAGMA {pragma}")
        self._run_script("tables")

    def _run_script(self, name: str) -> None:
        """Run several statements, and go on in one transaction: a commit would write all pages."""
        self._connection.executescript(f"{self._queries[name]}; BEGIN")

    def query(self, query: str, /, **values: object) -> Iterator[Row]:
        """Run a query of `survey.sql` or `checks.sql`, by its name, with the given parameters; return its rows."""
        values |= {"root_key": ROOT_KEY, "root_id": pack_id(ROOT_ID)}
        return self._connection.execute(self._queries[query], values)

    def add_rows(self, rows: Collection[Row]) -> None:
        """Insert rows into the temporary tables, replacing those with equal keys. A row begins with its table."""
        tables = defaultdict(list)
        for table, *values in rows:
            tables[table].append(values)
        for table, found in tables.items():
            marks = ",".join("?" * len(found[0]))
            self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", found)

    # --- the pass -----------------------------------------------------------------------------------------------------
    def read_records(
        self, reader: SnapshotReader, progress: Progress, *, without: bytes = b"", leased: Collection[int] = ()
    ) -> None:
        """Read all records of a snapshot into the temporary tables; the store's blobs must have been added before
        (`add_blobs`).

        Args:
            without: the first bytes of kinds that are skipped.
            leased: the files whose blobs are in progress, whether or not they have a lease in the snapshot.
        """
        self.add_rows([("leased", pack_id(number)) for number in leased])
        rows: list[Row] = []
        kinds = (first for first in RECORD_KINDS if first not in without)
        records = chain.from_iterable(iter_records_of_kind(reader, first) for first in kinds)
        for done, (key, record) in enumerate(records, 1):
            try:
                rows += decode_record_rows(key, record, self.now_ms)
            except CorruptDataError:
                rows.append(("problem", "damaged-record", key))
            if done % _PAGE == 0:
                self.add_rows(rows)
                rows.clear()
                progress("records", done, 0)
        self.add_rows(rows)
        self._compute_reachability()

    def _compute_reachability(self) -> None:
        """Find out what can be reached from where."""
        self._run_script("indexes")
        for place in ("live", "waiting", "lost"):
            self._walk_from_roots([number for (number,) in self.query(f"roots of {place}")], place)
        after = b""
        while found := list(self.query("unreached", after=after)):
            ((after,),) = found
            member = self._find_cycle_above(after)
            self.add_rows([("cycle", member)])
            self._walk_from_roots([member], "lost")

    def _walk_from_roots(self, roots: Collection[bytes], place: str) -> None:
        self._connection.execute("DELETE FROM start")
        self.add_rows([("start", root) for root in roots])
        self.query("walk", place=place)

    def _find_cycle_above(self, directory: bytes) -> bytes:
        """Return the smallest id of the cycle to which the parents of a directory lead."""
        seen: list[bytes] = []
        while directory not in seen:
            seen.append(directory)
            ((_, directory),) = self.query("directory", id=directory)
        return min(seen[seen.index(directory) :])

    # --- findings -----------------------------------------------------------------------------------------------------
    def to_finding(self, kind: str, row: Row) -> Finding:
        """Convert a row that the query for a kind of finding has returned into a finding, with its path and keys."""
        key, blob, number, _, detail = row
        keys: tuple[bytes, ...] = (key,) if key else ()
        if kind == "shared-blob":
            keys = tuple(found for (found,) in self.query("files of a blob", blob=blob))
            key, *others = reversed(keys)
            detail = " ".join(f"and {self._find_path(other)}" for other in others)
        elif kind == "referenced-garbage":
            keys += tuple(found for (found,) in self.query("notes of a blob", blob=blob))
        elif number and key:
            detail, number = f"inode {_unpack_id(number)}", None
        elif number:
            keys = tuple(found for (found,) in self.query("inodes of an id", id=number))
            key = keys[0] if keys else None
        return Finding(
            kind=FINDING_KINDS[kind],
            path=self._find_path(key) if key and key[:1] in b"ir" else "",
            keys=keys,
            blob=unpack_name(blob) if blob else "",
            number=_unpack_id(number) if number else 0,
            detail=detail,
        )

    def _find_path(self, key: bytes) -> str:
        """Return the path of an inode, or of a deleted tree; if the root is not above it, from where it hangs."""
        if key == ROOT_KEY:
            return "/"
        if len(key) < len(ROOT_KEY):
            return ""
        names = [entry_name_in_key(key)] if key[:1] == b"i" else []
        at, seen = key[1 : 1 + ID_BYTES], set[bytes]()
        while at != pack_id(ROOT_ID) and at not in seen and len(seen) < _MOST_LEVELS:
            found = list(self.query("directory", id=at))
            if not found:
                break
            seen.add(at)
            ((above, at),) = found
            names.append(entry_name_in_key(above))
        top = "" if at == pack_id(ROOT_ID) else f"(inode {_unpack_id(at)})"
        return top + "/" + b"/".join(reversed(names)).decode(errors="backslashreplace")

    def counts(self) -> NamespaceCounts:
        """Return the numbers of files, bytes, blobs and others in the namespace."""
        (row,) = self.query("counts")
        return NamespaceCounts(*row)


@contextmanager
def open_survey(now_ms: int) -> Iterator[NamespaceSurvey]:
    """Create a survey with an empty temporary file, and delete the file when the block ends.

    Raises:
        StorageFullError: the temporary file cannot be written.
    """
    connection = sqlite3.connect("", isolation_level=None)  # an empty name is a temporary file
    try:
        yield NamespaceSurvey(connection, now_ms)
    except sqlite3.OperationalError as error:
        raise StorageFullError(
            "the temporary file of the check cannot be written: free some space in the directory for temporary files, "
            "or name another one in SQLITE_TMPDIR"
        ) from error
    finally:
        connection.close()


def add_blobs(
    survey: NamespaceSurvey,
    blobs: BlobStore,
    store_now_s: float,
    age_s: float,
    progress: Progress,
    *,
    with_young: bool = True,
    after_s: float = -1.0,
) -> None:
    """List the blobs in the object store, and add them to a survey. Those without a date count as young.

    Args:
        store_now_s: the time of the store's clock.
        age_s: younger blobs are marked as such.
        with_young: False leaves them out.
        after_s: blobs from up to this time of the store's clock are left out.
    """
    rows: list[Row] = []
    for number, info in enumerate(iter_objects(blobs.store, blobs.key("")), 1):
        is_young = not info.modified_at_s or info.modified_at_s > store_now_s - age_s
        if (with_young or not is_young) and info.modified_at_s > after_s:
            rows.append(make_stored_blob_row(blobs.name_of(info.key), info.size_bytes, is_young=is_young))
        if number % _PAGE == 0:
            survey.add_rows(rows)
            rows.clear()
            progress("objects", number, 0)
    survey.add_rows(rows)


def make_stored_blob_row(name: str, size: int, *, is_young: bool = False) -> Row:
    """Return the row of a blob in the object store, for `Survey.add_rows`."""
    writer = file_id_in_blob_name(name)
    return (
        "blob",
        pack_name(name),
        0,
        size,
        content_size(size),
        None if writer is None else pack_id(writer),
        is_young,
        None,
    )


def iter_records_of_kind(reader: SnapshotReader, kind: bytes) -> Iterator[tuple[bytes, Record]]:
    """Yield keys and records of all records of one kind, such as ``b"l"``."""
    for page in scan_pages(reader, *kind_range(kind), _PAGE_OF_DATA if kind == b"s" else _PAGE):
        yield from page.records


def find_leased_files(reader: SnapshotReader) -> frozenset[int]:
    """Return the inode ids of all files that have a lease.

    A sweep or a repair calls this before it writes the root (`MaintenanceLock.rewrite_root`), and leaves the blobs of
    these files alone. If a lease ends later, the database may lose its end in a crash; then the writer may still
    publish its blobs. If a lease ended earlier, a database that loses its end also loses the write of the root, and
    the lock.
    """
    return frozenset(id_in_key(key) for key, _ in iter_records_of_kind(reader, b"l"))


# --- one function for each kind of record -----------------------------------------------------------------------------
def _small_blob_row(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    name = blob_name_in_key(key)
    size = len(record.value)
    yield "blob", pack_name(name), 1, size, content_size(size), None, 0, find_damaged_frame(name, 0, record.value)


def _garbage_note_row(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    yield "note", pack_name(blob_name_in_key(key)), key


def _inode_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    inode = decode_inode(key, record.value)
    number, parent = pack_id(inode.id), pack_id(parent_id_in_key(key))
    space = min(inode.space, _MOST_SPACE)
    yield "inode", key, parent, number, inode.is_directory, space, pack_name(inode.writer) if inode.writer else None
    if key != ROOT_KEY and not _is_valid_entry_name(entry_name_in_key(key)):
        yield "problem", "bad-name", key
    if inode.is_directory:
        if inode.has_quota:
            yield "quota", pack_id(inode.quota_id), number, key
        if inode.moving and not inode.is_tree_frozen(now_ms):
            yield "problem", "expired-mark", key
    for extent in inode.extents:
        yield "extent", pack_name(extent.blob), extent.inline, extent.length, key, parent


def _lease_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    lease = Lease.decode(key, record.value)
    silence = None
    if lease.is_renewal_overdue(now_ms, HARD_LIMIT_MS):
        minutes = (now_ms - lease.renewed_ms) // 60_000
        silence = f"silent for {minutes} minutes" if minutes >= 0 else "dated by a wrong clock"
    yield "lease", pack_id(id_in_key(key)), key, lease.key, pack_name(lease.holder), silence
    yield "leased", pack_id(id_in_key(key))


def _upload_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    """The parts of a pending upload belong to no file yet, however old they are."""
    parts = Upload.decode(key, record.value).parts.values()
    return (("part", pack_name(part.blob), part.inline) for part in parts)


def _deleted_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    tree = DeletedTree.decode(key, record.value)
    number = pack_id(tree.root.id)
    yield "deleted", number, key
    for quota in tree.charged:
        yield "charge", pack_id(quota), number
    if tree.root.has_quota:
        yield "quota", pack_id(tree.root.quota_id), number, key


def _make_time_or_trail_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    """Yield the time, or the place, of a directory."""
    if key[:1] == b"w":
        decode_trail(key, record.value)
    yield "trace", key[:1].decode(), pack_id(id_in_key(key)), key


def _usage_rows(key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    if entry_name_in_key(key) not in (b"n", b"s"):
        raise CorruptDataError("a record of the namespace is not a counter: run holdfast namespace fsck", key=key)
    yield "usage", pack_id(id_in_key(key)), entry_name_in_key(key).decode(), record.number, record.version, key


_WITH_ID = 1 + ID_BYTES
RECORD_KINDS: Mapping[bytes, tuple[int, int, Callable[[bytes, Record, int], Iterator[Row]]]] = {
    b"s": (1, MAX_KEY_BYTES, _small_blob_row),
    b"g": (9, MAX_KEY_BYTES, _garbage_note_row),
    b"i": (_WITH_ID, MAX_KEY_BYTES, _inode_rows),
    b"l": (_WITH_ID, _WITH_ID, _lease_rows),
    b"p": (2, MAX_KEY_BYTES, _upload_rows),
    b"r": (_WITH_ID, _WITH_ID, _deleted_rows),
    b"t": (_WITH_ID, _WITH_ID, _make_time_or_trail_rows),
    b"u": (_WITH_ID + 1, _WITH_ID + 1, _usage_rows),
    b"w": (_WITH_ID, _WITH_ID, _make_time_or_trail_rows),
}
"""The kinds of records by the first byte of their keys: how long the keys are at least and at most, and the function
that yields the rows of a record, given the time too; it raises `CorruptDataError` if the record is damaged."""


def decode_record_rows(key: bytes, record: Record, now_ms: int) -> list[Row]:
    """Decode a record; return its rows for `Survey.add_rows`.

    Raises:
        CorruptDataError: it is damaged.
    """
    least, most, rows = RECORD_KINDS[key[:1]]
    if not least <= len(key) <= most:
        raise CorruptDataError("the key of a record has a wrong length: run holdfast namespace fsck", key=key)
    return list(rows(key, record, now_ms))


def can_decode_record(key: bytes, record: Record) -> bool:
    """Return whether a record can be decoded as one of its kind."""
    try:
        decode_record_rows(key, record, 0)
    except CorruptDataError:
        return False
    return True


def _is_valid_entry_name(name: bytes) -> bool:
    """Check whether an entry of this name can be reached by a path."""
    try:
        return NsPath.parse("/" + name.decode()).names == (name,)
    except (UnicodeDecodeError, InvalidPathError):
        return False


def pack_id(number: int) -> bytes:
    """Encode an inode id as the temporary tables have it: 16 bytes, most significant first."""
    return number.to_bytes(ID_BYTES, "big")


def _unpack_id(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


def pack_name(text: str) -> bytes:
    """Encode a text as UTF-8 for the temporary tables of the check; lone surrogates are kept."""
    return text.encode(errors="surrogatepass")


def unpack_name(packed: bytes) -> str:
    """Decode a text that `pack_name` has encoded."""
    return packed.decode(errors="surrogatepass")
