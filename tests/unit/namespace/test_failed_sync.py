"""A writer that could not publish loses nothing, and repeats nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.namespace.blobs import BlobStore, stored_size
from holdfast.stores.base import ObjectInfo, Part, iter_objects
from holdfast.stores.memory import MemoryStore
from tests.namespace_world import HookedDatabase, World


@pytest.mark.parametrize("piece", [b"abc", b"abcdefgh"], ids=["small", "blob"])
def test_what_could_not_be_published_comes_with_the_next_call(piece: bytes) -> None:
    world = World()
    failures = iter([UnavailableError("the database is away")])
    is_away = [False]

    def fail(call: str, argument: object) -> None:
        if call == "commit" and is_away[0] and (error := next(failures, None)) is not None:
            raise error

    writer = world.client(database=HookedDatabase(world.database, fail)).create_with_lease("/a")
    writer.write(piece)
    is_away[0] = True
    with pytest.raises(UnavailableError):
        writer.sync()
    writer.write(b"-end")
    writer.close()
    assert world.client().open("/a").read() == piece + b"-end"
    assert writer.close() is None


def test_a_file_that_could_not_be_closed_can_be_closed_later() -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/a", b"old")
    writer = namespace.create("/b")
    writer.write(b"12345678")
    namespace.write_file("/b", b"other")
    with pytest.raises(FileExistsError):
        writer.close()
    namespace.delete("/b")
    writer.close()
    assert namespace.open("/b").read() == b"12345678"


@pytest.mark.parametrize("has_lease", [True, False])
def test_a_close_whose_reply_was_lost_is_repeated_and_publishes_once(has_lease: bool) -> None:
    world = World()
    is_away = [False]

    def lose_the_reply(call: str, argument: object) -> None:
        if call == "commit" and is_away[0]:
            world.database.commit(argument)  # type: ignore[arg-type]  # the argument of this call
            raise OutcomeUnknownError("the database went away during a commit")

    client = world.client(database=HookedDatabase(world.database, lose_the_reply))
    writer = client.create_with_lease("/a") if has_lease else client.create("/a")
    writer.write(b"abc")
    is_away[0] = True
    with pytest.raises(OutcomeUnknownError):
        writer.close()
    is_away[0] = False
    writer.close()
    assert world.client().open("/a").read() == b"abc"


def test_a_write_that_fails_because_of_the_lease_adds_nothing() -> None:
    world = World()
    is_away = [False]

    def fail(call: str, argument: object) -> None:
        if is_away[0]:
            raise UnavailableError("the database is away")

    writer = world.client(database=HookedDatabase(world.database, fail)).create_with_lease("/a")
    writer.write(b"ab")
    world.clock.at_s += 40
    is_away[0] = True
    with pytest.raises(UnavailableError):
        writer.write(b"cd")
    is_away[0] = False
    writer.write(b"cd")
    writer.close()
    assert world.client().open("/a").read() == b"abcd"


def test_a_closed_writer_does_not_sync() -> None:
    writer = World().client().create_with_lease("/a")
    writer.close()
    with pytest.raises(InvalidRequestError):
        writer.sync()


@pytest.mark.parametrize("is_done", [False, True], ids=["nothing-happened", "reply-lost"])
def test_a_blob_whose_upload_could_not_be_completed_is_completed_once(is_done: bool) -> None:
    world = World()
    store, parts = world.store, []

    class _Flaky(MemoryStore):
        def complete_upload(self, key: str, upload_id: str, given: Sequence[Part]) -> ObjectInfo:
            parts.append(list(given))
            if len(parts) == 1:
                if is_done:
                    store.complete_upload(key, upload_id, given)  # type: ignore[attr-defined]  # a MemoryStore
                raise UnavailableError("the store is away")
            return super().complete_upload(key, upload_id, given)

    flaky = _Flaky(clock=world.clock, ids=world.ids)
    flaky.__dict__.update(store.__dict__)  # the same objects
    content = b"x" * (9 * 1024 * 1024)
    writer = world.client(blobs=BlobStore(flaky, "data/", world.ids)).create("/a")
    writer.write(content)
    with pytest.raises(UnavailableError):
        writer.close()
    writer.close()
    assert parts[0] == parts[1]
    assert world.client().open("/a").read() == content
    assert [info.size_bytes for info in iter_objects(store, "data/")] == [stored_size(len(content))]
