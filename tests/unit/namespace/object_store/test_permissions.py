"""A user who may not write a directory may not write it through the object store either."""

from __future__ import annotations

import pytest

from holdfast.errors import AccessDeniedError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Create, Part, Put, Update, iter_uploads
from tests.namespace_world import World, all_records


def test_nothing_is_created_replaced_or_removed_in_the_directory_of_another_user() -> None:
    world = World()
    with world.client().create("/shut/f", mode=0o666) as file:
        file.write(b"old")
    world.client().mkdirs("/open", mode=0o777)
    store = NamespaceStore(world.client("alice"))
    etag = store.head("shut/f").etag
    root = NamespaceStore(world.client())
    upload = root.create_upload("shut/up")
    part = root.upload_part("shut/up", upload, 1, b"x")
    before = all_records(world.database)
    for forbidden in (
        lambda: store.put("shut/g", b"x"),
        lambda: store.put("shut/g", b"x", Create()),
        lambda: store.put("shut/f", b"x"),
        lambda: store.put("shut/f", b"x", Update(etag)),
        lambda: store.put("shut/a/b", b"x"),
        lambda: store.delete("shut/f"),
        lambda: store.apply([Put("open/g", b"x"), Put("shut/g", b"x")]),
        lambda: store.create_upload("shut/g"),
        lambda: store.create_upload("shut/f"),
        lambda: store.upload_part("shut/up", upload, 2, b"x"),
        lambda: store.abort_upload("shut/up", upload),
        lambda: store.check_targets(["open/g", "shut/g"]),
        lambda: store.check_targets(["shut/new/g"]),
        lambda: store.complete_upload("shut/up", upload, [Part(1, part.etag, 1)]),
    ):
        with pytest.raises(AccessDeniedError):
            forbidden()
    assert all_records(world.database) == before
    store.put("open/a/b", b"x")
    assert store.get("open/a/b") == b"x"


def test_a_file_that_may_not_be_written_is_no_target() -> None:
    world = World()
    root = world.client()
    root.mkdirs("/sticky")
    root.set_permission("/sticky", 0o1777)
    root.mkdirs("/open")
    root.set_permission("/open", 0o777)
    root.write_file("/sticky/f", b"1")
    root.write_file("/open/f", b"1")
    store = NamespaceStore(world.client("alice"))
    for taken in ("sticky/f", "open/f"):
        with pytest.raises(AccessDeniedError):
            store.check_targets(["open/g", taken])
        with pytest.raises(AccessDeniedError):
            store.create_upload(taken)
    store.check_targets(["sticky/g", "open/a/b"])


def test_an_object_in_a_sticky_directory_keeps_its_owner() -> None:
    world = World()
    world.client().mkdirs("/s")
    world.client().set_permission("/s", 0o1777)
    world.client("alice").write_file("/s/f", b"1")
    world.client("alice").set_permission("/s/f", 0o666)
    store = NamespaceStore(world.client("bob"))
    for forbidden in (
        lambda: store.put("s/f", b"2"),
        lambda: store.put("s/f", b"2", Update(store.head("s/f").etag)),
        lambda: store.check_targets(["s/f"]),
        lambda: store.create_upload("s/f"),
        lambda: world.client("bob").write_file("/s/f", b"2", overwrite=True),
    ):
        with pytest.raises(AccessDeniedError):
            forbidden()
    status = world.client().status("/s/f")
    assert (status.owner, status.mode, status.size) == ("alice", 0o666, 1)


def test_nobody_lists_what_the_directory_does_not_allow() -> None:
    world = World()
    with world.client().create("/hidden/f") as file:
        file.write(b"1")
    world.client().write_file("/seen/f", b"1")
    world.client().set_permission("/hidden", 0o700)
    root, store = NamespaceStore(world.client()), NamespaceStore(world.client("alice"))
    for prefix in ("", "h", "hidden", "hidden/", "hidden/f", "hidden/sub/"):
        with pytest.raises(AccessDeniedError):
            store.list_page(prefix)
    for prefix in ("s", "seen/", "a/b/", "hidden-"):
        store.list_page(prefix)
    world.client().set_permission("/hidden", 0o711)
    with pytest.raises(AccessDeniedError):
        store.list_page("hidden/f")  # HDFS lets nobody list a directory that may only be searched
    assert [one.key for one in root.list_page("").objects] == ["hidden/f", "seen/f"]


def test_an_upload_belongs_to_its_directory() -> None:
    world = World()
    root = NamespaceStore(world.client())
    for name, mode in (("hidden", 0o700), ("shut", 0o755), ("drop", 0o733)):
        root.namespace.mkdirs(f"/{name}")
        root.namespace.set_permission(f"/{name}", mode)
    keys = ["hidden/a", "shut/a", "shut/new/a", "drop/a"]
    uploads = {key: root.create_upload(key) for key in keys}
    store = NamespaceStore(world.client("alice"))
    assert {one.key for one in iter_uploads(root, "")} == set(keys)
    assert {one.key for one in iter_uploads(store, "")} == {"shut/a", "shut/new/a", "drop/a"}
    assert {one.key for one in iter_uploads(store, "shut/new/")} == {"shut/new/a"}
    store.upload_part("drop/a", uploads["drop/a"], 1, b"x")
    store.abort_upload("drop/a", uploads["drop/a"])
    for key in keys[:3]:
        with pytest.raises(AccessDeniedError):
            store.abort_upload(key, uploads[key])
    assert len(list(iter_uploads(root, ""))) == 3


def test_an_upload_below_a_file_can_be_aborted() -> None:
    world = World()
    root = NamespaceStore(world.client())
    root.namespace.mkdirs("/open")
    root.namespace.set_permission("/open", 0o777)
    store = NamespaceStore(world.client("alice"))
    upload = store.create_upload("open/a/b")
    root.put("open/a", b"1")
    store.abort_upload("open/a/b", upload)
    assert list(iter_uploads(root, "")) == []
