"""What the parameters of changes mean."""

from __future__ import annotations

import pytest

from holdfast.webhdfs.changing import DONE
from tests.namespace_world import World
from tests.unit.webhdfs.carried import CarryingServer


@pytest.mark.parametrize(
    ("query", "names", "space"),
    [
        ("namespacequota=5&storagespacequota=6", 5, 6),
        ("namespacequota=5", 5, 90),
        ("storagespacequota=0", 70, 0),
        ("namespacequota=-1", None, 90),
        ("namespacequota=9223372036854775807&storagespacequota=-1", 70, None),
        ("namespacequota=-1&storagespacequota=9223372036854775807", None, 90),
    ],
)
def test_a_quota_is_set_removed_or_left(query: str, names: int | None, space: int | None) -> None:
    world = World()
    client, server = world.client(), CarryingServer(world)
    client.mkdirs("/d")
    client.set_quota("/d", names=70, space=90)
    assert server.answer(server.receive("PUT", "/d", f"op=SETQUOTA&{query}")) == DONE
    found = client.quota_usage("/d")
    assert (found.names_quota, found.space_quota) == (names, space)


@pytest.mark.parametrize(
    ("query", "mtime_ms", "atime_ms"),
    [
        ("modificationtime=5&accesstime=6", 5, 6),
        ("modificationtime=5", 5, 2),
        ("modificationtime=-1&accesstime=0", 1, 0),
    ],
)
def test_a_time_is_set_or_left(query: str, mtime_ms: int, atime_ms: int) -> None:
    world = World()
    client, server = world.client(), CarryingServer(world)
    client.write_file("/f", b"")
    client.set_times("/f", 1, 2)
    assert server.answer(server.receive("PUT", "/f", f"op=SETTIMES&{query}")) == DONE
    found = world.client().status("/f")
    assert (found.mtime_ms, found.atime_ms) == (mtime_ms, atime_ms)
