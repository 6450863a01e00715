"""A blob that was written after the listing is judged like those in the listing."""

from __future__ import annotations

import importlib

import pytest

from holdfast.namespace import Namespace
from holdfast.namespace.blobs import frame_blob
from holdfast.stores.base import ObjectInfo
from holdfast.stores.memory import MemoryStore
from tests.namespace_world import HookedDatabase, World
from tests.unit.namespace.fsck.plants import Site

_LARGE = b"0123456789"


def _check(world: World, client: Namespace, size: int, *, kept: int) -> dict[str, int]:
    """Check while a file is written between the listing and the snapshot.

    Args:
        size: of the content of its blob.
        kept: the length to which the file is cut.
    """

    def write(call: str, argument: object) -> None:
        if call == "snapshot" and not client.exists("/late"):
            client.write_file("/late", _LARGE)
            client.truncate("/late", kept)
            (extent,) = client.open("/late").inode.extents
            world.store.put(world.blobs.key(extent.blob), frame_blob(extent.blob, _LARGE[:size]))

    report = world.client(database=HookedDatabase(world.database, write)).check()
    assert client.exists("/late")
    return {kind.name: number for kind, number in report.totals.items()}


@pytest.mark.parametrize(
    ("size", "kept", "is_short"),
    [(10, 10, False), (10, 6, False), (6, 6, False), (5, 6, True), (9, 10, True)],
)
def test_a_blob_may_be_larger_than_its_file_needs(size: int, kept: int, is_short: bool) -> None:
    world = World()
    client = world.client()
    client.write_file("/early", _LARGE)
    assert _check(world, client, size, kept=kept) == ({"short-blob": 1} if is_short else {})


def test_two_late_files_do_not_share_a_blob() -> None:
    world = World()
    client = world.client()

    def write(call: str, argument: object) -> None:
        if call == "snapshot" and not client.exists("/late"):
            client.write_file("/late", _LARGE)
            client.write_file("/other", _LARGE)
            site = Site(world, client)
            site.change("/other", extents=site.inode(site.key("/late")).extents)

    report = world.client(database=HookedDatabase(world.database, write)).check()
    assert {kind.name: number for kind, number in report.totals.items()} == {"shared-blob": 1}


def test_each_blob_is_asked_for_once_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Asked(MemoryStore):
        def head(self, key: str) -> ObjectInfo:
            asked.append(key)
            return super().head(key)

    monkeypatch.setattr(importlib.import_module("holdfast.namespace.fsck.check"), "_UNCONFIRMED", 2)
    world = World(store=Asked())
    client = world.client()
    for number in range(5):
        client.write_file(f"/{number}", _LARGE)
        (extent,) = client.open(f"/{number}").inode.extents
        world.store.delete(world.blobs.key(extent.blob))
    asked.clear()
    assert {kind.name: number for kind, number in client.check().totals.items()} == {"missing-blob": 5}
    assert len(asked) == len(set(asked)) == 5
