"""A file whose bytes a sweep may have taken for garbage is refused; it never appears without its bytes (N3)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from holdfast.errors import ConflictError, NotFoundError, PreconditionError, UnavailableError
from holdfast.namespace import Namespace
from holdfast.namespace.blobs import BlobWriter
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import Upload
from holdfast.stores.base import Create, MultipartLimits, Put, iter_objects
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import Commit, Outcome
from tests.clocks import SuspendedClock
from tests.namespace_world import HookedDatabase, World
from tests.patience import PATIENCE_S

_LARGE = b"0123456789"


def _prepared(namespace: Namespace, path: str = "/report") -> FileWriter:
    file = namespace.create(path)
    file.write(_LARGE)
    file.prepare()
    return file


def _collect_everything(world: World) -> None:
    other = world.client()
    other.sweep()
    other.collect()


@pytest.mark.parametrize("publish", [
    lambda namespace, file: namespace.publish_many([file]),
    lambda namespace, file: namespace.publish_many([file, _prepared(namespace, "/second")]),
    lambda namespace, file: file.close(),
], ids=["one", "several", "close"])  # fmt: skip
@pytest.mark.parametrize("sweeps", [False, True])
def test_a_file_that_waits_for_longer_than_the_safety_age(
    publish: Callable[[Namespace, FileWriter], object], sweeps: bool
) -> None:
    world = World(safety_age_s=3600)
    namespace = world.client()
    file = _prepared(namespace)
    world.clock.at_s += 3601
    if sweeps:
        _collect_everything(world)
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        publish(namespace, file)
    assert not namespace.exists("/report") and not namespace.exists("/second")
    file.discard()


@pytest.mark.parametrize(("safety_age_s", "waited_s"), [(3600, 3599), (0, CLOSING_S - 1)])
def test_a_file_that_waits_for_less(safety_age_s: int, waited_s: float) -> None:
    world = World(safety_age_s=safety_age_s)
    namespace = world.client()
    file = _prepared(namespace)
    world.clock.at_s += waited_s
    _collect_everything(world)
    namespace.publish_many([file])
    assert namespace.open("/report").read() == _LARGE


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_a_client_that_stops_between_its_last_look_and_its_commit(work: str) -> None:
    """The file was young when the client looked. Then the process stood still, and everybody else went on."""
    world = World(safety_age_s=3600)
    stopped: list[float] = []

    def stop(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key.endswith(b"report") for key in argument.inserts) and not stopped:
            stopped.append(world.clock.at_s)
            world.clock.at_s += 3601
            getattr(world.client(), work)()
            world.client().collect()

    namespace = world.client(database=HookedDatabase(world.database, stop))
    file = _prepared(namespace)
    with pytest.raises(LeaseLostError):
        namespace.publish_many([file])
    file.discard()
    assert stopped
    assert world.client().find("/report") is None
    assert world.client().check().is_healthy, "a repair has given the blob to a file: the writer must not delete it"


def test_a_sweep_that_finds_nothing_costs_a_publication_one_more_try() -> None:
    world = World(safety_age_s=3600)
    swept: list[bool] = []

    def sweep(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key.endswith(b"report") for key in argument.inserts) and not swept:
            swept.append(True)
            world.client().sweep()

    namespace = world.client(database=HookedDatabase(world.database, sweep))
    namespace.publish_many([_prepared(namespace)])
    assert swept and world.client().open("/report").read() == _LARGE


def test_a_sweep_takes_the_time_before_it_announces_itself() -> None:
    """A client that looks after the announcement finds its blob young enough: the sweep must not take it for older."""
    world = World(safety_age_s=3600)
    has_looked, is_swept = Event(), Event()

    def stop(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(key.endswith(b"report") for key in argument.inserts):
            root = world.database.get_many([ROOT_KEY])[ROOT_KEY]
            if argument.reads[ROOT_KEY] == root.version:  # not what it knew before
                has_looked.set()
                assert is_swept.wait(PATIENCE_S)

    namespace = world.client(database=HookedDatabase(world.database, stop))
    file = _prepared(namespace)
    world.clock.at_s += 3599

    with ThreadPoolExecutor(1) as thread:

        class AfterTheAnnouncement(HookedDatabase):
            def commit(self, commit: Commit) -> Outcome:
                outcome = super().commit(commit)
                if ROOT_KEY in commit.puts:
                    published.append(thread.submit(namespace.publish_many, [file]))
                    assert has_looked.wait(PATIENCE_S)
                    world.clock.at_s += 2
                return outcome

        published: list[Future[None]] = []
        other = world.client(database=AfterTheAnnouncement(world.database, lambda call, argument: None))
        try:
            assert other.sweep().blobs == 0
        finally:
            is_swept.set()
        (one,) = published
        one.result(PATIENCE_S)
    assert world.client().check().is_healthy
    assert world.client().open("/report").read() == _LARGE


def test_a_file_is_as_old_as_its_oldest_bytes() -> None:
    """The first call of close has failed, and more was written since."""
    world = World(safety_age_s=3600)
    is_away = [True]

    def fail(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and is_away:
            raise UnavailableError("the database is away")

    namespace = world.client(database=HookedDatabase(world.database, fail))
    file = namespace.create("/report")
    file.write(_LARGE)
    with pytest.raises(UnavailableError):
        file.close()
    is_away.clear()
    world.clock.at_s += 3601
    file.write(_LARGE)
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        file.close()
    assert world.client().find("/report") is None


def test_a_lease_protects_a_slow_writer() -> None:
    world = World(safety_age_s=3600)
    namespace = world.client()
    with namespace.create_with_lease("/slow") as file:
        file.write(_LARGE)
        world.clock.at_s += 10**6
        world.client().sweep()
        file.write(_LARGE)
    _collect_everything(world)
    assert namespace.open("/slow").read() == 2 * _LARGE


def test_a_buffered_file_is_as_old_as_its_object() -> None:
    """Nothing is in the store before the file is closed, so nothing can be swept."""
    store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=1))
    world = World(safety_age_s=3600, store=store)
    namespace = world.client()
    with namespace.create("/slow") as file:
        file.write(_LARGE)
        world.clock.at_s += 10**6
        assert list(iter_objects(store, "")) == []
    assert namespace.open("/slow").read() == _LARGE


def test_an_object_that_is_written_in_parts_is_as_old_as_its_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.namespace.blobs._PART_BYTES", 4)
    world = World(safety_age_s=3600, store=MemoryStore(limits=MultipartLimits(min_part_size_bytes=1)))
    file = world.client().create("/slow")
    file.write(_LARGE)
    world.clock.at_s += 3601
    file.write(_LARGE)
    with pytest.raises(LeaseLostError):
        file.close()
    file.discard()


def test_no_bytes_do_not_make_a_file_younger(tmp_path: Path) -> None:
    """The date of a file in a directory is that of its last bytes."""
    world = World(safety_age_s=3600, store=LocalStore(str(tmp_path)))
    file = world.client().create("/slow")
    file.write(_LARGE)
    world.clock.at_s += 3601
    file.write(b"")
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        file.close()
    file.discard()


def test_small_files_have_no_age() -> None:
    world = World(safety_age_s=3600, inline_bytes=100)
    namespace = world.client()
    file = _prepared(namespace)
    world.clock.at_s += 10**6
    namespace.publish_many([file])
    assert namespace.open("/report").read() == _LARGE


@pytest.mark.parametrize("write", [
    lambda store: store.put("report", _LARGE),
    lambda store: store.apply([Put("report", _LARGE), Put("small", b"1")]),
], ids=["put", "apply"])  # fmt: skip
@pytest.mark.parametrize(("waited_s", "is_late"), [(3599, False), (3601, True)])
def test_an_object_that_waits_for_longer_than_the_safety_age(
    write: Callable[[NamespaceStore], object], waited_s: float, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine sleeps between the object's bytes and its transaction."""
    world = World(safety_age_s=3600)

    store = NamespaceStore(world.client())
    shipped = BlobWriter.close

    def close_and_sleep(writer: BlobWriter) -> Extent:
        found = shipped(writer)
        world.clock.at_s += waited_s
        return found

    monkeypatch.setattr(BlobWriter, "close", close_and_sleep)
    if not is_late:
        write(store)
        assert store.get("report") == _LARGE
        return
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        write(store)
    assert not store.namespace.exists("/report")


