"""A path that does not exist, is of another kind, or may not be changed, is refused in one sentence."""

from __future__ import annotations

import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError, PreconditionError
from holdfast.namespace import open_namespace
from holdfast.namespace.catalog import split_url
from holdfast.namespace.errors import PathNotFoundError, PermissionDeniedError
from holdfast.namespace.keys import MOST_ID, ROOT_ID, ROOT_KEY, inode_key, is_id
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operations import content
from holdfast.namespace.other_records import _MOST_AHEAD_MS, Lease
from holdfast.namespace.paths import NsPath
from holdfast.stores.base import Require
from tests.namespace_world import HookedDatabase, World


def test_a_missing_path_has_no_quota() -> None:
    with pytest.raises(PathNotFoundError):
        World().client().quota_usage("/missing")


def test_nothing_is_deleted_where_nothing_is() -> None:
    world = World()
    world.client().mkdirs("/open")
    world.client().set_permission("/open", 0o777)
    assert not world.client("alice").delete("/open/missing", recursive=True)


def test_a_tree_that_others_delete_meanwhile_is_gone() -> None:
    world = World()
    root = world.client()
    root.mkdirs("/open/tree/below")
    for path in ("/open", "/open/tree", "/open/tree/below"):
        root.set_permission(path, 0o777)

    def delete(call: str, _argument: object) -> None:
        if call == "snapshot":
            root.delete("/open/tree", recursive=True)

    namespace = world.client("alice", database=HookedDatabase(world.database, delete))
    assert not namespace.delete("/open/tree", recursive=True)


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


def test_a_file_has_no_more_extents_than_its_record_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_EXTENTS", 3)
    namespace = World().client()
    for name in "abcd":
        namespace.write_file(f"/{name}", b"0123456789")
    with pytest.raises(InvalidRequestError, match="at most 3 extents"):
        namespace.concat("/a", ["/b", "/c", "/d"])
    namespace.concat("/a", ["/b", "/c"])
    assert namespace.status("/a").size == 30


@pytest.mark.parametrize("url", ["holdfast", "holdfast:/name", "holdfast:///f", "s3://bucket/f"])
def test_what_is_no_url_of_a_namespace_is_told_how_one_looks(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="holdfast://name/path"):
        split_url(url)


def test_one_slash_too_few_is_told() -> None:
    with pytest.raises(InvalidRequestError, match="holdfast://name/path"):
        open_namespace("holdfast:/name", user="root")


def test_a_writer_is_silent_after_its_limit_or_if_its_clock_is_far_ahead() -> None:
    lease = Lease("holder", 1000, inode_key(ROOT_ID, b"f"))
    ahead = 1000 - _MOST_AHEAD_MS
    assert [lease.is_renewal_overdue(now, 50) for now in (ahead - 1, ahead, 1000, 1050, 1051)] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_the_root_has_no_lease() -> None:
    with pytest.raises(CorruptDataError):
        Lease.decode(b"l", Lease("holder", 1000, ROOT_KEY).encode())


@pytest.mark.parametrize(
    ("value", "expected"), [(1, True), (MOST_ID, True), (0, False), (MOST_ID + 1, False), (True, False)]
)
def test_ids_have_a_range(value: object, expected: bool) -> None:
    assert is_id(value) is expected


@pytest.mark.parametrize(
    ("path", "top", "is_below"), [("/a/b", "/a", True), ("/a", "/a", True), ("/a", "/", True), ("/ab", "/a", False)]
)
def test_what_is_below_a_directory(path: str, top: str, *, is_below: bool) -> None:
    assert NsPath.parse(path).is_below(NsPath.parse(top)) is is_below
