"""What is below each entry of a directory is counted for people: within limits, and as the caller may see it."""

from __future__ import annotations

import pytest

from holdfast.namespace import Namespace
from holdfast.namespace.errors import PathNotFoundError, PermissionDeniedError
from holdfast.namespace.paths import NsPath
from holdfast.namespace.usage import DirectoryUsage, EntryUsage, measure_entries
from tests.clocks import SimulatedClock
from tests.namespace_world import World

_ENOUGH = 1000


def _measure(namespace: Namespace, path: str, *, most_inodes: int = _ENOUGH, most_s: float = 60.0) -> DirectoryUsage:
    where = NsPath.parse(path)
    return measure_entries(namespace.operations, where, namespace.caller, most_inodes=most_inodes, most_s=most_s)


def _make_tree(namespace: Namespace) -> None:
    for path, size in (("/t/a/1", 5), ("/t/a/x/y/2", 7), ("/t/b/3", 11), ("/t/file", 2)):
        namespace.write_file(path, b"." * size)
    namespace.mkdirs("/t/empty")


def test_each_entry_counts_all_that_is_below_it() -> None:
    namespace = World().client()
    _make_tree(namespace)
    found = _measure(namespace, "/t")
    assert found.is_complete
    assert found.measured == 9
    assert found.entries == [
        EntryUsage("a", True, size=12, files=2, directories=3),
        EntryUsage("b", True, size=11, files=1, directories=1),
        EntryUsage("empty", True, directories=1),
        EntryUsage("file", False, size=2, files=1),
    ]
    summary = namespace.content_summary("/t")
    assert (summary.size, summary.directories) == (25, 1 + sum(one.directories for one in found.entries))


def test_a_file_is_its_own_entry() -> None:
    namespace = World().client()
    _make_tree(namespace)
    assert _measure(namespace, "/t/file").entries == [EntryUsage("file", False, size=2, files=1)]


def test_what_the_caller_may_not_list_is_said_and_not_counted() -> None:
    world = World()
    root = world.client()
    _make_tree(root)
    for mode in (0o700, 0o711, 0o744):
        root.set_permission("/t/a/x", mode)
        first, *_ = _measure(world.client("ann"), "/t").entries
        assert first == EntryUsage("a", True, size=5, files=1, directories=2, unreadable=1)
    root.set_permission("/t", 0o711)
    with pytest.raises(PermissionDeniedError, match="may not read"):
        _measure(world.client("ann"), "/t")
    root.set_permission("/t", 0o700)
    with pytest.raises(PermissionDeniedError, match="may not execute"):
        _measure(world.client("ann"), "/t/b")
    with pytest.raises(PathNotFoundError):
        _measure(root, "/nothing")


@pytest.mark.parametrize("most", range(9))
def test_a_measure_that_stops_early_says_so_and_shows_lower_bounds(most: int) -> None:
    namespace = World().client()
    _make_tree(namespace)
    whole = {one.name: one for one in _measure(namespace, "/t").entries}
    found = _measure(namespace, "/t", most_inodes=most)
    assert not found.is_complete
    assert found.measured == most
    for one in found.entries:
        known = whole[one.name]
        assert (one.size, one.files, one.directories) <= (known.size, known.files, known.directories)
        assert not one.is_complete or one == known


def test_a_measure_that_stops_early_has_seen_something_of_every_entry() -> None:
    namespace = World().client()
    for number in range(50):
        namespace.write_file(f"/t/a/deep/{number}", b".....")
    namespace.write_file("/t/z/only", b"...")
    found = _measure(namespace, "/t", most_inodes=10)
    assert found.entries[1] == EntryUsage("z", True, size=3, files=1, directories=1)
    assert not found.entries[0].is_complete


def test_a_measure_ends_when_its_time_is_over() -> None:
    world = World(clock=SimulatedClock(step_s=1.0))  # type: ignore[arg-type]  # each look takes a second
    namespace = world.client()
    for number in range(20):
        namespace.mkdirs(f"/t/{number}")
    found = _measure(namespace, "/t", most_s=10.0)
    assert not found.is_complete
    assert 0 < found.measured < 20
