"""Every call accepts the same keys: those that can be paths."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.paths import MAX_PATH_CHARACTERS
from holdfast.stores.base import Delete, Put, Require, RequireEmpty, iter_objects, iter_uploads
from tests.namespace_world import World, all_records


def _key(characters: int, letter: str = "x") -> str:
    """Return a key of so many characters."""
    return (
        ("/" + letter * 60).join(["t"] + [""] * (characters // 61 + 1))[:characters].rstrip("/").ljust(characters, "y")
    )


@pytest.mark.parametrize("letter", ["x", "é", "名", "😀"])
@pytest.mark.parametrize("characters", [1024, 1025, MAX_PATH_CHARACTERS - 1])
def test_every_call_accepts_a_long_key(characters: int, letter: str) -> None:
    store = NamespaceStore(World().client(), close_namespace=False)
    key, other = _key(characters, letter), _key(characters - 1, letter) + "z"
    home, moved = key.rpartition("/")[0], other.rpartition("/")[0][:-1] + "m"
    store.put(key, b"1")
    assert (store.get(key), store.head(key).key) == (b"1", key)
    assert [one.key for one in iter_objects(store, home)] == [key]
    store.apply([Require(key), RequireEmpty(f"{moved}/"), Put(other, b"2")])
    store.apply([Delete(other)])
    store.check_targets([other])
    upload = store.create_upload(key)
    part = store.upload_part(key, upload, 1, b"3")
    assert [one.key for one in iter_uploads(store, f"{home}/")] == [key]
    store.complete_upload(key, upload, [part])
    store.abort_upload(key, upload)
    store.delete_many([key, other])
    assert list(iter_objects(store, "")) == []


def test_every_call_refuses_a_key_that_is_too_long() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.put("short/f", b"1")
    key = _key(MAX_PATH_CHARACTERS)
    calls: list[Callable[[], object]] = [
        lambda: store.put(key, b"1"),
        lambda: store.get(key),
        lambda: store.head(key),
        lambda: store.delete(key),
        lambda: store.delete_many(["short/f", key]),
        lambda: store.delete_many(["short/f", f"{key}/"]),
        lambda: store.create_upload(key),
        lambda: store.check_targets([key]),
        *(
            lambda one=one: store.apply([Delete("short/f"), one])  # type: ignore[misc]  # binds the change
            for one in (Put(key, b"1"), Delete(key), Require(key), RequireEmpty(f"{key}/"))
        ),
    ]
    before = all_records(world.database)
    for call in calls:
        with pytest.raises(InvalidRequestError, match="limited"):
            call()
    assert all_records(world.database) == before
