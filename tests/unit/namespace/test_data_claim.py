"""One place for blobs belongs to one namespace: a sweep of another one would delete its files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace import opening as opening_module
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import BlobPathClaim
from holdfast.namespace.opening import reconfigure_namespace
from holdfast.stores.base import Create, ObjectInfo, ObjectStore, Overwrite, PutMode, iter_objects
from holdfast.stores.memory import MemoryStore
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import Destination
from tests.namespace_world import World
from tests.patience import wait_until

_LARGE = b"0123456789" * 10


@pytest.fixture(autouse=True)
def _catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "namespaces.json"))


def _init(place: Path, name: str, data: str = "data") -> bool:
    configuration = Configuration(name=name, data=str(place / data), superuser="root", inline_bytes=4, safety_age_s=0)
    return init_namespace(configuration, f"sqlite://{place}/{name}.db")


def _sharing() -> tuple[World, Namespace, Namespace]:
    """Return two namespaces from before claims, whose data are at one place; the first one has claimed it."""
    world, other = World(), World()
    first = world.client(blobs=replace(world.blobs, claim=BlobPathClaim("first", "1")))
    second = other.client(blobs=replace(world.blobs, claim=BlobPathClaim("second", "2")))
    first.write_file("/precious", _LARGE)
    world.clock.at_s += 10**6
    other.clock.at_s += 10**6
    return world, first, second


def test_the_store_of_the_data_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_stores: list[ObjectStore] = []
    open_destination = opening_module.open_destination

    def opened(url: str, options: Iterable[StoreOptions]) -> Destination:
        destination = open_destination(url, options)
        open_stores.append(destination.store)
        monkeypatch.setattr(destination.store, "close", open_stores.clear)
        return destination

    monkeypatch.setattr(opening_module, "open_destination", opened)
    assert _init(tmp_path, "a")
    assert open_stores == []


def test_a_second_namespace_with_the_same_data_is_refused_before_it_exists(tmp_path: Path) -> None:
    assert _init(tmp_path, "a")
    with pytest.raises(InvalidRequestError, match=r"at the place of another one.*owner='a'"):
        _init(tmp_path, "b")
    assert not list(tmp_path.glob("b.db*"))
    assert _init(tmp_path, "b", "elsewhere"), "nothing was created"
    assert not _init(tmp_path, "a"), "the call may be repeated"
    with open_namespace("holdfast://a", user="root") as namespace:
        namespace.write_file("/f", _LARGE)
        assert namespace.sweep().blobs == 0
        assert namespace.check().totals == {}


def test_a_place_that_cannot_be_written_is_refused_before_there_is_a_database(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HoldfastError):
        _init(tmp_path, "a", "file/data")
    assert not list(tmp_path.glob("a.db*"))
    with pytest.raises(HoldfastError):
        _init(tmp_path, "a", "/proc/data")
    assert _init(tmp_path, "a"), "nothing was created"


def test_blobs_without_a_mark_are_somebody_elses(tmp_path: Path) -> None:
    _init(tmp_path, "a")
    with open_namespace("holdfast://a", user="root") as namespace:
        namespace.write_file("/f", _LARGE)
    (tmp_path / "data" / "namespace.json").unlink()
    with pytest.raises(InvalidRequestError, match="there are files of a namespace at this place already"):
        _init(tmp_path, "b")
    with open_namespace("holdfast://a", user="root") as namespace:
        assert namespace.check().totals == {}
        assert not (tmp_path / "data" / "namespace.json").exists(), "a check changes nothing"
        namespace.write_file("/g", _LARGE)
    assert (tmp_path / "data" / "namespace.json").exists(), "a namespace from before claims gets one"


def test_of_two_that_are_created_at_the_same_moment_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one takes the place after this one has looked."""
    check = opening_module._require_unused_data_directory

    def overtaken(blobs: BlobStore, configuration: Configuration) -> None:
        check(blobs, configuration)
        monkeypatch.setattr(opening_module, "_require_unused_data_directory", check)
        assert _init(tmp_path, "b")

    monkeypatch.setattr(opening_module, "_require_unused_data_directory", overtaken)
    with pytest.raises(InvalidRequestError, match="owner='b'"):
        _init(tmp_path, "a")
    assert _init(tmp_path, "a", "elsewhere"), "the first try left nothing behind"


