"""What a pass keeps is in a temporary file: the memory is bounded, and nothing stays."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Collection, Iterator
from contextlib import suppress

import pytest

from holdfast.errors import StorageFullError
from holdfast.namespace.blobs import stored_size
from holdfast.namespace.fsck.findings import FINDING_KINDS, ignore_progress
from holdfast.namespace.fsck.survey import make_stored_blob_row, open_survey
from holdfast.namespace.inode import Extent, Inode, InodeKind, encode_inode
from holdfast.namespace.keys import ROOT_KEY, inode_key
from holdfast.transactions.base import Record, ScanPage


class _Reader:
    """A snapshot with a directory of many files in each of many directories, made while it is read."""

    def __init__(self, directories: int, files: int) -> None:
        self._records = self._make(directories, files)

    def _make(self, directories: int, files: int) -> Iterator[tuple[bytes, Record]]:
        yield (
            ROOT_KEY,
            self._record(Inode(id=1, kind=InodeKind.DIRECTORY, mode=0o755, owner="o", group="g", mtime_ms=1)),
        )
        for number in range(directories):
            inode = Inode(id=number + 2, kind=InodeKind.DIRECTORY, mode=0o755, owner="o", group="g", mtime_ms=1)
            yield inode_key(1, b"%09d" % number), self._record(inode)
        for number in range(directories * files):
            inode = Inode(
                id=number + directories + 2,
                kind=InodeKind.FILE,
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


@pytest.mark.slow
def test_a_pass_over_many_records_needs_no_memory_for_each() -> None:
    directories, files = 3000, 4
    tracemalloc.start()
    try:
        with open_survey(0) as survey:
            survey.add_rows(
                [make_stored_blob_row(blob_name(number), stored_size(10)) for number in range(directories * files)]
            )
            tracemalloc.reset_peak()
            survey.read_records(_Reader(directories, files), ignore_progress)
            _, most = tracemalloc.get_traced_memory()
            counts = survey.counts()
            assert [kind for kind in FINDING_KINDS for _ in survey.query(kind)] == []
    finally:
        tracemalloc.stop()
    assert (counts.files, counts.directories, counts.blobs) == (directories * files, directories + 1, 12_000)
    assert most < 5_000_000, "a page of a thousand records, and its rows"


def _temporary_files() -> list[str]:
    """Return the files of SQLite's temporary databases that this process has open."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{number}"))
    return [link for link in links if "etilqs" in link]


def test_nothing_stays_of_an_interrupted_pass() -> None:
    before = _temporary_files()

    def interrupted() -> None:
        with open_survey(0) as survey:
            survey._connection.execute("PRAGMA cache_size = 10")
            survey.read_records(_Reader(3000, 4), ignore_progress)
            (file,) = set(_temporary_files()) - set(before)
            assert file.endswith("(deleted)"), "a process that is killed leaves it in no directory"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert _temporary_files() == before


def test_a_full_disk_is_one_sentence() -> None:
    def fill() -> None:
        with open_survey(0) as survey:
            survey._connection.execute("PRAGMA max_page_count = 100")
            survey.read_records(_Reader(3000, 4), ignore_progress)

    with pytest.raises(StorageFullError, match="free some space"):
        fill()
