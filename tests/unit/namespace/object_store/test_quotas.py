"""Quotas count what the object store creates, replaces and removes."""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError
from holdfast.namespace.keys import entry_name_in_key
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Delete, Put
from tests.namespace_world import World


def _used(world: World) -> dict[bytes, int]:
    """Return the used names and space of the only directory with a quota."""
    return {entry_name_in_key(key): record.number for key, record in world.records(b"u").items()}


@pytest.fixture
def world() -> World:
    world = World()
    client = world.client()
    client.mkdirs("/q")
    client.set_quota("/q", names=10, space=12)
    return world


def test_what_is_replaced_is_given_back(world: World) -> None:
    store = NamespaceStore(world.client())
    for content in (b"12345678", b"87654321", b"123", b"12345678"):
        store.put("q/f", content)
        assert _used(world) == {b"n": 2, b"s": len(content)}
    store.apply([Put("q/f", b"1"), Put("q/new/g", b"22"), Put("q/new/h", b"333")])
    assert _used(world) == {b"n": 5, b"s": 6}
    store.apply([Delete("q/new/g"), Put("q/new/h", b"4444")])
    assert _used(world) == {b"n": 4, b"s": 5}
    assert world.client().check().totals == {}


def test_a_quota_that_is_exceeded_changes_nothing(world: World) -> None:
    store = NamespaceStore(world.client())
    store.put("q/f", b"12345678")
    with pytest.raises(HoldfastError, match="quota of space"):
        store.apply([Put("q/f", b"1"), Put("q/g", b"123456789012")])
    assert _used(world) == {b"n": 2, b"s": 8}
    assert store.get("q/f") == b"12345678"
