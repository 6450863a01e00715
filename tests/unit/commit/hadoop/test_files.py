"""Test moving, deleting and listing on stores that rename directories, rename only files, or only copy."""

from __future__ import annotations

import pytest

from holdfast.commit import CommitContext
from holdfast.commit.hadoop.files import (
    delete_dir,
    file_info,
    is_dir,
    list_children,
    list_files,
    move_dir,
    move_file,
)
from holdfast.errors import NotFoundError, OutcomeUnknownError, PreconditionError, UnsupportedError
from holdfast.stores.base import MultipartLimits
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder
from tests.unit.commit.committer_jobs import Bucket

HOME = "out put/dataset1/"
LIMITS = MultipartLimits(min_part_size_bytes=4)
STORES = ["directories", "files", "copies"]


def make_store(kind: str) -> MemoryStore:
    if kind == "copies":
        return MemoryStore(limits=LIMITS)
    return MemoryStore(limits=LIMITS, rename=True, rename_dir=kind == "directories")


def context(store: MemoryStore, *faults: Fault) -> CommitContext:
    return Bucket("file-v1").context(store=InterceptedStore(store, Faulty(*faults)))


def put(store: MemoryStore, *paths: str) -> None:
    for path in paths:
        store.put(HOME + path, path.encode())


def keys(store: MemoryStore) -> dict[str, bytes]:
    return {info.key.removeprefix(HOME): store.get(info.key) for info in store.list_page("").objects}


@pytest.mark.parametrize("kind", STORES)
def test_a_file_moves_and_replaces(kind: str) -> None:
    store = make_store(kind)
    put(store, "a/x", "b/y")
    move_file(context(store), "a/x", "b/y")
    assert keys(store) == {"b/y": b"a/x"}
    with pytest.raises(NotFoundError):
        move_file(context(store), "a/x", "b/y")


@pytest.mark.parametrize("kind", STORES)
def test_a_lost_reply_of_a_move_is_settled(kind: str) -> None:
    """The second attempt finds no source: the target shows that the first one had its effect."""
    for operation in (StoreOperation.RENAME, StoreOperation.COPY, StoreOperation.DELETE):
        store = make_store(kind)
        put(store, "a/x")
        move_file(context(store, Fault(FaultMode.LOST_REPLY, operation)), "a/x", "b/x")
        assert keys(store) == {"b/x": b"a/x"}


def test_a_move_that_nobody_confirms() -> None:
    store = make_store("directories")
    put(store, "a/x")
    unknown = Fault(FaultMode.FAIL, StoreOperation.RENAME, times=FOR_EVER, error=OutcomeUnknownError("no reply"))
    with pytest.raises(OutcomeUnknownError):
        move_file(context(store, unknown), "a/x", "b/x")
    assert keys(store) == {"a/x": b"a/x"}


def test_a_store_that_can_neither_rename_nor_copy() -> None:
    store = MemoryStore(limits=LIMITS, copy=False)
    put(store, "a/x")
    with pytest.raises(UnsupportedError):
        move_file(context(store), "a/x", "b/x")


@pytest.mark.parametrize("kind", STORES)
def test_a_directory_moves(kind: str) -> None:
    """C7: its neighbor ``ab`` stays."""
    store = make_store(kind)
    put(store, "a/x", "a/sub/y", "ab/z")
    move_dir(context(store), "a", "c/d")
    assert keys(store) == {"ab/z": b"ab/z", "c/d/sub/y": b"a/sub/y", "c/d/x": b"a/x"}
    with pytest.raises(NotFoundError):
        move_dir(context(store), "a", "c/d")


def test_a_directory_is_renamed_in_one_call_where_the_store_has_it() -> None:
    store, recorded = make_store("directories"), Recorder()
    put(store, "a/x", "a/y")
    move_dir(Bucket("file-v1").context(store=InterceptedStore(store, recorded)), "a", "b")
    assert recorded.counts() == {StoreOperation.RENAME_DIR: 1}


def test_a_directory_does_not_replace_another_in_one_step() -> None:
    store = make_store("directories")
    put(store, "a/x", "b/y")
    with pytest.raises(PreconditionError):
        move_dir(context(store), "a", "b")
    assert set(keys(store)) == {"a/x", "b/y"}


def test_a_lost_reply_of_a_directory_is_settled() -> None:
    store = make_store("directories")
    put(store, "a/x")
    move_dir(context(store, Fault(FaultMode.LOST_REPLY, StoreOperation.RENAME_DIR)), "a", "b")
    assert set(keys(store)) == {"b/x"}


@pytest.mark.parametrize("kind", STORES)
def test_looking(kind: str) -> None:
    store = make_store(kind)
    put(store, "a/x", "a/sub/y", "a/sub/z", "ab/w")
    ctx = context(store)
    assert is_dir(ctx, "a") and is_dir(ctx, "a/sub") and not is_dir(ctx, "a/x") and not is_dir(ctx, "b")
    found = file_info(ctx, "a/x")
    assert found is not None and found.size_bytes == 3
    assert file_info(ctx, "a") is None
    assert sorted(path for path, _info in list_files(ctx, "a")) == ["a/sub/y", "a/sub/z", "a/x"]
    assert list_children(ctx, "a") == [("sub", True), ("x", False)]
    assert list_children(ctx, "nothing") == []


@pytest.mark.parametrize("kind", STORES)
def test_deleting_page_by_page(kind: str) -> None:
    """C7: the neighbor stays, and so do unfinished files unless the caller asks for their deletion."""
    store, recorded = make_store(kind), Recorder()
    for number in range(1001):
        store.put(f"{HOME}a/{number:04d}", b"")
    put(store, "ab/x")
    for path in ("a/pending", "ab/pending"):
        store.create_upload(HOME + path)
    ctx = Bucket("file-v1").context(store=InterceptedStore(store, recorded))
    delete_dir(ctx, "a", unfinished=False)
    assert recorded.count(StoreOperation.DELETE_MANY) == 2
    assert set(keys(store)) == {"ab/x"} and len(store.list_uploads_page("").uploads) == 2
    delete_dir(ctx, "a")
    assert [upload.key for upload in store.list_uploads_page("").uploads] == [HOME + "ab/pending"]
    delete_dir(ctx, "a")
