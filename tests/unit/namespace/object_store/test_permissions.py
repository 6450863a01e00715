"""A user who may not write a directory may not write it through the object store either."""

from __future__ import annotations

import pytest

from holdfast.errors import AccessDeniedError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Create, Part, Put, Update
from tests.namespace_world import World, all_records


def test_nothing_is_created_replaced_or_removed_in_the_directory_of_another_user() -> None:
    world = World()
    with world.client().create("/shut/f", mode=0o666) as file:
        file.write(b"old")
    world.client().mkdirs("/open", mode=0o777)
    store = NamespaceStore(world.client("alice"))
    etag = store.head("shut/f").etag
    upload = store.create_upload("shut/up")
    part = store.upload_part("shut/up", upload, 1, b"x")
    before = all_records(world.database)
    for forbidden in (
        lambda: store.put("shut/g", b"x"),
        lambda: store.put("shut/g", b"x", Create()),
        lambda: store.put("shut/f", b"x"),
        lambda: store.put("shut/f", b"x", Update(etag)),
        lambda: store.put("shut/a/b", b"x"),
        lambda: store.delete("shut/f"),
        lambda: store.apply([Put("open/g", b"x"), Put("shut/g", b"x")]),
        lambda: store.complete_upload("shut/up", upload, [Part(1, part.etag, 1)]),
        lambda: store.rename("shut/f", "open/f"),
        lambda: store.open_write("shut/g").close(),
    ):
        with pytest.raises(AccessDeniedError):
            forbidden()
    assert all_records(world.database) == before
    store.put("open/a/b", b"x")
    assert store.get("open/a/b") == b"x"
