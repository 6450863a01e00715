"""Values that a record could not hold, or that no client could read back, are refused before they are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import create_namespace
from holdfast.namespace.errors import FeatureUnsupportedError
from holdfast.namespace.keys import children_range, inode_key
from holdfast.runtime import Environment
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.memory import MemoryBackend


def _open(user: str) -> Namespace:
    environment = Environment()
    database = MemoryBackend(environment.ids)
    configuration = Configuration(name="ns", data="memory://x", superuser="root")
    create_namespace(database, configuration, 0)
    return Namespace(database, BlobStore(MemoryStore(), "", environment.ids), configuration, environment, user=user)


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """A namespace with the file /f."""
    with _open("root") as found:
        found.write_file("/f", b"1")
        yield found


@pytest.mark.parametrize("time_ms", [-1, 2**53 + 1])
def test_times_that_cannot_be_read_back(namespace: Namespace, time_ms: int) -> None:
    for given in ({"mtime_ms": time_ms}, {"atime_ms": time_ms}):
        with pytest.raises(InvalidRequestError, match="a time is from 1970 on"):
            namespace.set_times("/f", **given)
    assert namespace.status("/f").size == 1
    with namespace.create("/g") as file, pytest.raises(InvalidRequestError, match="a time is from 1970 on"):
        file.set_mtime(time_ms)


def test_a_file_under_a_lease_has_its_time_already(namespace: Namespace) -> None:
    with namespace.create_with_lease("/g") as file, pytest.raises(FeatureUnsupportedError, match="set its time later"):
        file.set_mtime(0)


@pytest.mark.parametrize(("name", "sentence"), [("\udcff", "valid Unicode"), ("", "is empty")])
def test_names_that_cannot_be_written(namespace: Namespace, name: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"the name of an owner .*{sentence}"):
        namespace.set_owner("/f", name)
    with pytest.raises(InvalidRequestError, match=f"the name of a group .*{sentence}"):
        namespace.set_owner("/f", None, name)
    with pytest.raises(InvalidRequestError, match=f"the name of an extended attribute .*{sentence}"):
        namespace.set_xattr("/f", name and f"user.{name}", b"")
    with pytest.raises(InvalidRequestError, match=f"the name of a user .*{sentence}"):
        _open(name)


@pytest.mark.parametrize(
    "given", [{"replication": -1}, {"replication": 513}, {"block_size": -1}, {"block_size": 1}, {"block_size": 2**63}]
)
def test_numbers_of_a_file(namespace: Namespace, given: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match=r"^a (replication|block size) is "):
        namespace.create("/g", **given).close()  # type: ignore[arg-type]  # all are numbers
    assert not namespace.exists("/g")


@pytest.mark.parametrize("directory", [0, 1, 255, 2**40])
def test_the_keys_of_children_are_those_of_one_directory(directory: int) -> None:
    first, last = children_range(directory)
    for name in (b"\0", b"a", b"\xff" * 255):
        assert first <= inode_key(directory, name) < last
        assert not first <= inode_key(directory + 1, name) < last
