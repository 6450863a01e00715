"""Many clients may add parts to one upload at the same time, and abort it."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.namespace import other_records
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.object_store.moves import MoveDirectory
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operations.names import Rename
from holdfast.namespace.paths import NsPath
from holdfast.stores.base import Complete, Overwrite, Part
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World


def test_a_part_is_added_however_many_others_come_first() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    upload = other.create_upload("f")
    parts: list[Part] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key[:1] == b"p" for key in argument.puts):
            parts.append(other.upload_part("f", upload, len(parts) + 2, b"%d" % len(parts)))

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    parts.insert(0, store.upload_part("f", upload, 1, b"first"))
    assert len(parts) > 5
    other.complete_upload("f", upload, parts)
    assert other.get("f") == b"first" + b"".join(b"%d" % number for number in range(len(parts) - 1))


def test_no_upload_has_an_id_that_is_no_unicode() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    with pytest.raises(NotFoundError):
        store.upload_part("f", "\udcff", 1, b"1")
    with pytest.raises(NotFoundError):
        store.complete_upload("f", "\udcff", [Part(1, "e", 1)])
    store.abort_upload("f", "\udcff")


def test_an_upload_is_completed_at_its_present_key_only() -> None:
    """A client that does not know that its directory was renamed must not make a part of it again."""
    store = NamespaceStore(World().client(), close_namespace=False)
    upload = store.create_upload("old/f")
    parts = [store.upload_part("old/f", upload, 1, b"1")]
    store.rename_dir("old", "new")
    for late in (
        lambda: store.apply([Complete("old/f", upload, parts, Overwrite())]),
        lambda: store.complete_upload("old/f", upload, parts),
        lambda: store.upload_part("old/f", upload, 2, b"2"),
    ):
        with pytest.raises(NotFoundError, match="its directory was renamed"):
            late()
    with pytest.raises(NotFoundError):
        store.head("old/f")
    store.complete_upload("new/f", upload, parts)
    assert store.get("new/f") == b"1"


def test_an_upload_is_aborted_with_the_parts_that_come_meanwhile() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    upload = other.create_upload("f")
    number = 0

    def before(call: str, argument: object) -> None:
        nonlocal number
        if isinstance(argument, Commit) and number < 60:
            number += 1
            other.upload_part("f", upload, number, b"small" if number % 2 else b"")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    store.abort_upload("f", upload)
    assert number > 5
    with pytest.raises(NotFoundError):
        other.upload_part("f", upload, 1, b"1")
    store.abort_upload("f", upload)
    assert world.records(b"p") == {}
    assert world.records(b"d") == {}
    world.clock.at_s += 2 * world.safety_age_s
    other.namespace.collect()
    assert other.namespace.check().totals == {}


def test_a_part_replaces_the_one_of_its_number() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    for data in (b"1", b"large enough for a blob", b"", b"22"):
        part = store.upload_part("f", upload, 1, data)
    assert len(world.records(b"d")) == 1
    assert len(world.records(b"g")) == 1
    store.complete_upload("f", upload, [part])
    assert store.get("f") == b"22"


def test_a_part_costs_the_same_however_many_there_are() -> None:
    world = World()
    written: list[int] = []

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit):
            written.append(sum(map(len, argument.puts.values())))

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    upload = store.create_upload("f")
    written.clear()
    parts = [store.upload_part("f", upload, number, b"%d" % number) for number in range(1, 351)]
    assert len(written) == 350 and max(written[100:]) <= 1.2 * max(written[:100])
    store.complete_upload("f", upload, parts)
    assert store.get("f") == b"".join(b"%d" % number for number in range(1, 351))
    assert world.records(b"p") == world.records(b"q") == {} and store.namespace.check().totals == {}


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page holds three parts."""
    monkeypatch.setattr(other_records, "PARTS_OF_A_PAGE", 3)


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize("data", [b"1", b"large enough for a blob" * 100], ids=["small", "blob"])
def test_parts_on_all_pages_are_replaced_completed_and_left_out(data: bytes) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    for number in (*range(1, 13), 10_000):
        store.upload_part("f", upload, number, data + b"old")
    parts = [store.upload_part("f", upload, number, data) for number in range(8, 0, -1)][::-1]
    store.complete_upload("f", upload, parts)
    assert store.get("f") == data * 8
    assert world.records(b"p") == world.records(b"q") == {}
    world.clock.at_s += 2 * world.safety_age_s
    store.namespace.collect()
    assert store.namespace.check().totals == {}


