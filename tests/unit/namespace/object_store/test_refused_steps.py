"""A step that is refused has changed nothing: no directory is gone, and none is new."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import HoldfastError, PreconditionError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Put, Require, RequireEmpty
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World


def _missing_source(store: NamespaceStore) -> None:
    store.rename_dir("missing", "free")


def _source_that_is_a_file(store: NamespaceStore) -> None:
    store.rename_dir("open/f", "free")


def _source_of_another_user(store: NamespaceStore) -> None:
    store.rename_dir("shut/d", "free")


def _source_of_another_user_to_a_new_directory(store: NamespaceStore) -> None:
    store.rename_dir("shut/d", "open/new/deep/d")


def _target_of_another_user(store: NamespaceStore) -> None:
    store.rename_dir("open/d", "shut/empty")


def _target_with_uploads(store: NamespaceStore) -> None:
    store.create_upload("free/inner/up")
    store.rename_dir("open/d", "free")


def _target_with_a_quota_below(store: NamespaceStore) -> None:
    store.rename_dir("open/d", "limited")


def _target_with_a_file_below(store: NamespaceStore) -> None:
    store.rename_dir("open/d", "full")


def _target_out_of_quota(store: NamespaceStore) -> None:
    store.rename_dir("open/d", "counted/free")


def _file_of_another_user_to_a_new_directory(store: NamespaceStore) -> None:
    store.rename("shut/f", "open/new/deep/f")


def _batch_with_a_failing_condition(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/"), Put("free/f", b"1"), Require("missing")])


def _batch_with_a_forbidden_put(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/"), Put("free/f", b"1"), Put("shut/g", b"1")])


def _batch_with_two_conditions(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/"), RequireEmpty("full/"), Put("free/f", b"1")])


@pytest.mark.parametrize(
    "act",
    [
        _missing_source,
        _source_that_is_a_file,
        _source_of_another_user,
        _source_of_another_user_to_a_new_directory,
        _target_of_another_user,
        _target_with_uploads,
        _target_with_a_quota_below,
        _target_with_a_file_below,
        _target_out_of_quota,
        _file_of_another_user_to_a_new_directory,
        _batch_with_a_failing_condition,
        _batch_with_a_forbidden_put,
        _batch_with_two_conditions,
    ],
    ids=lambda one: one.__name__,
)
def test_what_is_refused_changes_no_directory(act: Callable[[NamespaceStore], None]) -> None:
    world = World()
    root, alice = world.client(), world.client("alice")
    root.write_file("/shut/d/f", b"1")
    root.write_file("/shut/f", b"1")
    root.mkdirs("/shut/empty/inner")
    root.set_permission("/", 0o777)
    for directory in ("/open/d", "/free/inner/deep", "/free/second", "/limited/a", "/limited/b", "/full/z", "/counted"):
        alice.mkdirs(directory)
    alice.write_file("/open/d/f", b"1")
    alice.write_file("/open/f", b"1")
    alice.write_file("/full/z/f", b"1")
    alice.mkdirs("/counted/free/inner")
    alice.mkdirs("/open/d/1/2/3")
    root.set_quota("/limited/b", names=10)
    root.set_quota("/counted", names=3)
    before = [(entry.path, entry.id) for entry in root.walk("/")]
    with pytest.raises(HoldfastError):
        act(NamespaceStore(alice, close_namespace=False))
    assert [(entry.path, entry.id) for entry in root.walk("/")] == before
    root.flush()
    alice.flush()
    assert root.check().totals == {}


def test_a_directory_replaces_a_tree_of_empty_ones_in_the_same_step() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.namespace.mkdirs("/counted/free/inner/deep")
    store.namespace.mkdirs("/counted/free/second")
    store.namespace.set_quota("/counted", names=5)
    store.put("d/f", b"1")
    store.namespace.flush()
    store.rename_dir("d", "counted/free")
    assert [entry.path for entry in store.namespace.walk("/")] == ["/counted", "/counted/free", "/counted/free/f"]
    assert store.namespace.quota_usage("/counted").names == 3
    store.namespace.flush()
    assert store.namespace.check().totals == {}


def test_a_batch_needs_a_tree_of_empty_directories_to_be_empty_and_leaves_it() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/t/inner/deep")
    store.namespace.mkdirs("/t/limited")
    store.namespace.set_quota("/t/limited", names=10)
    store.apply([RequireEmpty("t/"), Put("t/inner/f", b"1"), Put("t/other/f", b"1")])
    files = [entry.path for entry in store.namespace.walk("/t") if not entry.is_directory]
    assert files == ["/t/inner/f", "/t/other/f"]
    assert store.namespace.exists("/t/inner/deep")
    assert store.namespace.check().totals == {}


def _require_empty(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("t/"), Put("done", b"1")])


def _replace(store: NamespaceStore) -> None:
    store.rename_dir("d", "t")


@pytest.mark.parametrize("act", [_require_empty, _replace], ids=lambda one: one.__name__)
@pytest.mark.parametrize("instead", [False, True], ids=["beside", "instead"])
def test_a_file_that_comes_below_empty_directories_meanwhile(
    act: Callable[[NamespaceStore], None], instead: bool
) -> None:
    world = World()
    other = world.client()
    other.mkdirs("/t/inner/deep")
    other.write_file("/d/f", b"1")
    seen: list[str] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and not seen:
            seen.append(call)
            if instead:  # the number of entries stays the same
                other.delete("/t/inner/deep")
            other.write_file("/t/inner/theirs", b"2")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    with pytest.raises(PreconditionError):
        act(store)
    assert seen
    assert other.open("/t/inner/theirs").read() == b"2"
    assert other.exists("/d/f")
    assert not other.exists("/done")


@pytest.mark.parametrize("locks", [False, True])
def test_a_tree_of_empty_directories_is_replaced(locks: bool) -> None:
    world = World()
    store = NamespaceStore(world.client(locks=locks), close_namespace=False)
    store.namespace.mkdirs("/t/inner/deep")
    store.put("d/f", b"1")
    store.apply([RequireEmpty("t/"), Put("new/f", b"1")])
    store.rename_dir("d", "t")
    store.rename_dir("t", "made/for/it")
    store.rename("made/for/it/f", "a/b")
    assert [entry.path for entry in store.namespace.walk("/")] == ["/a", "/a/b", "/new", "/new/f"]
    assert store.namespace.check().totals == {}
