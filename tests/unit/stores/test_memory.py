"""What the memory store does beyond the conformance suite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError, UnsupportedError
from holdfast.stores.base import (
    Complete,
    Delete,
    MultipartLimits,
    Part,
    Put,
    Require,
    RequireEmpty,
    iter_objects,
    iter_uploads,
)
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, StillClock


def _story() -> list[object]:
    store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=1), clock=StillClock(1000.0), ids=CountingIds())
    first, second = store.create_upload("t/a"), store.create_upload("t/a")
    parts = [store.upload_part("t/a", first, number, b"x" * number) for number in (1, 2)]
    return [first, second, parts, store.complete_upload("t/a", first, parts), list(iter_uploads(store, "t/"))]


def test_same_ids_and_clock_give_the_same_state() -> None:
    assert _story() == _story()
    assert _story()[0] == "000000000001"


def test_limits_are_those_given() -> None:
    store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=4, max_parts=2))
    upload_id = store.create_upload("a")
    with pytest.raises(InvalidRequestError, match="out of range"):
        store.upload_part("a", upload_id, 3, b"1234")
    with pytest.raises(InvalidRequestError, match="out of range"):
        store.upload_part("a", upload_id, 0, b"1234")
    small = [store.upload_part("a", upload_id, number, b"123") for number in (1, 2)]
    with pytest.raises(InvalidRequestError, match="too small"):
        store.complete_upload("a", upload_id, small)
    parts = [store.upload_part("a", upload_id, 1, b"1234"), small[1]]
    assert store.complete_upload("a", upload_id, parts).size_bytes == 7


def test_an_upload_belongs_to_its_key() -> None:
    store = MemoryStore()
    upload_id = store.create_upload("a")
    with pytest.raises(NotFoundError):
        store.upload_part("b", upload_id, 1, b"")
    store.abort_upload("b", upload_id)
    assert isinstance(store.upload_part("a", upload_id, 1, b""), Part)


def test_the_callers_buffer_may_change_afterwards() -> None:
    store = MemoryStore(rename=True)
    buffer = bytearray(b"before")
    store.put("a", buffer)  # type: ignore[arg-type]  # what a careless caller does
    file = store.open_write("b")
    file.write(memoryview(buffer))
    buffer[:] = b"after!"
    file.close()
    assert store.get("a") == store.get("b") == b"before"


def test_writing_to_a_closed_file() -> None:
    file = MemoryStore(rename=True).open_write("a")
    file.close()
    with pytest.raises(InvalidRequestError, match="closed"):
        file.write(b"1")


def test_capabilities_are_those_that_were_asked_for() -> None:
    files = MemoryStore(rename=True).capabilities
    assert (files.rename, files.rename_dir, files.copy, files.consistent_listing) == (True, True, True, True)
    objects = MemoryStore(copy=False, consistent_listing=False).capabilities
    assert (objects.rename, objects.rename_dir, objects.copy, objects.consistent_listing) == (False,) * 4
    by_file = MemoryStore(rename=True, rename_dir=False).capabilities
    assert (by_file.rename, by_file.rename_dir) == (True, False)
    with pytest.raises(InvalidRequestError, match="pass rename as well"):
        MemoryStore(rename_dir=True)


def test_keys_are_flat_without_rename() -> None:
    store = MemoryStore()
    for key in ("a/b/c", "a", "a/b"):
        store.put(key, key.encode())
    assert [store.get(key) for key in ("a", "a/b", "a/b/c")] == [b"a", b"a/b", b"a/b/c"]


def test_a_rename_changes_neither_etag_nor_time_nor_metadata() -> None:
    """Renames are recovered by etag (paper 002)."""
    store = MemoryStore(rename=True)
    store.put("a/b", b"1", metadata={"job": "1"})
    before = store.head("a/b")
    store.rename("a/b", "a/c")
    store.rename_dir("a", "d")
    assert store.head("d/c") == replace(before, key="d/c")


def test_a_pending_upload_keeps_its_place_as_a_directory() -> None:
    """As the hidden file of an upload does on a file system."""
    store = MemoryStore(rename=True)
    upload_id = store.create_upload("a/b")
    with pytest.raises(InvalidRequestError, match="a directory stands"):
        store.put("a", b"1")
    store.abort_upload("a/b", upload_id)
    store.put("a", b"1")


def test_an_upload_whose_place_was_taken_can_be_completed_when_it_is_free() -> None:
    store = MemoryStore(rename=True)
    upload_id = store.create_upload("a")
    parts = [store.upload_part("a", upload_id, 1, b"1")]
    store.put("a/b", b"2")
    with pytest.raises(InvalidRequestError, match="a directory stands"):
        store.complete_upload("a", upload_id, parts)
    store.delete("a/b")
    assert store.complete_upload("a", upload_id, parts).size_bytes == 1


def test_only_files_whose_directory_moved_are_lost() -> None:
    store = MemoryStore(rename=True)
    store.put("a/1", b"")
    earlier, beside = store.open_write("a/earlier"), store.open_write("a-beside")
    store.rename_dir("a", "b")
    later = store.open_write("a/later")
    for file in (beside, later):
        file.close()
    with pytest.raises(NotFoundError, match="write it again"):
        earlier.close()
    assert [info.key for info in iter_objects(store, "")] == ["a-beside", "a/later", "b/1"]


def test_too_many_keys_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="batched_keys"):
        MemoryStore().delete_many(["a"] * 1001)


# --- transactions -----------------------------------------------------------------------------------------------------
def _namespace() -> MemoryStore:
    return MemoryStore(rename=True, transactions=True)


def test_transactions_are_offered_only_on_request_and_only_with_uploads() -> None:
    assert not MemoryStore().capabilities.transactions
    assert MemoryStore(transactions=True).capabilities.transactions
    with pytest.raises(UnsupportedError, match="several changes"):
        MemoryStore().apply([Put("a", b"1")])
    with pytest.raises(InvalidRequestError, match="pass limits as well"):
        MemoryStore(limits=None, rename=True, transactions=True)


def _content(store: MemoryStore) -> object:
    objects = [(info, store.get(info.key)) for info in iter_objects(store, "")]
    return objects, [(upload, store._uploads[upload.upload_id].parts) for upload in iter_uploads(store, "")]


def test_files_and_directories_are_judged_before_and_after_all_changes() -> None:
    """A file may not take the place of a directory that the same call empties, and two changes may not clash."""
    store = _namespace()
    store.put("a/b", b"1")
    before = _content(store)
    emptied = [Put("a", b"2"), Delete("a/b")]
    for changes in ([Put("a", b"2")], emptied, [Put("a/b/c", b"2")], [Put("d", b"1"), Put("d/e", b"2")]):
        with pytest.raises(InvalidRequestError, match="stands where"):
            store.apply(changes)
        assert _content(store) == before


def test_a_refused_transaction_leaves_uploads_as_they_were() -> None:
    store = _namespace()
    upload_id = store.create_upload("a")
    parts = (store.upload_part("a", upload_id, 1, b"1"),)
    store.put("b/c", b"2")
    before = _content(store)
    for refused in (Put("b", b"3"), Require("missing"), RequireEmpty("b/")):
        with pytest.raises((InvalidRequestError, PreconditionError)):
            store.apply([Complete("a", upload_id, parts), refused])
        assert _content(store) == before
    store.apply([Complete("a", upload_id, parts)])
    assert store.get("a") == b"1"
    assert list(iter_uploads(store, "")) == []


def test_an_empty_directory_is_one_without_objects() -> None:
    store = MemoryStore(transactions=True)
    store.put("logs", b"")
    store.create_upload("log/1")
    store.apply([RequireEmpty("log/")])
    store.put("log/0/1", b"")
    with pytest.raises(PreconditionError, match="not empty"):
        store.apply([RequireEmpty("log/")])


def test_transactions_keep_listings_in_order() -> None:
    store = MemoryStore(transactions=True)
    store.apply([Put(key, b"") for key in ("b", "a-b", "a/c")])
    store.apply([Put("a/b", b""), Delete("b"), Delete("never")])
    assert [info.key for info in iter_objects(store, "")] == ["a-b", "a/b", "a/c"]
    store.delete("a/b")
    assert [info.key for info in iter_objects(store, "a")] == ["a-b", "a/c"]
