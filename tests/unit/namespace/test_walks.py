"""Walks and counts see everything that is there: below the deepest path, and beside damaged names."""

from __future__ import annotations

import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.namespace.errors import PathTooLongError, PermissionDeniedError
from holdfast.namespace.keys import ROOT_ID, inode_key
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.transactions.base import Commit
from tests.namespace_world import World

_DEEP = "/d" * 600


def test_a_tree_that_renames_have_made_deeper_than_a_path() -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs(f"/a{_DEEP}")
    namespace.mkdirs(f"/b{_DEEP}")
    namespace.write_file(f"/a{_DEEP}/file", b"precious!")
    namespace.rename("/a", f"/b{_DEEP}/a")
    assert namespace.content_summary("/").directories == 1203
    assert namespace.content_summary("/b").size == 9
    *_, last = namespace.walk("/b")
    assert last.path == f"/b{_DEEP}/a{_DEEP}/file"
    with pytest.raises(PathTooLongError):
        namespace.status(last.path)
    namespace.set_quota("/b", names=1202)
    assert namespace.check().totals == {}
    namespace.rename(f"/b{_DEEP}/a{'/d' * 300}", "/c")
    assert namespace.open(f"/c{'/d' * 300}/file").read() == b"precious!"
    assert namespace.delete("/b", recursive=True)
    namespace.collect()
    assert namespace.check().totals == {}


def test_a_walk_checks_each_directory_when_it_comes_there() -> None:
    world = World()
    root = world.client()
    root.mkdirs("/t/a/open")
    root.mkdirs("/t/b")
    root.mkdirs("/t/b/closed", mode=0o700)
    root.mkdirs("/t/b/closed/x")
    bob = world.client("bob")
    seen: list[str] = []
    with pytest.raises(PermissionDeniedError, match=r"may not read and execute here.*path='/t/b/closed'"):
        seen.extend(entry.path for entry in bob.walk("/t"))
    assert seen == ["/t/a", "/t/a/open", "/t/b", "/t/b/closed"]
    assert list(root.walk("/t/b/closed/x")) == []
    root.write_file("/t/file", b"1")
    assert list(root.walk("/t/file")) == []


def test_a_damaged_name_is_damage_and_nothing_else() -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/good", b"1")
    key = inode_key(ROOT_ID, b"good")
    value = world.database.get_many([key])[key].value
    world.database.commit(Commit(inserts={inode_key(ROOT_ID, b"\xff\xfe"): value.replace(b'"id":2', b'"id":3')}))
    for call in (namespace.list, namespace.walk):
        with pytest.raises(CorruptDataError, match="name that is no text: run holdfast namespace fsck"):
            list(call("/"))
    assert namespace.content_summary("/").files == 2, "a count needs no names"
    assert "bad-name" in [finding.kind.name for finding in namespace.repair().repaired]
    assert NamespaceStore(namespace).head("good").size_bytes == 1


@pytest.mark.parametrize("given", [{"start_after": "\udc80"}, {"limit": 0}, {"limit": -1}])
def test_pages_that_cannot_be(given: dict[str, str | int]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(given))):
        World().client().list_page("/", **given)  # type: ignore[arg-type]  # one of each
