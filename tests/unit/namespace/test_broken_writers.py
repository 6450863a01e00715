"""A writer publishes a file whole and once, whatever fails and whatever others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.namespace import Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.stores.base import MultipartLimits, iter_objects, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import Commit, Committed
from tests.interceptors import Fault, FaultMode, Faulty
from tests.namespace_world import HookedDatabase, World

LARGE = bytes(9 << 20)


@pytest.mark.parametrize("operation", [StoreOperation.CREATE_UPLOAD, StoreOperation.UPLOAD_PART])
def test_a_write_that_failed_ends_the_file(operation: StoreOperation) -> None:
    """A caller that goes on after an error must not get a file with a hole, or with bytes twice."""
    inner = MemoryStore(limits=MultipartLimits())
    faulty = InterceptedStore(inner, Faulty(Fault(FaultMode.FAIL, operation, error=UnavailableError("away"))))
    world = World(store=inner)
    namespace = world.client(blobs=BlobStore(faulty, "data/", world.ids))
    file = namespace.create("/f")
    with pytest.raises(UnavailableError):
        file.write(LARGE)
    for call in (lambda: file.write(LARGE), file.close):
        with pytest.raises(InvalidRequestError, match="an earlier write failed"):
            call()
    file.discard()
    assert not namespace.exists("/f")
    assert list(iter_objects(inner, "")) == []
    assert list(iter_uploads(inner, "")) == []


def _lose_a_reply(world: World, *, happens: bool) -> tuple[Namespace, Callable[[], None]]:
    """Return a client, and a function after whose call one commit of it has an unknown outcome."""
    planned: list[bool] = []

    def before(call: str, argument: object) -> None:
        if call != "commit" or not planned:
            return
        assert isinstance(argument, Commit)
        if happens and not isinstance(world.database.commit(argument), Committed):
            return  # a wrong guess: the client tries again
        planned.clear()
        raise OutcomeUnknownError("the reply is lost")

    return world.client(database=HookedDatabase(world.database, before)), lambda: planned.append(True)


MEANWHILE: dict[str, Callable[[Namespace], object]] = {
    "nothing": lambda namespace: None,
    "renamed": lambda namespace: namespace.rename("/f", "/g"),
    "its directory renamed": lambda namespace: namespace.rename("/d", "/e"),
    "deleted": lambda namespace: namespace.delete("/f"),
    "replaced": lambda namespace: namespace.write_file("/f", b"other", overwrite=True),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("data", [b"1", b"12345678"], ids=["small", "blob"])
def test_a_file_that_was_published_unnoticed_is_not_published_again(meanwhile: str, data: bytes) -> None:
    """Two files once had the same id and the same blobs, so the deletion of one took the content of the other."""
    world = World()
    namespace, lose_a_reply = _lose_a_reply(world, happens=True)
    path = "/d/f" if "directory" in meanwhile else "/f"
    file = namespace.create(path)
    file.write(data)
    lose_a_reply()
    with pytest.raises(OutcomeUnknownError):
        file.close()
    other = world.client()
    MEANWHILE[meanwhile](other)
    before = {key: record.value for key, record in world.records(b"i").items()}
    if meanwhile == "nothing":
        file.close()
    else:
        with pytest.raises(OutcomeUnknownError):
            file.close()
    file.discard()
    assert {key: record.value for key, record in world.records(b"i").items()} == before
    for status in other.walk("/"):
        if not status.is_directory:
            assert other.open(status.path).read() in (data, b"other")


def test_a_file_that_may_be_published_is_not_published_later() -> None:
    """Whether something happened is unknown."""
    world = World()
    namespace, lose_a_reply = _lose_a_reply(world, happens=False)
    file = namespace.create("/f")
    file.write(b"12345678")
    lose_a_reply()
    for _ in range(3):
        with pytest.raises(OutcomeUnknownError):
            file.close()
    assert not namespace.exists("/f")


@pytest.mark.parametrize("happens", [False, True])
@pytest.mark.parametrize("meanwhile", ["nothing", "renamed"])
@pytest.mark.parametrize("data", [b"1", b"12345678"], ids=["small", "blob"])
def test_a_writer_with_a_lease_can_always_repeat(happens: bool, meanwhile: str, data: bytes) -> None:
    world = World()
    namespace, lose_a_reply = _lose_a_reply(world, happens=happens)
    file = namespace.create_with_lease("/f")
    file.write(data)
    lose_a_reply()
    with pytest.raises(OutcomeUnknownError):
        file.sync()
    MEANWHILE[meanwhile](world.client())
    file.write(data)
    lose_a_reply()
    with pytest.raises(OutcomeUnknownError):
        file.close()
    file.close()
    assert world.client().open("/f" if meanwhile == "nothing" else "/g").read() == 2 * data


def test_a_file_that_could_not_be_published_is_published_later() -> None:
    world = World()
    errors: list[HoldfastError] = [UnavailableError("away"), TransactionConflictError("others")]

    def fail(call: str, argument: object) -> None:
        if call == "commit" and isinstance(argument, Commit) and argument.inserts and errors:
            raise errors.pop()

    file = world.client(database=HookedDatabase(world.database, fail)).create("/f")
    file.write(b"12345678")
    for error in (TransactionConflictError, UnavailableError):
        with pytest.raises(error):
            file.close()
    file.close()
    assert world.client().open("/f").read() == b"12345678"
