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
    store.rename(key, other)
    upload = store.create_upload(key)
    part = store.upload_part(key, upload, 1, b"3")
    store.rename_dir(home, moved)
    there = moved + key[len(home) :]
    assert [one.key for one in iter_uploads(store, f"{moved}/")] == [there]
    store.complete_upload(there, upload, [part])
    store.abort_upload(there, upload)
    store.open_write(key).close()
    store.delete_many([key, there])
    store.delete(moved + other[len(home) :])
    assert list(iter_objects(store, "")) == []


def test_every_call_refuses_a_key_that_is_too_long() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    store.put("short/f", b"1")
    key = _key(MAX_PATH_CHARACTERS)
    calls: list[Callable[[], object]] = [
        lambda: store.put(key, b"1"),
        lambda: store.put(f"{key}/", b""),
        lambda: store.get(key),
        lambda: store.head(key),
        lambda: store.delete(key),
        lambda: store.delete_many(["short/f", key]),
        lambda: store.delete_many(["short/f", f"{key}/"]),
        lambda: store.create_upload(key),
        lambda: store.open_write(key),
        lambda: store.check_targets([key]),
        lambda: store.rename("short/f", key),
        lambda: store.rename(key, "short/f"),
        lambda: store.rename_dir("short", key),
        lambda: store.rename_dir(key, "new"),
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


def test_an_upload_keeps_a_key_that_can_be_named() -> None:
    world = World()
    store = NamespaceStore(world.client(), close_namespace=False)
    key = f"a/{_key(MAX_PATH_CHARACTERS - 10)}"
    upload = store.create_upload(key)
    for exists in (False, True):
        with pytest.raises(InvalidRequestError, match="limited"):
            store.rename_dir("a", "longer/name")
        assert [(one.key, one.upload_id) for one in iter_uploads(store, "")] == [(key, upload)]
        assert not store.namespace.exists("/longer")
        if not exists:
            store.put("a/f", b"1")
    store.rename_dir("a", "b")
    store.abort_upload(f"b{key[1:]}", upload)
    assert list(iter_uploads(store, "")) == []
