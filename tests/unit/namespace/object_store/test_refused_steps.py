"""A step that is refused has changed nothing: no directory is gone, and none is new."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import HoldfastError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Put, Require, RequireEmpty
from tests.namespace_world import World


def _batch_with_a_failing_condition(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/second/"), Put("free/second/f", b"1"), Require("missing")])


def _batch_with_a_forbidden_put(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/second/"), Put("free/second/f", b"1"), Put("shut/g", b"1")])


def _batch_out_of_quota(store: NamespaceStore) -> None:
    store.apply([Put("free/new/f", b"1"), Put("counted/a/b/f", b"1")])


def _batch_with_two_conditions(store: NamespaceStore) -> None:
    store.apply([RequireEmpty("free/second/"), RequireEmpty("full/"), Put("free/second/f", b"1")])


@pytest.mark.parametrize(
    "act",
    [
        _batch_out_of_quota,
        _batch_with_a_failing_condition,
        _batch_with_a_forbidden_put,
        _batch_with_two_conditions,
    ],
    ids=lambda one: one.__name__,
)
def test_what_is_refused_changes_no_directory(act: Callable[[NamespaceStore], None]) -> None:
    world = World()
    root, alice = world.client(), world.client("alice")
    root.write_file("/shut/d/f", b"1")
    root.write_file("/shut/f", b"1")
    root.mkdirs("/shut/empty/inner")
    root.set_permission("/", 0o777)
    for directory in ("/open/d", "/free/inner/deep", "/free/second", "/limited/a", "/limited/b", "/full/z", "/counted"):
        alice.mkdirs(directory)
    alice.write_file("/open/d/f", b"1")
    alice.write_file("/open/f", b"1")
    alice.write_file("/full/z/f", b"1")
    alice.mkdirs("/counted/free/inner")
    alice.mkdirs("/open/d/1/2/3")
    root.set_quota("/limited/b", names=10)
    root.set_quota("/counted", names=3)
    before = [(entry.path, entry.id) for entry in root.walk("/")]
    with pytest.raises(HoldfastError):
        act(NamespaceStore(alice, close_namespace=False))
    assert [(entry.path, entry.id) for entry in root.walk("/")] == before
    root.flush()
    alice.flush()
    assert root.check().totals == {}
