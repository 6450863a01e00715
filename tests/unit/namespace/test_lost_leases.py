"""A writer whose lease was recovered is told so, even if it has nothing to add; an own close is recognized."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import OutcomeUnknownError
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.other_records import Lease
from holdfast.transactions.base import Commit, Committed
from tests.namespace_world import HookedDatabase, World


def _nothing(world: World) -> None:
    pass


def _another_appends(world: World) -> None:
    with world.client().append("/a") as file:
        file.write(b"-other")


def test_a_renewal_that_meets_a_rename_is_repeated_with_the_next_bytes() -> None:
    """Else the writer is silent for longer than the soft limit, and another client may take its file over."""
    world = World()
    is_armed = False

    def rename(call: str, argument: object) -> None:
        nonlocal is_armed
        if call == "commit" and is_armed:
            is_armed = False
            world.client().rename("/a", "/b")

    file = world.client(database=HookedDatabase(world.database, rename)).create_with_lease("/a")
    world.clock.at_s += 31
    is_armed = True
    file.write(b"1")
    assert not is_armed
    file.write(b"2")
    [(key, lease)] = world.records(b"l").items()
    assert Lease.decode(key, lease.value).renewed_ms == world.clock.at_s * 1000
    file.close()
    assert world.client().open("/b").read() == b"12"


class _Replies:
    """Lets replies of commits be lost: the commit takes effect if `takes_effect`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.are_lost = False
        self.takes_effect = True

    def client(self) -> Namespace:
        return self._world.client(database=HookedDatabase(self._world.database, self._lose))

    def _lose(self, call: str, argument: object) -> None:
        if call == "commit" and self.are_lost:
            assert isinstance(argument, Commit)
            if self.takes_effect and not isinstance(self._world.database.commit(argument), Committed):
                return  # a wrong guess: it is tried again
            raise OutcomeUnknownError("the database went away during a commit")

    def lose(self, act: Callable[[], object]) -> None:
        self.are_lost = True
        with pytest.raises(OutcomeUnknownError):
            act()
        self.are_lost = False


@pytest.mark.parametrize("afterwards", [_nothing, _another_appends])
@pytest.mark.parametrize("written", [b"", b"abc"], ids=["empty", "synced"])
def test_a_close_with_nothing_new_is_refused(written: bytes, afterwards: Callable[[World], None]) -> None:
    world = World()
    writer = world.client().create_with_lease("/a")
    writer.write(written)
    writer.sync()
    world.client().recover_lease("/a")
    afterwards(world)
    before = world.client().open("/a").read()
    for _ in range(2):
        with pytest.raises(LeaseLostError):
            writer.close()
    writer.discard()
    assert world.client().open("/a").read() == before


def test_publishing_together_is_refused() -> None:
    world = World()
    client = world.client()
    writers = [client.create_with_lease(path) for path in ("/a", "/b")]
    for writer in writers:
        writer.prepare()
    world.client().recover_lease("/b")
    with pytest.raises(LeaseLostError):
        client.publish_many(writers)


@pytest.mark.parametrize("takes_effect", [True, False])
def test_what_a_lost_sync_may_have_published_stays_unknown(takes_effect: bool) -> None:
    world = World()
    replies = _Replies(world)
    writer = replies.client().create_with_lease("/a")
    writer.write(b"abc")
    replies.takes_effect = takes_effect
    replies.lose(writer.sync)
    world.client().recover_lease("/a")
    for act in (writer.sync, writer.close):
        with pytest.raises(OutcomeUnknownError, match="lease of the file is lost"):
            act()
    assert world.client().open("/a").read() == (b"abc" if takes_effect else b"")


def _closed_without_reply(world: World, synced: bytes, last: bytes, *, takes_effect: bool) -> FileWriter:
    replies = _Replies(world)
    writer = replies.client().create_with_lease("/a")
    writer.write(synced)
    replies.lose(writer.sync)
    writer.write(last)
    replies.takes_effect = takes_effect
    replies.lose(writer.close)
    return writer


@pytest.mark.parametrize("afterwards", [_nothing, _another_appends])
def test_an_own_close_is_recognized_by_its_content(afterwards: Callable[[World], None]) -> None:
    world = World()
    writer = _closed_without_reply(world, b"abc", b"-end", takes_effect=True)
    afterwards(world)
    writer.close()
    assert world.client().open("/a").read().startswith(b"abc-end")


@pytest.mark.parametrize(("last", "takes_effect"), [(b"", True), (b"", False), (b"-end", False)])
def test_a_close_that_nothing_proves_stays_unknown(last: bytes, takes_effect: bool) -> None:
    world = World()
    writer = _closed_without_reply(world, b"abc", last, takes_effect=takes_effect)
    world.client().recover_lease("/a")
    for _ in range(2):
        with pytest.raises(OutcomeUnknownError, match="lease of the file is lost"):
            writer.close()
    assert world.client().open("/a").read() == b"abc"


@pytest.mark.parametrize("last", [b"", b"-end"], ids=["nothing new", "content"])
def test_a_close_that_had_no_effect_is_repeated(last: bytes) -> None:
    world = World()
    writer = _closed_without_reply(world, b"abc", last, takes_effect=False)
    world.client().rename("/a", "/b")
    writer.close()
    assert world.client().open("/b").read() == b"abc" + last
    assert not world.client().status("/b").is_open


def test_what_a_sync_after_the_close_has_published_proves_no_close() -> None:
    world = World()
    replies = _Replies(world)
    writer = replies.client().create_with_lease("/a")
    writer.write(b"abc")
    replies.takes_effect = False
    replies.lose(writer.close)
    replies.takes_effect = True
    replies.lose(writer.sync)
    world.client().recover_lease("/a")
    with pytest.raises(OutcomeUnknownError, match="lease of the file is lost"):
        writer.close()


def test_a_sync_proves_that_an_earlier_close_had_no_effect() -> None:
    world = World()
    replies = _Replies(world)
    writer = replies.client().create_with_lease("/a")
    replies.takes_effect = False
    replies.lose(writer.close)
    writer.write(b"abc")
    writer.sync()
    world.client().recover_lease("/a")
    with pytest.raises(LeaseLostError):
        writer.close()
