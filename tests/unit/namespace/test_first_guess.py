"""The first operation of a client, which has no hints yet."""

from __future__ import annotations

import pytest

from holdfast.namespace.errors import PathExistsError
from tests.namespace_world import World


def test_the_root_is_not_taken_for_absent() -> None:
    world = World()
    assert world.client().mkdirs("/") is False
    with pytest.raises(PathExistsError):
        world.client().mkdirs("/", parents=False)
    assert world.client().delete("/", recursive=True) is False
    world.client().set_permission("/", 0o700)
    assert world.client().status("/").mode == 0o700
