"""Directories that were made for objects go with the last object; all others stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.cli.namespace.upkeep import count_pending
from holdfast.errors import CorruptDataError, NotFoundError, PreconditionError, UnavailableError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.namespace.inode import MOST_SKEW_S
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import TRACED_S
from holdfast.stores.base import Delete, Put, RequireEmpty
from holdfast.transactions.base import Commit
from tests.namespace_world import SUPERUSER, HookedDatabase, World


def _directories(store: NamespaceStore) -> list[str]:
    return [entry.path for entry in store.namespace.walk("/") if entry.is_directory]


def _put(store: NamespaceStore) -> None:
    store.put("a/b/f", b"1")


def _apply(store: NamespaceStore) -> None:
    store.apply([Put("a/b/f", b"1")])


def _upload(store: NamespaceStore) -> None:
    upload = store.create_upload("a/b/f")
    store.complete_upload("a/b/f", upload, [store.upload_part("a/b/f", upload, 1, b"1")])


def _stream(store: NamespaceStore) -> None:
    store.open_write("a/b/f").close()


def _rename(store: NamespaceStore) -> None:
    store.put("f", b"1")
    store.rename("f", "a/b/f")


def _rename_dir(store: NamespaceStore) -> None:
    store.put("d/f", b"1")
    store.rename_dir("d", "a/b")


@pytest.mark.parametrize("write", [_put, _apply, _upload, _stream, _rename, _rename_dir], ids=lambda one: one.__name__)
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


def test_a_directory_that_somebody_made_stays() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/team/in")
    store.put("team/in/p/f", b"1")
    store.delete("team/in/never")
    store.rename("team/in/p/f", "elsewhere")
    store.apply([Delete("team/in/p/f"), Delete("team/in/p")])
    assert _directories(store) == ["/team", "/team/in"]
    store.put("marked/f", b"1")
    store.put("marked/", b"")
    store.put("own/marked/", b"")
    store.delete("marked/f")
    assert _directories(store) == ["/marked", "/own", "/own/marked", "/team", "/team/in"]
    store.delete_many(["marked/", "own/marked/"])
    assert _directories(store) == ["/team", "/team/in"]


def test_nothing_is_removed_for_a_key_that_does_not_exist() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    stream = store.open_write("a/b/f")
    store.delete("a/b/never")
    store.apply([Delete("a/b/never"), Delete("a/b/f", "another")])
    assert _directories(store) == ["/a", "/a/b"]
    stream.discard()


def test_a_directory_with_a_quota_is_not_removed_because_it_is_in_the_way() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/a/limited")
    store.namespace.set_quota("/a/limited", names=10)
    store.namespace.mkdirs("/a/plain")
    store.delete_many(["a/limited/"])
    store.apply([RequireEmpty("a/"), Put("b", b"1")])  # there is no object
    store.put("c/f", b"1")
    with pytest.raises(Exception, match="exists"):
        store.rename_dir("c", "a/limited")
    assert _directories(store) == ["/a", "/a/limited", "/a/plain", "/c"]


# --- files that are given up ------------------------------------------------------------------------------------------
def test_what_was_made_for_a_file_that_is_given_up_goes_with_it() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/team")
    store.put("team/p/other", b"1")
    streams = [store.open_write(key) for key in ("a/b/f", "team/p/q/r/f", "team/p/f")]
    assert _directories(store) == ["/a", "/a/b", "/team", "/team/p", "/team/p/q", "/team/p/q/r"]
    for stream in streams:
        stream.write(b"larger than small")
        stream.discard()
    assert _directories(store) == ["/team", "/team/p"]
    for stream in streams:
        stream.discard()
    assert store.get("team/p/other") == b"1"


def test_what_cannot_be_closed_leaves_no_directory() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    stream = store.open_write("a/b/f")
    store.put("a/b/f", b"1")
    with pytest.raises(PreconditionError):
        stream.close()
    store.delete("a/b/f")
    stream.discard()
    assert _directories(store) == []
    late = store.open_write("a/b/f")
    late.close()
    late.discard()
    assert _directories(store) == ["/a", "/a/b"]


@pytest.mark.parametrize("use", [
    lambda store: store.put("a/b/other", b"1"),
    lambda store: store.put("a/b/", b""),
    lambda store: store.namespace.mkdirs("/a/b/c"),
    lambda store: store.namespace.set_quota("/a/b", names=10),
    lambda store: store.namespace.set_permission("/a/b", 0o700),
], ids=["object", "marker", "directory", "quota", "mode"])  # fmt: skip
def test_a_directory_that_somebody_uses_stays(use: Callable[[NamespaceStore], object]) -> None:
    world = World()
    stream = NamespaceStore(world.client(), close_namespace=False).open_write("a/b/f")
    other = NamespaceStore(world.client(), close_namespace=False)
    use(other)
    stream.discard()
    assert other.namespace.exists("/a/b")


def test_another_directory_at_the_path_stays() -> None:
    """It may be empty, and made for an object of somebody else."""
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    stream = store.open_write("a/b/f")
    other = NamespaceStore(world.client(), close_namespace=False)
    other.namespace.rename("/a", "/moved")
    theirs = other.open_write("a/b/f")
    stream.discard()
    assert _directories(other) == ["/a", "/a/b", "/moved", "/moved/b"]
    theirs.close()


def test_a_file_goes_on_whose_directory_goes_with_another_one() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    first, second = (store.open_write(f"a/b/{name}") for name in "12")
    first.discard()
    second.close()
    assert store.get("a/b/2") == b""


def test_the_kept_directory_stays_when_a_file_is_given_up_or_deleted() -> None:
    store = NamespaceStore(World().client(), keep="a/b", close_namespace=False)
    store.open_write("a/b/c/f").discard()
    assert _directories(store) == ["/a", "/a/b"]
    for key in ("a/b/f", "c/f"):
        store.put(key, b"1")
        store.delete(key)
    assert _directories(store) == ["/a", "/a/b"]


def test_a_child_of_the_process_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    stream = store.open_write("a/b/f")
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        stream.discard()
    assert _directories(store) == ["/a", "/a/b"]


def test_a_directory_that_cannot_be_removed_hides_no_error() -> None:
    """The database goes away while a file is given up."""
    world = World()
    is_down: list[bool] = []

    def fail(call: str, argument: object) -> None:
        if is_down:
            raise UnavailableError("the database is gone: repeat later")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, fail)), close_namespace=False)
    stream = store.open_write("a/b/f")
    is_down.append(True)
    stream.discard()
    assert world.client().exists("/a/b")


# --- races ------------------------------------------------------------------------------------------------------------
def test_a_rename_into_a_directory_that_becomes_empty_meanwhile() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    other.put("p/old", b"1")
    other.put("job/f", b"2")
    interrupted: list[str] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and not interrupted and any(key.endswith(b"f") for key in argument.inserts):
            interrupted.append(call)
            other.delete("p/old")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    store.rename("job/f", "p/f")
    assert interrupted
    assert other.get("p/f") == b"2"
    assert _directories(other) == ["/p"]


def test_a_rename_whose_source_goes_meanwhile() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    other.put("job/f", b"2")

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key.endswith(b"f") for key in argument.inserts):
            other.delete("job/f")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    with pytest.raises(NotFoundError):
        store.rename("job/f", "p/f")
    assert _directories(other) == []


def test_a_stream_into_a_directory_that_becomes_empty_meanwhile() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.put("a/p/old", b"1")
    stream = store.open_write("a/p/new")
    stream.write(b"larger than small")
    store.delete("a/p/old")
    assert _directories(store) == []
    stream.close()
    assert store.get("a/p/new") == b"larger than small"
    store.delete("a/p/new")
    assert _directories(store) == []


@pytest.mark.parametrize("depth", ["a", "a/p"])
@pytest.mark.parametrize("act", ["rename", "replace", "delete"])
def test_a_stream_goes_with_its_directory(act: str, depth: str) -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.put("a/p/old", b"1")
    stream = store.open_write("a/p/new")
    stream.write(b"1")
    if act == "delete":
        store.namespace.delete(f"/{depth}", recursive=True)
    else:
        store.rename_dir(depth, "moved")
    if act == "replace":
        store.put("a/p/other", b"1")
    with pytest.raises(PathNotFoundError):
        stream.close()
    stream.discard()
    assert not store.namespace.exists("/a/p/new")


@pytest.mark.parametrize("collects", [False, True])
@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("deleted", ["/d", "/d/p"])
def test_a_deleted_directory_does_not_come_back(deleted: str, is_made: bool, is_empty: bool, collects: bool) -> None:
    """Whether somebody made it, or an object needed it; and also if it was collected before the writer is done."""
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    if is_made:
        store.namespace.mkdirs("/d/p")
    stream = store.open_write("d/p/new")
    stream.write(b"larger than small")
    if not is_empty:
        store.put("d/p/old", b"1")
    other = world.client()
    other.delete(deleted, recursive=True)
    if collects:
        other.collect()
    with pytest.raises(PathNotFoundError, match="write the file again"):
        stream.close()
    stream.discard()
    assert not other.exists(deleted)
    other.collect()
    assert other.check().totals == {}


def test_a_directory_that_was_moved_and_deleted_does_not_come_back() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    stream = store.open_write("d/new")
    store.namespace.rename("/d", "/e")
    store.namespace.delete("/e", recursive=True)
    store.namespace.collect()
    with pytest.raises(PathNotFoundError):
        stream.close()
    assert _directories(store) == []


def test_a_directory_that_somebody_made_does_not_come_back_however_it_went() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/team/in")
    stream = store.open_write("team/in/new")
    store.namespace.delete("/team/in")
    with pytest.raises(PathNotFoundError):
        stream.close()
    assert _directories(store) == ["/team"]


def test_the_trace_of_a_deleted_directory_stays_for_the_writers_below() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.namespace.set_quota("/", names=100)
    stream = store.open_write("d/new")
    store.put("d/p/old", b"1")
    store.namespace.delete("/d", recursive=True)
    assert store.namespace.collect().trees == 2
    assert store.namespace.quota_usage("/").names == 1
    assert count_pending(store.namespace, world.clock)["deleted_trees"] == 0
    assert len(world.records(b"r")) == 1
    assert store.namespace.collect().trees == 0, "the second time, nothing is left to do"
    assert store.namespace.check().totals == {} and store.namespace.sweep().records == 0
    world.clock.at_s += TRACED_S - 1
    store.namespace.collect()
    with pytest.raises(PathNotFoundError):
        stream.close()
    world.clock.at_s += MOST_SKEW_S + 1
    store.namespace.collect()
    assert world.records(b"r") == {}
    with pytest.raises(PathNotFoundError):
        stream.close()


def test_a_writer_relies_on_traces_only_as_long_as_they_stay() -> None:
    """Its directory may have been deleted, and nothing tells any more."""
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    streams = [store.open_write(f"a/p/{name}") for name in ("gone", "there")]
    store.put("a/p/old", b"1")
    store.delete("a/p/old")
    assert _directories(store) == []
    world.clock.at_s += TRACED_S + 1
    with pytest.raises(PathNotFoundError):
        streams[0].close()
    streams = [store.open_write(f"a/p/{name}") for name in ("gone", "there")]
    world.clock.at_s += TRACED_S + 1
    streams[1].close()
    assert store.get("a/p/there") == b""


@pytest.mark.parametrize("value", [b"1", b"null"])
def test_a_trace_that_is_none(value: bytes) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.put("d/f", b"1")
    store.namespace.delete("/d", recursive=True)
    ((key, record),) = world.records(b"r").items()
    assert b'"trace":false' in record.value
    world.database.commit(Commit(puts={key: record.value.replace(b"false", value)}))
    with pytest.raises(CorruptDataError):
        store.namespace.collect()
    assert count_pending(store.namespace, world.clock)["deleted_trees"] == 1


def test_a_directory_moves_into_a_quota() -> None:
    world = World()
    store = NamespaceStore(world.client(SUPERUSER), close_namespace=False)
    store.namespace.mkdirs("/q")
    store.namespace.set_quota("/q", names=5)
    store.put("x/a/f", b"1")
    store.put("x/b/c/d/f", b"1")
    upload = store.create_upload("x/a/later")
    store.rename_dir("x/a", "q/a")
    assert store.get("q/a/f") == b"1"
    assert [one.upload_id for one in store.list_uploads_page("q/a/").uploads] == [upload]
    assert store.namespace.quota_usage("/q").names == 3
    with pytest.raises(Exception, match="quota"):
        store.rename_dir("x/b", "q/new/b")
    assert not store.namespace.exists("/q/new")
    store.rename_dir("q/a", "x/a")
    assert store.namespace.quota_usage("/q").names == 1
    store.delete_many(["x/a/f", "x/b/c/d/f"])
    assert _directories(store) == ["/q"]
    assert store.namespace.check().totals == {}
