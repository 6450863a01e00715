"""A writer goes on after renames of its file or of directories above it; what records this goes with its directory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest

from holdfast.errors import CorruptDataError
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.keys import rename_record_key
from holdfast.namespace.other_records import Lease, decode_trail, encode_trail, find_path
from holdfast.transactions.base import Backend, Record
from tests.namespace_world import World


def _places(world: World) -> list[bytes]:
    return list(world.records(b"w"))


def test_a_writer_follows_its_file_through_many_renames() -> None:
    world = World()
    one, other = world.client(), world.client()
    file = one.create_with_lease("/a/b/f")
    file.write(b"1")
    file.sync()
    other.mkdirs("/x/y")
    for source, target in (
        ("/a", "/x/y/a"),
        ("/x/y/a/b", "/b"),
        ("/b/f", "/x/g"),
        ("/x", "/z"),
        ("/z/g", "/z/y/g"),
        ("/z/y", "/y"),
    ):
        other.rename(source, target)
        file.write(b"2")
        file.sync()
    file.close()
    assert other.open("/y/g").read() == b"1222222"


@dataclass
class _Sorted:
    """A database that answers in the order of the keys, or in the opposite order."""

    inner: Backend
    is_reversed: bool

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return dict(sorted(self.inner.get_many(keys).items(), reverse=self.is_reversed))

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_place_says_nothing_about_a_directory_that_moved_later(is_reversed: bool) -> None:
    """Below it is the place of another directory, which still contains the old name: whatever comes first."""
    world = World()
    other = world.client()
    file = other.create_with_lease("/a/b/f")
    other.rename("/a/b", "/a/c")
    other.rename("/a", "/z")
    ((key, record),) = world.records(b"l").items()
    lease = Lease.decode(key, record.value)
    found = find_path(_Sorted(world.database, is_reversed), lease.key, lease.trail)  # type: ignore[arg-type]  # it only reads
    assert str(found) == "/z/c/f"
    file.discard()


def test_a_writer_that_was_replaced_is_not_led_to_another_file() -> None:
    world = World()
    one, other = world.client(), world.client()
    file = one.create_with_lease("/a/f")
    file.write(b"old")
    other.rename("/a", "/b")
    other.write_file("/b/f", b"new", overwrite=True)
    other.write_file("/a/f", b"newer")
    with pytest.raises(LeaseLostError):
        file.close()
    assert other.open("/b/f").read() == b"new"
    assert other.open("/a/f").read() == b"newer"


def test_files_of_one_step_are_published_wherever_they_are() -> None:
    world = World()
    one, other = world.client(), world.client()
    leased, whole = one.create_with_lease("/a/f"), one.create("/new/deep/g")
    for file in (leased, whole):
        file.write(b"x")
        file.prepare()
    other.rename("/a", "/b")
    one.publish_many([leased, whole])
    assert other.open("/b/f").read() == other.open("/new/deep/g").read() == b"x"
    assert not other.status("/b/f").is_open


def test_files_of_one_step_may_share_new_directories() -> None:
    world = World()
    namespace = world.client()
    files = [namespace.create(path) for path in ("/n/f", "/n/m/g", "/n/h")]
    for file in files:
        file.prepare()
    namespace.publish_many(files)
    namespace.flush()
    assert sorted(entry.path for entry in namespace.walk("/n")) == ["/n/f", "/n/h", "/n/m", "/n/m/g"]


def test_a_directory_has_one_place_however_often_it_is_renamed() -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/d/e/f", b"x")
    for number in range(5):
        namespace.rename(f"/d{number or ''}", f"/d{number + 1}")
    assert len(_places(world)) == 1
    namespace.rename("/d5/e/f", "/f")
    assert len(_places(world)) == 1


def test_places_go_with_their_directories() -> None:
    world = World()
    namespace = world.client()
    for name in ("empty", "full", "replaced", "above"):
        namespace.mkdirs(f"/tmp/{name}")
        namespace.rename(f"/tmp/{name}", f"/{name}")
    namespace.write_file("/full/f", b"x")
    namespace.mkdirs("/above/a/b")
    namespace.rename("/above/a/b", "/above/a/c")
    assert len(_places(world)) == 5
    namespace.delete("/empty")
    assert len(_places(world)) == 4
    namespace.rename("/tmp", "/replaced", overwrite=True)
    namespace.delete("/full", recursive=True)
    namespace.delete("/above", recursive=True)
    namespace.collect()
    assert len(_places(world)) == 1
    namespace.delete("/replaced")
    assert _places(world) == []


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b"{}", b"[[6]]", b'[[7.0,"a"]]', b"[[7,1]]", b'[[-7,"a"]]', b'[[6,"a"]]', b"[7]", b"[" * 99999],
)
def test_a_damaged_place_is_reported(value: bytes) -> None:
    assert decode_trail(rename_record_key(7), encode_trail(((6, b"a"), (7, b"b")))) == ((6, b"a"), (7, b"b"))
    with pytest.raises(CorruptDataError, match="run holdfast namespace fsck"):
        decode_trail(rename_record_key(7), value)