def test_an_upload_with_pages_is_aborted_with_the_pages_that_come_meanwhile() -> None:
    world = World()
    other = NamespaceStore(world.client(), close_namespace=False)
    upload = other.create_upload("f")
    other.upload_part("f", upload, 1, b"1")
    new = [101, 301, 501]

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and new:
            other.upload_part("f", upload, new.pop(), b"new")

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    store.abort_upload("f", upload)
    assert not new and world.records(b"p") == world.records(b"q") == world.records(b"d") == {}


@pytest.mark.usefixtures("short_pages")
def test_a_step_that_completes_an_upload_refuses_parts_that_it_cannot_know() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    parts = [store.upload_part("f", upload, number, b"%d" % number) for number in range(1, 5)]
    with pytest.raises(InvalidRequestError, match="parts beyond those that complete it"):
        store.apply([Complete("f", upload, tuple(parts[:3]), Overwrite())])
    store.apply([Complete("f", upload, tuple(parts), Overwrite())])
    assert store.get("f") == b"1234"


@pytest.mark.usefixtures("short_pages")
def test_neither_a_sweep_nor_fsck_takes_parts_for_garbage() -> None:
    world = World(safety_age_s=3600)
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    parts = [store.upload_part("f", upload, number, b"a blob" * 1000) for number in range(1, 8)]
    world.clock.at_s += 7200
    store.namespace.sweep()
    store.namespace.collect()
    assert store.namespace.check().totals == {}
    store.complete_upload("f", upload, parts)
    assert store.get("f") == b"a blob" * 7000


@pytest.mark.usefixtures("short_pages")
def test_an_upload_with_pages_moves_with_its_directory() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    upload = store.create_upload("a/f")
    parts = [store.upload_part("a/f", upload, number, b"%d" % number) for number in range(1, 5)]
    store.rename_dir("a", "b")
    parts.append(store.upload_part("b/f", upload, 5, b"!"))
    store.complete_upload("b/f", upload, parts)
    assert store.get("b/f") == b"1234!"


def test_a_part_that_waits_for_longer_than_the_safety_age_is_refused() -> None:
    """A sweep may have taken its bytes for garbage (N3)."""
    world = World(safety_age_s=3600)
    other = NamespaceStore(world.client(), close_namespace=False)
    upload = other.create_upload("f")

    def before(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key[:1] == b"p" for key in argument.puts):
            world.clock.at_s += 3601
            other.namespace.sweep()
            other.namespace.collect()

    store = NamespaceStore(world.client(database=HookedDatabase(world.database, before)), close_namespace=False)
    with pytest.raises(LeaseLostError, match="upload it again"):
        store.upload_part("f", upload, 1, b"large enough for a blob" * 100)
    part = other.upload_part("f", upload, 1, b"again")
    other.complete_upload("f", upload, [part])
    assert other.get("f") == b"again" and other.namespace.check().totals == {}


def test_an_upload_that_was_moved_elsewhere_meanwhile_stays_there() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("directory/x/file")
    rename = Rename(source=NsPath.parse("/directory"), target=NsPath.parse("/b"))
    store.put("directory/other", b"")
    store.rename_dir("directory/x", "c")
    store.namespace.run(MoveDirectory(rename=rename, uploads=(upload,)))
    part = store.upload_part("c/file", upload, 1, b"content")
    store.complete_upload("c/file", upload, [part])
    assert store.get("c/file") == b"content"


@pytest.mark.parametrize("lost", [0, 1, 2, None])
def test_each_upload_is_looked_for_once_it_is_durable(lost: int | None) -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    written = []
    for key in ("f0", "f1", "f2"):
        upload = store.create_upload(key)
        written.append(Complete(key, upload, (store.upload_part(key, upload, 1, b"1"),)))
    if lost is None:
        store.make_durable(written)
        return
    store.abort_upload(written[lost].key, written[lost].upload_id)
    with pytest.raises(NotFoundError, match=f"upload the object again key='f{lost}'"):
        store.make_durable(written)


def test_parts_of_several_pages_are_looked_for() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    upload = store.create_upload("f")
    parts = tuple(store.upload_part("f", upload, number, b"%d" % number) for number in (1, 101, 9_999))
    store.make_durable([Complete("f", upload, parts)])
    with pytest.raises(NotFoundError, match="lacks a part"):
        store.make_durable([Complete("f", upload, (*parts, Part(9_998, "e", 1)))])
