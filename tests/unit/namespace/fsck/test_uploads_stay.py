"""Parts of a pending upload belong to no file yet, and stay however old they are."""

from __future__ import annotations

import pytest

from holdfast.namespace.object_store.store import NamespaceStore
from tests.namespace_world import World

CONTENTS = (b"larger than a small file", b"1")


@pytest.mark.parametrize("repairs", [False, True])
def test_an_old_upload_can_be_completed_after_a_sweep_or_a_repair(repairs: bool) -> None:
    world = World()
    namespace = world.client()
    store = NamespaceStore(namespace, close_namespace=False)
    upload = store.create_upload("f")
    parts = [store.upload_part("f", upload, number, data) for number, data in enumerate(CONTENTS, 1)]
    world.clock.at_s += 1000 * world.safety_age_s
    assert namespace.check().totals == {}
    if repairs:
        namespace.repair()
    else:
        assert namespace.sweep().blobs == 0
    namespace.collect()
    store.complete_upload("f", upload, parts)
    assert store.get("f") == b"".join(CONTENTS)


def test_the_parts_of_an_aborted_upload_go() -> None:
    world = World()
    namespace = world.client()
    store = NamespaceStore(namespace, close_namespace=False)
    upload = store.create_upload("f")
    for number, data in enumerate(CONTENTS, 1):
        store.upload_part("f", upload, number, data)
    store.abort_upload("f", upload)
    world.clock.at_s += 2 * world.safety_age_s
    assert namespace.collect().blobs == 1
    assert namespace.check().totals == {}
