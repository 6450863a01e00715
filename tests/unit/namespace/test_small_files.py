"""Small files are read in one snapshot, with their inode."""

from __future__ import annotations

from array import array
from collections.abc import Collection

import pytest

from holdfast.errors import CorruptDataError
from holdfast.namespace.keys import data_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.operations import content
from holdfast.transactions.base import Commit, Record
from tests.unit.namespace.fresh import fresh_namespace


@pytest.mark.parametrize("change", ["replace", "delete", "truncate"])
def test_a_reader_keeps_the_small_file_that_it_opened(change: str) -> None:
    namespace = fresh_namespace()
    namespace.write_file("/a", b"old content")
    reader = namespace.open("/a")
    if change == "replace":
        namespace.write_file("/a", b"new", overwrite=True)
    elif change == "delete":
        namespace.delete("/a")
    else:
        namespace.truncate("/a", 0)
    assert reader.read() == b"old content" and reader.read(4, 3) == b"con"


def test_a_small_file_is_opened_and_read_in_one_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = fresh_namespace()
    namespace.write_file("/dir/a", b"content")
    calls = _count_reads(namespace, monkeypatch)
    assert namespace.open("/dir/a").read() == b"content"
    assert len(calls) == 1


def test_the_bytes_of_files_do_not_fill_the_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = fresh_namespace()
    namespace.write_file("/a", b"content")
    calls = _count_reads(namespace, monkeypatch)
    assert namespace.open("/a").read() == b"content"
    (keys,) = calls
    assert [key for key in keys if key[0] == ord("s")] and namespace.open("/a").read() == b"content"
    assert all(namespace.operations.hints.get(key) is None for key in keys if key[0] == ord("s"))


def test_a_file_of_many_small_pieces_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_MOST_LOADED_BYTES", 10)
    namespace = fresh_namespace()
    namespace.write_file("/a", b"12345678")
    with namespace.append("/a") as file:
        file.write(b"9abcdef")
    reader = namespace.open("/a")
    assert reader.read() == b"123456789abcdef" and reader.read(6, 4) == b"789a"
    namespace.delete("/a")
    with pytest.raises(CorruptDataError, match="open it again"):
        reader.read()


def test_missing_bytes_are_damage() -> None:
    namespace = fresh_namespace()
    namespace.write_file("/a", b"content")
    (extent,) = namespace.open("/a").inode.extents
    namespace.database.commit(Commit(deletes=[data_key(extent.blob)]))
    with pytest.raises(CorruptDataError, match="bytes of the file are missing"):
        namespace.open("/a").read()


def _count_reads(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> list[Collection[bytes]]:
    """Note the keys of each round trip from now on."""
    calls: list[Collection[bytes]] = []
    get_many = namespace.database.get_many

    def noted(keys: Collection[bytes]) -> dict[bytes, Record]:
        calls.append(keys)
        return get_many(keys)

    monkeypatch.setattr(namespace.database, "get_many", noted)
    return calls


def test_the_length_of_a_view_is_in_bytes() -> None:
    namespace = fresh_namespace()
    view = memoryview(array("I", range(100)))
    namespace.write_file("/small", view)  # type: ignore[arg-type]  # callers that are not checked pass views
    namespace.write_file("/large", memoryview(array("I", range(10_000))))  # type: ignore[arg-type]  # the same
    assert namespace.open("/small").read() == bytes(view)
    assert namespace.status("/large").size == 40_000
    assert namespace.check().totals == {}
