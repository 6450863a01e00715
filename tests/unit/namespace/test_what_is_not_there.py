"""A path that does not exist, is of another kind, or may not be changed, is refused in one sentence."""

from __future__ import annotations

import pytest

from holdfast.errors import PreconditionError
from holdfast.namespace.errors import PathNotFoundError, PermissionDeniedError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Require
from tests.namespace_world import World


def test_a_missing_path_has_no_quota() -> None:
    with pytest.raises(PathNotFoundError):
        World().client().quota_usage("/missing")


def test_nothing_is_deleted_where_nothing_is() -> None:
    world = World()
    world.client().mkdirs("/open")
    world.client().set_permission("/open", 0o777)
    assert not world.client("alice").delete("/open/missing", recursive=True)


def test_who_may_not_remove_an_empty_directory_moves_none_into_its_place() -> None:
    world = World()
    world.client().mkdirs("/open/target")
    world.client().set_permission("/open", 0o1777)
    store = NamespaceStore(world.client("alice"))
    store.put("open/source/f", b"1")
    with pytest.raises(PermissionDeniedError):
        store.rename_dir("open/source", "open/target")
    assert store.get("open/source/f") == b"1"


def test_a_directory_is_no_object() -> None:
    namespace = World().client()
    namespace.mkdirs("/directory")
    with pytest.raises(PreconditionError, match="the object is not there"):
        NamespaceStore(namespace).apply([Require("directory")])


@pytest.mark.parametrize("name", ["mtime_ms", "atime_ms"])
def test_who_may_not_write_a_file_sets_no_time(name: str) -> None:
    world = World()
    world.client().write_file("/f", b"1")
    with pytest.raises(PermissionDeniedError):
        world.client("alice").set_times("/f", **{name: 5})
    world.client().set_permission("/f", 0o666)
    world.client("alice").set_times("/f", **{name: 5})


def test_permissions_are_shown_as_ls_does() -> None:
    namespace = World().client()
    namespace.mkdirs("/d")
    shown = {}
    for mode in (0o755, 0o1777, 0o1776, 0o640):
        namespace.set_permission("/d", mode)
        shown[mode] = namespace.status("/d").permissions
    assert shown == {0o755: "drwxr-xr-x", 0o1777: "drwxrwxrwt", 0o1776: "drwxrwxrwT", 0o640: "drw-r-----"}


def test_the_name_of_an_attribute_has_as_many_bytes_after_its_namespace_as_in_hdfs() -> None:
    namespace = World().client()
    namespace.write_file("/f", b"1")
    namespace.set_xattr("/f", f"trusted.{'a' * 16384}", b"")
    assert [len(name) for name in namespace.xattrs("/f")] == [len("trusted.") + 16384]
