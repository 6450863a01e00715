"""A database forgets the creation of a namespace, and perhaps another one is created there: two are never mixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.errors import (
    CorruptDataError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace, opening
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import create_namespace, load_configuration
from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.opening import reconfigure_namespace
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import Complete, Create, Part, Put, iter_objects, iter_uploads
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import Commit
from tests.clocks import CountingIds, StillClock
from tests.forgetful_database import ForgetfulDatabase
from tests.namespace_check import problems_of
from tests.namespace_world import HookedDatabase, all_records

_LARGE = b"0123456789"
_DAY_S = 24 * 3600.0


@dataclass
class Place:
    """A database and an object store, in which namespaces are created one after the other."""

    clock: StillClock = field(default_factory=lambda: StillClock(1_800_000_000.0))
    ids: CountingIds = field(default_factory=CountingIds)
    database: ForgetfulDatabase = field(default_factory=lambda: ForgetfulDatabase(keeps=False))

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock, ids=self.ids)
        self.environment = Environment(clock=self.clock, ids=self.ids, runner=SerialRunner())

    def init(self, data: str) -> None:
        wanted = Configuration(
            name="world", data=f"memory://{data}", superuser="hdfs", inline_bytes=4, identity=self.ids.token()
        )
        create_namespace(self.database, wanted, int(self.clock.now_s() * 1000))
        load_configuration(self.database).claim.hold(self.store, f"{data}/")

    def client(self, database: HookedDatabase | None = None) -> Namespace:
        found = load_configuration(self.database)
        root = f"{found.data.removeprefix('memory://')}/"
        blobs = BlobStore(self.store, root, self.ids, found.claim)
        return Namespace(database or self.database, blobs, found, self.environment, user="hdfs")

    def lose(self) -> None:
        self.database.forget(self.database.newest)

    def state(self) -> tuple[object, set[str]]:
        return all_records(self.database), {one.key for one in iter_objects(self.store, "")}


WRITES: dict[str, Callable[[Namespace], object]] = {
    "mkdirs": lambda one: one.mkdirs("/new/below"),
    "a large file": lambda one: one.write_file("/new", _LARGE),
    "a small file": lambda one: one.write_file("/new", b"1"),
    "a file in its place": lambda one: one.write_file("/file", _LARGE, overwrite=True),
    "create with lease": lambda one: one.create_with_lease("/new"),
    "append": lambda one: one.append("/file"),
    "truncate": lambda one: one.truncate("/file", 0),
    "rename": lambda one: one.rename("/file", "/new"),
    "delete": lambda one: one.delete("/file"),
    "delete what is not there": lambda one: one.delete("/missing"),
    "quota": lambda one: one.set_quota("/", names=100),
    "permission": lambda one: one.set_permission("/", 0o700),
    "attribute": lambda one: one.set_xattr("/file", "user.a", b"1"),
    "sweep": lambda one: one.sweep(),
    "repair": lambda one: one.repair(),
    "reconfigure": lambda one: reconfigure_namespace(one, safety_age_s=77),
    "put": lambda one: NamespaceStore(one).put("new", b"1"),
    "put a large one": lambda one: NamespaceStore(one).put("new", _LARGE),
    "apply": lambda one: NamespaceStore(one).apply([Put("new", b"1", Create())]),
    "create_upload": lambda one: NamespaceStore(one).create_upload("new"),
    "upload_part": lambda one: NamespaceStore(one).upload_part("new", "token", 1, b"1"),
    "complete_upload": lambda one: NamespaceStore(one).complete_upload("new", "token", [Part(1, "etag", 1)]),
    "abort_upload": lambda one: NamespaceStore(one).abort_upload("new", "token"),
    "collect": lambda one: one.collect(),
    "delete an object": lambda one: NamespaceStore(one).delete("file"),
}
READS: dict[str, Callable[[Namespace], object]] = {
    "status": lambda one: one.status("/"),
    "find": lambda one: one.find("/file"),
    "open": lambda one: one.open("/file"),
    "list": lambda one: list(one.list("/")),
    "walk": lambda one: list(one.walk("/")),
    "summary": lambda one: one.content_summary("/"),
    "attributes": lambda one: one.xattrs("/file"),
    "check": lambda one: one.check(),
    "list uploads": lambda one: list(iter_uploads(NamespaceStore(one), "")),
    "look for uploads": lambda one: NamespaceStore(one).make_durable([Complete("new", "token", (), Create())]),
    "list objects": lambda one: list(iter_objects(NamespaceStore(one), "")),
    "head": lambda one: NamespaceStore(one).head("file"),
    "fsspec": lambda one: NamespaceFileSystem.over(one).find("world"),
}


@pytest.mark.parametrize("knows", [True, False], ids=["with hints", "without hints"])
@pytest.mark.parametrize("name", [*WRITES, *READS])
def test_another_namespace_is_neither_changed_nor_read(name: str, knows: bool) -> None:
    place = Place()
    place.init("one")
    ann = place.client()
    if knows:
        ann.write_file("/file", _LARGE)
    place.lose()
    place.init("two")
    bob = place.client()
    bob.write_file("/file", _LARGE)
    bob.mkdirs("/gone")
    bob.delete("/gone", recursive=True)
    before = place.state()
    with pytest.raises(FencedError, match="open the namespace again"):
        (WRITES | READS)[name](ann)
    records, objects = place.state()
    assert records == before[0]
    assert {one for one in objects if one.startswith("two/")} == {one for one in before[1] if one.startswith("two/")}
    assert bob.open("/file").read() == _LARGE


@pytest.mark.parametrize("name", [*WRITES, *READS])
def test_a_namespace_that_is_not_there_is_no_empty_one(name: str) -> None:
    place = Place()
    place.init("one")
    ann = place.client()
    ann.write_file("/file", _LARGE)
    place.lose()
    with pytest.raises((CorruptDataError, NotFoundError), match=r"no root directory|contains no namespace"):
        (WRITES | READS)[name](ann)
    assert all_records(place.database) == {}


def test_open_files_of_a_lost_namespace_are_not_published_into_another_one() -> None:
    place = Place()
    place.init("one")
    ann = place.client()
    leased, plain = ann.create_with_lease("/leased"), ann.create("/plain")
    upload = NamespaceStore(ann).create_upload("upload")
    for file in (leased, plain):
        file.write(_LARGE)
    place.lose()
    place.init("two")
    bob = place.client()
    for call in (leased.close, plain.close):
        with pytest.raises(FencedError):
            call()
    with pytest.raises(FencedError):
        NamespaceStore(ann).upload_part("upload", upload, 1, _LARGE)
    for file in (leased, plain):
        file.discard()
    assert list(bob.walk("/")) == []
    assert list(iter_uploads(NamespaceStore(bob), "")) == []
    assert problems_of(place.database, place.store, "two/") == []


def test_garbage_of_another_namespace_is_left_to_it() -> None:
    place = Place()
    place.init("one")
    ann = place.client()
    place.lose()
    place.init("two")
    bob = place.client()
    bob.write_file("/file", _LARGE)
    bob.delete("/file")
    place.clock.at_s += 2 * _DAY_S
    with pytest.raises(FencedError):
        ann.collect()
    assert bob.collect().blobs == 1
    assert problems_of(place.database, place.store, "two/") == []


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_a_sweep_does_not_go_on_in_another_namespace(work: str) -> None:
    """Whenever the creation is lost and repeated."""
    calls = 0
    at = 0
    while at <= calls:
        place = Place()
        place.init("one")
        ann = place.client()
        ann.create("/file").prepare()
        blobs = ann.blobs
        name = blobs.new_name(77)
        place.store.put(blobs.key(name), b"of a dead writer")
        place.clock.at_s += 2 * _DAY_S
        seen = 0

        def before(_name: str, _argument: object, place: Place = place, at: int = at) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                place.lose()
                place.init("two")
                place.client().write_file("/file", _LARGE)

        client = place.client(HookedDatabase(place.database, before))
        try:
            getattr(client, work)()
        except HoldfastError:
            assert at
        calls = max(calls, seen)
        if at:
            others = load_configuration(place.database)
            assert others.data == "memory://two" or seen < at
            assert problems_of(place.database, place.store, "two/") == [] or seen < at
        at += 1
    assert calls > 5


def test_a_namespace_of_an_earlier_release_has_a_root_without_a_name() -> None:
    place = Place()
    place.init("one")
    ann = place.client()
    root = ann.operations.database.get_many([ROOT_KEY])[ROOT_KEY]
    value = root.value.replace(f',"namespace":"{ann.configuration.identity}"'.encode(), b"")
    assert value != root.value
    place.database.commit(Commit(puts={ROOT_KEY: value}))
    assert place.client().mkdirs("/new")


def test_a_root_that_is_repaired_names_its_namespace() -> None:
    place = Place()
    place.init("one")
    place.database.commit(Commit(deletes=[ROOT_KEY]))
    assert [one.kind.name for one in place.client().repair().repaired] == ["no-root"]
    assert place.client().configuration.identity.encode() in place.database.get_many([ROOT_KEY])[ROOT_KEY].value
    assert place.client().mkdirs("/new")


@pytest.mark.parametrize("at", ["before the flush", "after the report"])
def test_a_namespace_that_was_reported_is_durable(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the database also leaves no mark beside the blobs: `init` can be repeated."""
    database = ForgetfulDatabase()
    crashes = ["before the flush"]

    def crash(name: str, _argument: object) -> None:
        if name == "make_durable" and crashes == [at]:
            crashes.clear()
            database.forget(database.newest)

    monkeypatch.setattr(opening, "open_backend", lambda *_, **__: HookedDatabase(database, crash))
    wanted = Configuration(name="world", data=f"{tmp_path}/data", superuser="hdfs")
    if at == "before the flush":
        with pytest.raises(NotFoundError, match="contains no namespace"):
            init_namespace(wanted, "memory://one", register=False)
    assert init_namespace(wanted, "memory://one", register=False)
    database.forget(database.newest)
    with open_namespace("holdfast://world", database="memory://one", user="hdfs") as client:
        client.write_file("/file", b"0" * 100_000)