@pytest.mark.parametrize(
    "work",
    [
        lambda namespace: namespace.sweep(),
        lambda namespace: namespace.repair(),
        lambda namespace: namespace.check(),
        lambda namespace: namespace.write_file("/mine", _LARGE),
    ],
    ids=["sweep", "repair", "check", "write"],
)
def test_whoever_does_not_have_the_place_touches_nothing(work: Callable[[Namespace], object]) -> None:
    world, first, second = _sharing()
    before = {info.key for info in iter_objects(world.store, "")}
    with pytest.raises(InvalidRequestError, match="owner='first'"):
        work(second)
    assert {info.key for info in iter_objects(world.store, "")} == before
    second.write_file("/small", b"1")  # in the database
    assert second.open("/small").read() == b"1"
    second.collect()
    assert first.open("/precious").read() == _LARGE


def test_garbage_is_not_collected_at_the_place_of_another_one() -> None:
    world, first, second = _sharing()
    second.blobs = world.blobs
    blob = next(iter_objects(world.store, world.blobs.key(""))).key[len(world.blobs.key("")) :]
    claim = BlobPathClaim("second", "2")
    with pytest.raises(InvalidRequestError, match="owner='first'"):
        replace(world.blobs, claim=claim).delete_many([blob])
    assert first.open("/precious").read() == _LARGE


def test_two_first_writers_of_one_namespace_agree() -> None:
    class Racing(MemoryStore):
        """Another process claims the place between the look and the claim."""

        def put(
            self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
        ) -> ObjectInfo:
            if isinstance(mode, Create):
                super().put(key, data)
            return super().put(key, data, mode, metadata)

    store: ObjectStore = Racing()
    BlobPathClaim("ns", "1").hold(store, "x/")
    with pytest.raises(InvalidRequestError, match="owner='ns'"):
        BlobPathClaim("other", "2").hold(store, "x/")


def test_of_two_namespaces_that_claim_at_once_the_first_has_it() -> None:
    class Beaten(MemoryStore):
        """A store in which another namespace writes its mark just before the first put."""

        is_beaten = False

        def put(
            self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
        ) -> ObjectInfo:
            if not self.is_beaten:
                self.is_beaten = True
                BlobPathClaim("first", "1").hold(self, "x/")
            return super().put(key, data, mode, metadata)

    store = Beaten()
    with pytest.raises(InvalidRequestError, match="owner='first'"):
        BlobPathClaim("second", "2").hold(store, "x/")
    assert BlobPathClaim("first", "1").check(store, "x/")


def test_a_mark_that_cannot_be_read_stops_everything() -> None:
    store = MemoryStore()
    store.put("x/namespace.json", b"{")
    with pytest.raises(CorruptDataError, match="if no other namespace has its data there, delete it"):
        BlobPathClaim("ns", "1").hold(store, "x/")


def test_a_collector_that_runs_while_its_data_move_spares_the_next_owner_of_the_place(tmp_path: Path) -> None:
    _init(tmp_path, "a")
    service = open_namespace("holdfast://a", user="root")
    service.write_file("/f", _LARGE)
    assert service.sweep().blobs == 0
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with open_namespace("holdfast://a", user="root") as moving:
        reconfigure_namespace(moving, data=str(tmp_path / "elsewhere"))
    _init(tmp_path, "b")
    with open_namespace("holdfast://b", user="root") as owner:
        owner.write_file("/precious", _LARGE)
        for blob in (tmp_path / "data").rglob("*"):
            os.utime(blob, (1, 1))
        service.sweep()
        swept_s = time.time()
        # The clock that dates files advances in steps, and nothing that was noted within one is collected.
        wait_until(lambda: owner.blobs.read_store_clock_s() > swept_s + 0.001, "the clock of the file system goes on")
        with pytest.raises(InvalidRequestError, match="at the place of another one"):
            service.collect()
        assert owner.open("/precious").read() == _LARGE
    service.close()
