"""What is refused leaves no blob in the object store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Create, Delete, Put, Require, iter_objects
from holdfast.stores.conformance import Subject
from holdfast.stores.conformance.transactions import check_apply_file_and_directory
from tests.namespace_world import World

_LARGE = b"x" * 100_000


def _put_of_an_existing_key(store: NamespaceStore) -> None:
    store.put("a", _LARGE, Create())


def _batch_with_a_failing_condition(store: NamespaceStore) -> None:
    store.apply([Put("b", _LARGE), Put("c", _LARGE), Require("missing")])


def _batch_with_a_bad_key(store: NamespaceStore) -> None:
    store.apply([Put("b", _LARGE), Delete("c//d")])


@pytest.mark.parametrize(
    "act",
    [_put_of_an_existing_key, _batch_with_a_failing_condition, _batch_with_a_bad_key],
    ids=lambda one: one.__name__,
)
def test_a_refused_change(act: Callable[[NamespaceStore], None]) -> None:
    world = World()
    store = NamespaceStore(world.client())
    store.put("a", b"abcde")
    before = list(iter_objects(world.store, ""))
    with pytest.raises(HoldfastError) as refused:
        act(store)
    assert isinstance(refused.value, PreconditionError | ValueError)
    assert list(iter_objects(world.store, "")) == before
    assert [one.key for one in iter_objects(store, "")] == ["a"]


# --- files and directories --------------------------------------------------------------------------------------------
def test_no_change_puts_a_file_below_a_file_or_in_place_of_a_directory() -> None:
    world = World()
    handles = [NamespaceStore(world.client(), close_namespace=False) for _ in range(2)]
    check_apply_file_and_directory(Subject(*handles, "suite", rounds=1))


@pytest.mark.parametrize("key", ["file/a", "file/a/b", "dir", "dir/sub"])
@pytest.mark.parametrize(
    "write",
    [
        lambda store, key: store.put(key, b"1"),
        lambda store, key: store.put(key, b"1", Create()),
        lambda store, key: store.create_upload(key),
        lambda store, key: store.check_targets(["free", key]),
    ],
    ids=["put", "create", "create_upload", "check_targets"],
)
def test_no_call_does(write: Callable[[NamespaceStore, str], object], key: str) -> None:
    store = NamespaceStore(World().client())
    store.put("file", b"file")
    store.put("dir/sub/a", b"a")
    with pytest.raises(InvalidRequestError):
        write(store, key)
    with pytest.raises(NotFoundError):
        store.get(key)
    store.delete(key)
    assert [one.key for one in iter_objects(store, "")] == ["dir/sub/a", "file"]
    store.delete("dir/sub/a")
    store.put("dir", b"1")


def test_a_part_that_comes_after_the_end_of_its_upload() -> None:
    world = World()
    store, other = NamespaceStore(world.client()), NamespaceStore(world.client())
    upload = store.create_upload("a")
    write = world.store.put

    def end_first(*args: object, **options: object) -> object:
        other.abort_upload("a", upload)
        return write(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    world.store.put = end_first  # type: ignore[method-assign,assignment]  # the abort comes during the upload of the part
    with pytest.raises(NotFoundError):
        store.upload_part("a", upload, 1, _LARGE)
    assert list(iter_objects(world.store, "")) == []


@pytest.mark.parametrize("part", [b"12", _LARGE], ids=["small", "blob"])
def test_a_part_that_is_not_named(part: bytes) -> None:
    world = World()
    store = NamespaceStore(world.client())
    upload = store.create_upload("a")
    named = store.upload_part("a", upload, 1, part)
    store.upload_part("a", upload, 2, part)
    store.complete_upload("a", upload, [named])
    world.clock.at_s += 10 * 24 * 3600
    world.client().collect()
    assert store.get("a") == part
    assert len(list(iter_objects(world.store, ""))) + len(world.records(b"s")) == 1
