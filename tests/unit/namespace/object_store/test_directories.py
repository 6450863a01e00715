"""Directories that were made for objects go with the last object; all others stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace.inode import MADE_FOR_OBJECTS, Extent, Inode, InodeKind
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.objects import is_untouched_implicit_directory
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Delete, Put
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World


def _directories(store: NamespaceStore) -> list[str]:
    return [entry.path for entry in store.namespace.walk("/") if entry.is_directory]


def _put(store: NamespaceStore) -> None:
    store.put("a/b/f", b"1")


def _apply(store: NamespaceStore) -> None:
    store.apply([Put("a/b/f", b"1")])


def _upload(store: NamespaceStore) -> None:
    upload = store.create_upload("a/b/f")
    store.complete_upload("a/b/f", upload, [store.upload_part("a/b/f", upload, 1, b"1")])


@pytest.mark.parametrize("write", [_put, _apply, _upload], ids=lambda one: one.__name__)
def test_what_was_made_for_an_object_goes_with_it(write: Callable[[NamespaceStore], None]) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    write(store)
    assert _directories(store) == ["/a", "/a/b"]
    store.delete("a/b/missing")
    assert _directories(store) == ["/a", "/a/b"]
    NamespaceStore(world.client(), close_namespace=False).delete("a/b/f")  # another client knows it too
    assert _directories(store) == []


def _quota(namespace: Namespace) -> None:
    namespace.set_quota("/a/b", names=10)


def _mode(namespace: Namespace) -> None:
    namespace.set_permission("/a/b", 0o770)


def _owner(namespace: Namespace) -> None:
    namespace.set_owner("/a/b", "alice")


def _attribute(namespace: Namespace) -> None:
    namespace.set_xattr("/a/b", "user.team", b"x")


@pytest.mark.parametrize("change", [_quota, _mode, _owner, _attribute], ids=lambda one: one.__name__)
def test_a_directory_that_somebody_has_changed_stays(change: Callable[[Namespace], None]) -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.put("a/b/f", b"1")
    change(store.namespace)
    store.delete("a/b/f")
    assert _directories(store) == ["/a", "/a/b"]


OTHERS = {
    "xattrs": {"user.team": b"x"},
    "names_quota": 1,
    "space_quota": 1,
    "quota_id": 1,
    "unknown": {"policy": "HOT"},
    "namespace": "n",
    "replication": 1,
    "block_size": 512,
    "extents": (Extent("blob", 1),),
    "cuts": 1,
    "writer": "w",
    "kind": InodeKind.FILE,
}
"""Another value for each field that a client may set, and that a directory for an object has not."""


def test_every_field_that_somebody_has_changed_keeps_the_directory() -> None:
    """Also those that a later release adds: whoever adds a field decides here."""
    rights = {MADE_FOR_OBJECTS: b"755 ann staff"}
    made = Inode(
        id=7, kind=InodeKind.DIRECTORY, mode=0o755, owner="ann", group="staff", mtime_ms=1, atime_ms=2, xattrs=rights
    )
    assert is_untouched_implicit_directory(made)
    free = {"id", "mode", "owner", "group", "mtime_ms", "atime_ms", "moving", "moving_until_ms"}
    assert {one.name for one in fields(Inode)} == free | OTHERS.keys()
    for name, value in OTHERS.items():
        assert not is_untouched_implicit_directory(replace(made, **{name: value})), name


def test_a_directory_that_somebody_made_stays() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/team/in")
    store.put("team/in/p/f", b"1")
    store.delete("team/in/never")
    store.apply([Delete("team/in/p/f"), Delete("team/in/p")])
    assert _directories(store) == ["/team", "/team/in"]


def test_nothing_is_removed_for_a_key_that_does_not_exist() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.put("a/b/f", b"1")
    store.delete("a/b/never")
    store.apply([Delete("a/b/never"), Delete("a/b/f", "another")])
    assert _directories(store) == ["/a", "/a/b"]


def test_the_kept_directory_stays_when_its_last_file_is_deleted() -> None:
    store = NamespaceStore(World().client(), keep="a/b", close_namespace=False)
    for key in ("a/b/f", "a/b/d/f", "c/f"):
        store.put(key, b"1")
        store.delete(key)
    assert _directories(store) == ["/a", "/a/b"]


def test_a_directory_that_cannot_be_removed_hides_no_error() -> None:
    """The database goes away after the deletion."""
    world = World()

    def fail(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and argument.ranges:
            raise UnavailableError("the database is gone: repeat later")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, fail)), close_namespace=False)
    store.put("a/b/f", b"1")
    store.delete("a/b/f")
    assert world.client().exists("/a/b") and not world.client().exists("/a/b/f")


def test_a_directory_into_which_another_file_comes_meanwhile_stays() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    interrupted: list[str] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and argument.ranges and not interrupted:
            interrupted.append(call)
            other.put("p/new", b"2")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    store.put("p/old", b"1")
    store.delete("p/old")
    assert interrupted
    assert _directories(other) == ["/p"] and other.get("p/new") == b"2"


def test_an_object_comes_into_a_directory_that_becomes_empty_meanwhile() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    other.put("p/old", b"1")
    interrupted: list[str] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and not interrupted and any(key.endswith(b"f") for key in argument.inserts):
            interrupted.append(call)
            other.delete("p/old")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    store.put("p/f", b"2")
    assert interrupted
    assert other.get("p/f") == b"2"
    assert _directories(other) == ["/p"]
