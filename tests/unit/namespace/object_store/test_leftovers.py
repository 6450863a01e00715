"""What is refused leaves nothing, what is replaced goes, and clean-up never hides a success."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace import phases
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.view import InodeCache, OperationReads, Reader, View, read_view
from holdfast.stores.base import Change, Create, Delete, Put, Require, RequireEmpty, iter_objects
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World

LARGE = b"larger than a small file"


def _blobs(world: World) -> int:
    return sum(1 for _ in iter_objects(world.blobs.store, world.blobs.root))


def test_parts_that_are_not_used_go_with_the_upload() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    parts = [store.upload_part("f", upload, number, data) for number, data in enumerate((LARGE, LARGE, b"1", b""), 1)]
    store.complete_upload("f", upload, parts[:1])
    assert store.get("f") == LARGE
    assert world.records(b"s") == {}
    world.clock.at_s += 2 * world.safety_age_s
    store.namespace.collect()
    assert _blobs(world) == 1


def test_a_refused_change_leaves_no_blob() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.put("f", b"1")
    upload = store.create_upload("g")
    store.abort_upload("g", upload)
    with pytest.raises(PreconditionError):
        store.put("f", LARGE, Create())
    with pytest.raises(PreconditionError):
        store.apply([Put("new", LARGE), Put("f", LARGE, Create())])
    with pytest.raises(NotFoundError):
        store.upload_part("g", upload, 1, LARGE)
    assert _blobs(world) == 0
    store.put("f", LARGE)
    assert _blobs(world) == 1


def test_small_content_beyond_the_limit_of_a_step_goes_into_the_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    monkeypatch.setattr("holdfast.namespace.object_store.store.MOST_INLINE_BYTES", 5)
    store.apply([Put(f"{number}", b"%d" % number * 2) for number in range(4)])
    assert [store.get(f"{number}") for number in range(4)] == [b"00", b"11", b"22", b"33"]
    assert (len(world.records(b"s")), _blobs(world)) == (2, 2)


def test_a_success_is_none_the_less_if_the_empty_directory_may_not_be_removed() -> None:
    world = World()
    world.client().mkdirs("/open")
    world.client().set_permission("/open", 0o777)
    store = NamespaceStore(world.client("alice"), close_namespace=False)
    store.put("open/f", b"1")
    store.delete("open/f")
    store.put("open/g", b"1")
    store.apply([Delete("open/g")])
    assert [entry.path for entry in store.namespace.walk("/")] == ["/open"]


@pytest.mark.parametrize("change", [Put("a/f", b"12"), Delete("a/f")])
def test_the_writer_of_a_file_that_is_replaced_or_removed_has_lost_it(change: Change) -> None:
    """As by `Publish` with overwrite and by `Delete`, and by HDFS's ``create`` and ``delete``."""
    world = World()
    root = world.client()
    root.mkdirs("/a")
    root.set_permission("/a", 0o777)
    writer = world.client("bob").create_with_lease("/a/f")
    writer.write(b"1")
    writer.sync()
    NamespaceStore(root, close_namespace=False).apply([change])
    writer.write(b"2")
    with pytest.raises(LeaseLostError):
        writer.close()
    assert world.records(b"l") == {}
    assert root.exists("/a/f") == isinstance(change, Put)


def test_several_directories_may_have_to_be_empty() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    store.namespace.mkdirs("/a")
    conditions = [RequireEmpty("a/"), RequireEmpty("b/"), RequireEmpty("c/")]
    store.apply([Put("b/f", b"1"), Put("a/f", b"1"), *conditions])
    store.delete("a/f")
    for order in (conditions, conditions[::-1]):
        with pytest.raises(PreconditionError) as refused:
            store.apply([Put("c/f", b"1"), *order])
        assert refused.value.variables["key"] == "b/"


@pytest.mark.parametrize("is_file", [False, True])
def test_a_directory_that_has_to_be_empty_gets_an_entry_meanwhile(is_file: bool) -> None:
    world = World()
    other = world.client()
    other.mkdirs("/t")
    seen: list[str] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and not seen:
            seen.append(call)
            if is_file:
                other.write_file("/t/theirs", b"2")
            else:
                other.mkdirs("/t/theirs")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    with pytest.raises(PreconditionError):
        store.apply([RequireEmpty("t/"), Put("done", b"1")])
    assert seen and other.exists("/t/theirs") and not other.exists("/done")


def test_parts_that_see_different_states_do_not_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two parts, another client makes a directory that the first part wanted to make."""
    world = World()
    other = world.client()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.namespace.mkdirs("/a")
    monkeypatch.setattr(phases, "_PIECE", 1)
    reads: list[object] = []

    def interrupted(reader: Reader, hints: InodeCache, group: OperationReads) -> View:
        reads.append(group)
        if len(reads) == 2:
            other.write_file("/a/b/theirs", b"1")
        return read_view(reader, hints, group)

    monkeypatch.setattr("holdfast.namespace.phases.read_view", interrupted)
    store.apply([Put("a/b/f", b"1"), Put("a/b/g", b"2"), Put("a/b/h", b"3")])
    assert [entry.name for entry in other.list("/a/b")] == ["f", "g", "h", "theirs"]
    assert len(reads) > 3, "the first try was given up"


def test_a_step_in_parts_contradicts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    monkeypatch.setattr(phases, "_PIECE", 1)
    for keys in (("a", "a/b"), ("a/b", "a")):
        with pytest.raises(InvalidRequestError):
            store.apply([Put(key, b"1") for key in keys])
    assert not store.namespace.exists("/a")


def test_conditions_alone_hold_at_one_moment() -> None:
    world = World()
    other = world.client()
    other.write_file("/log/1", b"1")
    waiting = [("get_many", "/data/f")]

    def before(call: str, argument: object) -> None:
        if waiting and waiting[0][0] == call:
            other.write_file(waiting.pop()[1], b"1")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    with pytest.raises(PreconditionError):
        store.apply([RequireEmpty("data/"), Require("log/1")])
