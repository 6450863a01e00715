"""A rename that may move into a directory, and may replace what is there, in one step."""

from __future__ import annotations

import pytest

from holdfast.namespace.errors import DirectoryNotEmptyError, PathExistsError, RenameError
from holdfast.namespace.namespace import Namespace
from tests.namespace_world import HookedDatabase, World
from tests.unit.namespace.fresh import fresh_namespace


@pytest.fixture
def namespace() -> Namespace:
    namespace = fresh_namespace()
    namespace.write_file("/from/a", b"new")
    namespace.write_file("/to/x", b"x")
    return namespace


def _paths(namespace: Namespace) -> list[str]:
    return sorted(entry.path for entry in namespace.walk("/") if not entry.is_directory)


def test_a_file_moves_into_a_directory(namespace: Namespace) -> None:
    namespace.rename("/from/a", "/to", into=True)
    assert _paths(namespace) == ["/to/a", "/to/x"]


def test_a_file_in_the_directory_is_replaced_only_if_wanted(namespace: Namespace) -> None:
    namespace.write_file("/to/a", b"old")
    with pytest.raises(PathExistsError):
        namespace.rename("/from/a", "/to", into=True)
    namespace.rename("/from/a", "/to", into=True, overwrite=True)
    assert namespace.open("/to/a").read() == b"new" and _paths(namespace) == ["/to/a", "/to/x"]


def test_a_directory_moves_into_a_directory(namespace: Namespace) -> None:
    namespace.mkdirs("/to/from")
    namespace.rename("/from", "/to", into=True, overwrite=True)
    assert _paths(namespace) == ["/to/from/a", "/to/x"]


def test_a_directory_that_is_not_empty_is_never_replaced(namespace: Namespace) -> None:
    namespace.write_file("/to/from/b", b"1")
    with pytest.raises(DirectoryNotEmptyError):
        namespace.rename("/from", "/to", into=True, overwrite=True)
    with pytest.raises(RenameError):
        namespace.rename("/from", "/from", into=True, overwrite=True)


def test_without_a_directory_there_it_is_a_plain_rename(namespace: Namespace) -> None:
    namespace.rename("/from", "/else", into=True, overwrite=True)
    namespace.rename("/else/a", "/to/x", into=True, overwrite=True)
    assert _paths(namespace) == ["/to/x"] and namespace.open("/to/x").read() == b"new"


def test_a_file_that_has_taken_the_place_of_a_full_directory_is_replaced() -> None:
    """Defect: whether the directory had children was remembered when the file was read in its place."""
    world = World()
    other = world.client()
    other.mkdirs("/d/child")
    other.write_file("/source", b"new")
    found: list[str] = []

    def before(call: str, _argument: object) -> None:
        if call == "scan" and not found:
            found.append(call)
            other.delete("/d", recursive=True)
            other.write_file("/d", b"old")

    namespace = world.client(database=HookedDatabase(world.database, before))
    namespace.exists("/d/child")  # it knows the directory
    namespace.rename("/source", "/d", overwrite=True)
    assert (found, other.open("/d").read()) == (["scan"], b"new")
