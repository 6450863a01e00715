"""What a pass keeps in memory: the same answers as sets and dictionaries, in about 100 bytes for each inode."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Collection, Iterator

from hypothesis import given
from hypothesis import strategies as st

from holdfast.namespace.frames import stored_bytes
from holdfast.namespace.fsck.blob_table import NOTED, OWNED, YOUNG, BlobTable
from holdfast.namespace.fsck.ids import IdMap, IdSet
from holdfast.namespace.fsck.progress import silent
from holdfast.namespace.fsck.survey import take_facts
from holdfast.namespace.inode import Extent, Inode, Kind, encode_inode
from holdfast.namespace.inode_ids import MOST_ID
from holdfast.namespace.keys import ROOT_KEY, inode_key
from holdfast.transactions.base import Record, ScanPage

ids = st.integers(1, MOST_ID) | st.integers(1, 600)


@given(st.lists(ids), ids)
def test_a_set_of_ids(numbers: list[int], other: int) -> None:
    table = IdSet()
    for number in numbers:
        table.add(number)
    table.sort()
    assert sorted(table) == sorted(numbers)
    assert all(number in table for number in numbers)
    assert (other in table) is (other in numbers)
    assert sorted(table.duplicates()) == sorted(number for number, count in Counter(numbers).items() if count > 1)


@given(st.dictionaries(ids, st.integers(0, 2**63)), ids)
def test_a_map_of_ids(numbers: dict[int, int], other: int) -> None:
    table = IdMap()
    for number, value in numbers.items():
        table.add(number, value)
    table.sort()
    assert {number: table.get(number) for number in numbers} == numbers
    assert table.get(other) == numbers.get(other)


names = st.builds(
    "{:02x}/{:x}-{:022x}".format, st.integers(0, 255), st.integers(1, 2**64 - 1), st.integers(0, 2**88 - 1)
) | st.sampled_from(["foreign", "ab/photo", "", "00/1-" + "0" * 21])


@given(st.dictionaries(names, st.integers(0, 2**40)), names, st.integers(0, 2**40))
def test_a_table_of_blobs(blobs: dict[str, int], late: str, size: int) -> None:
    table = BlobTable()
    for name, length in blobs.items():
        table.add(name, length, YOUNG)
    table.sort()
    assert (table.count, table.bytes) == (len(blobs), sum(blobs.values()))
    assert {row.name: row.size for row in table.rows_without(0)} == blobs
    for name, length in blobs.items():
        first, second = table.mark(name, OWNED), table.mark(name, NOTED)
        assert first is not None and second is not None
        assert (first.name, first.size, first.flags) == (name, length, YOUNG)
        assert second.flags == YOUNG | OWNED
    assert list(table.rows_without(OWNED)) == []
    if late not in blobs:
        assert table.mark(late, OWNED) is None
        table.add_late(late, size)
        assert [row.name for row in table.rows_without(OWNED)] == [late]


class _Reader:
    """A snapshot with a directory of many files in each of many directories, made while it is read."""

    def __init__(self, directories: int, files: int) -> None:
        self._records = self._make(directories, files)

    def _make(self, directories: int, files: int) -> Iterator[tuple[bytes, Record]]:
        yield ROOT_KEY, self._record(Inode(id=1, kind=Kind.DIRECTORY, mode=0o755, owner="o", group="g", mtime_ms=1))
        for number in range(directories):
            inode = Inode(id=number + 2, kind=Kind.DIRECTORY, mode=0o755, owner="o", group="g", mtime_ms=1)
            yield inode_key(1, b"%09d" % number), self._record(inode)
        for number in range(directories * files):
            inode = Inode(
                id=number + directories + 2,
                kind=Kind.FILE,
                mode=0o644,
                owner="o",
                group="g",
                mtime_ms=1,
                replication=1,
                extents=(Extent(blob_name(number), 10),),
            )
            yield inode_key(number // files + 2, b"%09d" % number), self._record(inode)

    def _record(self, inode: Inode) -> Record:
        return Record(1, encode_inode(inode))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return {}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        if not start.startswith(b"i"):
            return ScanPage([], False, {})
        page = [record for _, record in zip(range(limit), self._records, strict=False)]
        return ScanPage(page, len(page) == limit, {})


def blob_name(number: int) -> str:
    return f"{number % 256:02x}/{number + 1:x}-{number:022x}"


def test_memory() -> None:
    """A namespace of this size would take ten times as much in dictionaries of objects."""
    directories, files = 3000, 4
    tracemalloc.start()
    try:
        objects = BlobTable()
        for number in range(directories * files):
            objects.add(blob_name(number), stored_bytes(10))
        objects.sort()
        facts = take_facts(_Reader(directories, files), objects, 0, silent)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (facts.files, facts.directories.count) == (directories * files, directories + 1)
    assert facts.missing.total == facts.lost_parents.total == 0
    assert list(objects.rows_without(OWNED)) == []
    fixed = 400_000  # a thousand small tables
    assert used - fixed < 100 * (directories + directories * files)