def test_an_upload_does_not_begin_in_a_namespace_that_was_created_meanwhile() -> None:
    place = Place()
    place.init("one")
    to_do = ["two"]

    def before(name: str, _argument: object) -> None:
        if name == "commit" and to_do:
            place.lose()
            place.init(to_do.pop())

    with pytest.raises(FencedError, match="open the namespace again"):
        NamespaceStore(place.client(HookedDatabase(place.database, before))).create_upload("new")
    assert list(iter_uploads(NamespaceStore(place.client()), "")) == []


def test_a_namespace_that_exists_already_is_durable_when_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has created it was killed before the flush."""
    database = ForgetfulDatabase()
    kills = ["the creator"]

    def kill(name: str, _argument: object) -> None:
        if name == "make_durable" and kills:
            raise UnavailableError(kills.pop())

    monkeypatch.setattr(opening, "open_backend", lambda *_, **__: HookedDatabase(database, kill))
    wanted = Configuration(name="world", data=f"{tmp_path}/data", superuser="hdfs")
    with pytest.raises(UnavailableError, match="the creator"):
        init_namespace(wanted, "memory://one", register=False)
    assert not init_namespace(wanted, "memory://one", register=False)
    database.forget(database.newest)
    assert load_configuration(database)


def test_a_creation_that_is_refused_does_not_take_another_namespace_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Ann's is undone, because the place of its data was just taken, the database loses it, and has Bob's."""
    databases = {"memory://one": ForgetfulDatabase(keeps=False), "memory://other": ForgetfulDatabase()}
    one = databases["memory://one"]
    monkeypatch.setattr(opening, "open_backend", lambda url, *_, **__: databases[url])

    def init(name: str, data: str, database: str = "memory://one") -> bool:
        return init_namespace(
            Configuration(name=name, data=f"{tmp_path}/{data}", superuser="hdfs"), database, register=False
        )

    hold, others = BlobStore.hold, ["Bob's"]

    def hold_later(blobs: BlobStore) -> None:
        if others:
            others.clear()
            assert init("third", "data", "memory://other")
            one.forget(one.newest)
            assert init("bob", "elsewhere")
        hold(blobs)

    monkeypatch.setattr(BlobStore, "hold", hold_later)
    with pytest.raises(InvalidRequestError, match="at the place of another one"):
        init("ann", "data")
    assert load_configuration(one).name == "bob"


def test_a_creation_that_is_lost_to_another_one_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mark of the other namespace gets to the place of the lost one."""
    database = ForgetfulDatabase(keeps=False)
    others = [Configuration(name="bob", data=f"{tmp_path}/elsewhere", superuser="hdfs")]

    def lose(name: str, _argument: object) -> None:
        if name == "make_durable" and others:
            database.forget(database.newest)
            init_namespace(others.pop(), "memory://one", register=False)

    monkeypatch.setattr(opening, "open_backend", lambda *_, **__: HookedDatabase(database, lose))
    with pytest.raises(InvalidRequestError, match="contains another namespace"):
        init_namespace(
            Configuration(name="ann", data=f"{tmp_path}/data", superuser="hdfs"), "memory://one", register=False
        )
    assert load_configuration(database).name == "bob"
    assert not (tmp_path / "data" / "namespace.json").exists()
