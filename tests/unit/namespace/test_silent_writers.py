"""Whoever changes the file of a silent writer ends the writer's lease."""

from __future__ import annotations

import pytest

from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.other_records import SOFT_LIMIT_MS
from tests.namespace_world import World


def _with_silent_writer(world: World, path: str) -> FileWriter:
    writer = world.client().create_with_lease(path)
    writer.write(b"early")
    writer.sync()
    world.clock.at_s += SOFT_LIMIT_MS / 1000 + 1
    return writer


@pytest.mark.parametrize("length", [2, 5])
def test_truncate_ends_the_lease(length: int) -> None:
    """Also if the file has that length already."""
    world = World()
    writer = _with_silent_writer(world, "/a")
    namespace = world.client()
    namespace.truncate("/a", length)
    assert world.records(b"l") == {}
    assert not namespace.status("/a").is_open
    with pytest.raises(LeaseLostError):
        writer.write(b"late")
    writer.discard()
    assert namespace.open("/a").read() == b"early"[:length]


def test_concat_ends_the_leases_of_target_and_sources() -> None:
    world = World()
    writers = [_with_silent_writer(world, path) for path in ("/target", "/source")]
    namespace = world.client()
    namespace.concat("/target", ["/source"])
    assert world.records(b"l") == {}
    assert not namespace.status("/target").is_open
    for writer in writers:
        with pytest.raises(LeaseLostError):
            writer.write(b"late")
        writer.discard()
    assert namespace.open("/target").read() == b"earlyearly"