# --- machines that were suspended -------------------------------------------------------------------------------------
def _suspend(world: World, clock: SuspendedClock, duration_s: float) -> None:
    """Suspend the machine of the clients; the one that sweeps goes on."""
    clock.suspend(duration_s)
    _collect_everything(world)


@pytest.mark.parametrize("publish", [
    lambda namespace, file: namespace.publish_many([file]),
    lambda namespace, file: file.close(),
], ids=["publish_many", "close"])  # fmt: skip
def test_a_file_that_waits_while_its_machine_is_suspended(
    publish: Callable[[Namespace, FileWriter], object],
) -> None:
    """The monotonic clock of the machine did not run meanwhile."""
    clock = SuspendedClock(1_800_000_000.0)
    world = World(safety_age_s=3600, clock=clock)
    namespace = world.client()
    file = _prepared(namespace)
    _suspend(world, clock, 3601)
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        publish(namespace, file)
    assert not namespace.exists("/report") and namespace.check().is_healthy


@pytest.mark.parametrize("write", [
    lambda store, upload: store.put("report", _LARGE),
    lambda store, upload: store.apply([Put("report", _LARGE)]),
    lambda store, upload: store.upload_part("report", upload, 1, _LARGE),
], ids=["put", "apply", "part"])  # fmt: skip
def test_an_object_that_waits_while_its_machine_is_suspended(
    write: Callable[[NamespaceStore, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SuspendedClock(1_800_000_000.0)
    world = World(safety_age_s=3600, clock=clock)
    store = NamespaceStore(world.client())
    upload = store.create_upload("report")
    shipped = BlobWriter.close

    def close_and_suspend(writer: BlobWriter) -> Extent:
        found = shipped(writer)
        _suspend(world, clock, 3601)
        return found

    monkeypatch.setattr(BlobWriter, "close", close_and_suspend)
    with pytest.raises(LeaseLostError, match="have waited for longer than the safety age"):
        write(store, upload)
    store.abort_upload("report", upload)
    assert not store.namespace.exists("/report") and store.namespace.check().is_healthy


def test_a_sweep_renews_its_lock_when_its_machine_goes_on() -> None:
    clock = SuspendedClock(1_800_000_000.0)
    world = World(clock=clock)
    with MaintenanceLock.hold(world.database, world.environment, "sweep") as lock:
        for _ in range(2):
            clock.suspend(500)
            lock.renew_if_due()
        with pytest.raises(ConflictError):
            world.client().sweep()


# --- what is refused and old ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("write", [
    lambda store, upload: store.put("report", _LARGE, Create()),
    lambda store, upload: store.apply([Put("report", _LARGE, Create())]),
    lambda store, upload: store.upload_part("aborted", upload, 1, _LARGE),
], ids=["put", "apply", "part"])  # fmt: skip
def test_a_refused_object_whose_bytes_a_repair_has_given_to_a_file(
    write: Callable[[NamespaceStore, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer must not delete them any more."""
    world = World(safety_age_s=3600)
    store = NamespaceStore(world.client())
    store.put("report", b"1")
    upload = store.create_upload("aborted")
    store.abort_upload("aborted", upload)
    monkeypatch.setattr(NamespaceStore, "_read_upload", lambda store, key, token: Upload("/aborted", 77, 0))
    shipped = BlobWriter.close

    def close_and_wait(writer: BlobWriter) -> Extent:
        found = shipped(writer)
        world.clock.at_s += 3601
        assert [finding.kind.name for finding in world.client().repair().repaired] == ["unowned-blob"]
        return found

    monkeypatch.setattr(BlobWriter, "close", close_and_wait)
    with pytest.raises((PreconditionError, NotFoundError)):
        write(store, upload)
    assert world.client().check().is_healthy
    (entry,) = [one for one in world.client().walk("/lost+found") if not one.is_directory]
    assert world.client().open(entry.path).read() == _LARGE
