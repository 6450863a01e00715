"""Many clients may add parts to one upload at the same time, and abort it."""

from __future__ import annotations

import pytest

from holdfast.errors import NotFoundError
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.inode import Extent
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import Upload
from holdfast.stores.base import Complete, Part
from holdfast.transactions.base import MAX_VALUE_BYTES, Commit
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
    assert world.records(b"s") == {}
    world.clock.at_s += 2 * world.safety_age_s
    other.namespace.collect()
    assert other.namespace.check().totals == {}


def test_a_part_replaces_the_one_of_its_number() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    for data in (b"1", b"large enough for a blob", b"", b"22"):
        part = store.upload_part("f", upload, 1, data)
    assert len(world.records(b"s")) == 1
    assert len(world.records(b"g")) == 1
    store.complete_upload("f", upload, [part])
    assert store.get("f") == b"22"


@pytest.mark.parametrize("data", [b"1", b"large enough for a blob" * 100], ids=["small", "blob"])
def test_parts_are_replaced_completed_and_left_out(data: bytes) -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    upload = store.create_upload("f")
    for number in (*range(1, 13), 10_000):
        store.upload_part("f", upload, number, data + b"old")
    parts = [store.upload_part("f", upload, number, data) for number in range(8, 0, -1)][::-1]
    store.complete_upload("f", upload, parts)
    assert store.get("f") == data * 8
    assert world.records(b"p") == {}
    world.clock.at_s += 2 * world.safety_age_s
    store.namespace.collect()
    assert store.namespace.check().totals == {}


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


def test_the_record_of_the_most_parts_fits() -> None:
    parts = {number: Extent(f"0d/{2**127:x}-{2**87:x}", 8 * 2**20) for number in range(1, 10_001)}
    assert len(Upload("/f", 2**127, 2**41, {}, parts).encode()) < MAX_VALUE_BYTES / 4


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


def test_parts_are_looked_for() -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    upload = store.create_upload("f")
    parts = tuple(store.upload_part("f", upload, number, b"%d" % number) for number in (1, 101, 9_999))
    store.make_durable([Complete("f", upload, parts)])
    with pytest.raises(NotFoundError, match="lacks a part"):
        store.make_durable([Complete("f", upload, (*parts, Part(9_998, "e", 1)))])
