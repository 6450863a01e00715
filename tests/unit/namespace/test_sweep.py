"""A sweep deletes what belongs to nobody, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ConflictError, CorruptDataError, FencedError
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.blobs import frame_blob, stored_size
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.fsck import survey
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.keys import DAMAGED, MAINTENANCE, inode_key, times_key, usage_key
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.other_records import HARD_LIMIT_MS
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import Commit
from tests.clocks import CountingIds, StillClock
from tests.namespace_world import HookedDatabase, World

_LARGE = b"0123456789"
_LATER_S = 5 * 3600.0
"""When the collector deletes what a sweep finds now, by two clocks that are up to two hours apart."""


def _unowned(world: World, file_id: int = 77) -> str:
    """Write a blob as a writer does that dies before it publishes it; return its key."""
    name = world.blobs.new_name(file_id)
    world.store.put(world.blobs.key(name), frame_blob(name, _LARGE))
    return world.blobs.key(name)


def _objects(world: World) -> set[str]:
    return {info.key for info in iter_objects(world.store, "")}


def _sweep(world: World, *clocks: StillClock) -> None:
    """Sweep, and collect what the sweep has found, a safety age later."""
    namespace = world.client()
    namespace.sweep()
    for clock in (world.clock, *clocks):
        clock.at_s += _LATER_S
    namespace.collect()


def test_an_old_unowned_blob_is_deleted() -> None:
    world = World()
    namespace = world.client()
    key = _unowned(world)
    namespace.write_file("/kept", _LARGE)
    world.clock.at_s += 3601
    swept = namespace.sweep()
    assert (swept.blobs, swept.blob_bytes, swept.records) == (1, stored_size(len(_LARGE)), 0)
    namespace.collect()
    assert key in _objects(world), "a failover may undo the end of a lease, but none of a safety age ago"
    world.clock.at_s += 3601
    namespace.collect()
    assert key not in _objects(world)
    assert namespace.open("/kept").read() == _LARGE
    assert namespace.check().totals == {}


@pytest.mark.parametrize(("safety_age_s", "age_s", "is_deleted"), [
    (3600, 3599, False),
    (3600, 3601, True),
    (0, CLOSING_S - 1, False),
    (0, CLOSING_S + 1, True),
])  # fmt: skip
def test_a_young_blob_is_kept(safety_age_s: int, age_s: int, is_deleted: bool) -> None:
    world = World(safety_age_s=safety_age_s)
    key = _unowned(world)
    world.clock.at_s += age_s
    _sweep(world)
    assert (key not in _objects(world)) is is_deleted


@pytest.mark.parametrize("skew_s", [-7200.0, 7200.0])
def test_the_clock_of_the_store_counts(skew_s: float) -> None:
    """The store dates its objects by its own clock, two hours ahead of ours or behind."""
    ids, clock = CountingIds(), StillClock(1_800_000_000.0 + skew_s)
    world = World(ids=ids, store=MemoryStore(clock=clock, ids=ids))
    key = _unowned(world)
    assert world.client().sweep().blobs == 0
    clock.at_s += 3601
    _sweep(world, clock)
    assert key not in _objects(world)


def test_a_store_without_dates_keeps_all() -> None:
    ids = CountingIds()
    world = World(ids=ids, store=MemoryStore(clock=StillClock(0.0), ids=ids))
    key = _unowned(world)
    world.clock.at_s += 10**6
    _sweep(world)
    assert key in _objects(world)


def test_a_lease_protects_the_blobs_of_its_file_until_somebody_ends_it() -> None:
    world = World()
    namespace = world.client()
    writer = namespace.create_with_lease("/a")
    key = _unowned(world, namespace.status("/a").id)
    world.clock.at_s += 3601 + HARD_LIMIT_MS / 1000
    namespace.sweep()
    assert namespace.check().counts.in_progress == 1
    namespace.collect()
    assert key in _objects(world), "the lease existed at the time of the sweep"
    assert world.records(b"l") == {}, "the collector has closed the file"
    _sweep(world)
    assert key not in _objects(world)
    writer.discard()


def test_blobs_of_deleted_trees_and_garbage_are_left_to_the_collector() -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/d/a", _LARGE)
    namespace.write_file("/b", _LARGE)
    namespace.write_file("/c", _LARGE)
    world.clock.at_s += 3601
    namespace.delete("/d", recursive=True)
    namespace.delete("/b")
    assert namespace.sweep().blobs == 0
    namespace.collect()
    assert len(_objects(world)) == 3, "garbage is young"
    assert namespace.sweep().blobs == 0
    world.clock.at_s += 3601
    namespace.collect()
    assert len(_objects(world)) == 1


def test_foreign_objects_are_left_alone() -> None:
    world = World()
    keys = {world.blobs.key(name) for name in ("notes.txt", "ab/photo", "ab/12-34")}
    for key in keys:
        world.store.put(key, _LARGE)
    world.clock.at_s += 10**6
    _sweep(world)
    assert _objects(world) == keys


def test_stray_records_are_deleted() -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d/e")
    namespace.set_quota("/d", names=10)
    namespace.flush()
    before = world.records(b"t") | world.records(b"u")
    world.database.commit(Commit(adds={times_key(500): 7, usage_key(501, b"n"): 1, usage_key(501, b"s"): 1}))
    assert namespace.sweep().records == 3
    assert world.records(b"t") | world.records(b"u") == before


def test_nothing_is_swept_while_a_record_is_damaged() -> None:
    """It may be the inode that refers to the blob."""
    world = World()
    namespace = world.client()
    key = _unowned(world)
    world.database.commit(Commit(puts={inode_key(1, b"damaged"): b"?"}))
    world.clock.at_s += 3601
    with pytest.raises(CorruptDataError):
        namespace.sweep()
    assert key in _objects(world)
    assert world.records(b"g") == {}
    assert MAINTENANCE not in world.records(b"x"), "the lock is released"


def test_one_process_at_a_time() -> None:
    world = World()
    namespace = world.client()
    with MaintenanceLock.hold(world.database, world.environment, "repair"):
        for work in (namespace.sweep, namespace.repair):
            with pytest.raises(ConflictError, match="a repair"):
                work()
    assert namespace.sweep().blobs == 0


def test_a_dead_process_does_not_block_the_others_forever() -> None:
    world = World()
    held = MaintenanceLock.hold(world.database, world.environment, "sweep")
    held.__enter__()
    world.clock.at_s += 601
    assert world.client().sweep().blobs == 0


def test_a_sweep_that_has_lost_its_lock_changes_nothing() -> None:
    """A repair has taken over, and has given the blob to a file."""
    world = World()
    key = _unowned(world)
    world.clock.at_s += 3601
    namespace = world.client()

    def take_over(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and any(one[:1] == b"g" for one in argument.puts):
            world.clock.at_s += 601
            assert [finding.kind.name for finding in namespace.repair().repaired] == ["unowned-blob"]

    with pytest.raises(FencedError):
        world.client(database=HookedDatabase(world.database, take_over)).sweep()
    world.clock.at_s += 3601
    namespace.collect()
    assert key in _objects(world)
    (entry,) = [entry for entry in namespace.walk("/lost+found") if not entry.is_directory]
    assert namespace.open(entry.path).read() == _LARGE


def test_work_whose_lock_another_process_holds_now_is_not_repeated() -> None:
    world = World()
    held = MaintenanceLock.hold(world.database, world.environment, "sweep")
    lock = held.__enter__()
    world.clock.at_s += 601
    with MaintenanceLock.hold(world.database, world.environment, "repair"), pytest.raises(FencedError):
        lock.rewrite_root()


def test_long_work_renews_its_lock() -> None:
    world = World()
    with MaintenanceLock.hold(world.database, world.environment, "sweep") as lock:
        for _ in range(3):
            world.clock.at_s += 500
            lock.renew_if_due()
        with pytest.raises(ConflictError):
            world.client().sweep()


@pytest.mark.parametrize("has_snapshots", [True, False])
def test_a_file_that_is_renamed_during_the_pass_keeps_its_blob(
    has_snapshots: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file moves from a directory that was not read yet to one that was. Without a snapshot, it would be lost."""
    monkeypatch.setattr(survey, "_PAGE", 1)
    world = World()
    namespace = world.client()
    namespace.write_file("/first/x", b"")
    namespace.write_file("/last/file", _LARGE)
    world.clock.at_s += 3601
    after_first = inode_key(namespace.status("/first").id, b"x")

    def rename(call: str, argument: object) -> None:
        if call == "snapshot.scan" and isinstance(argument, bytes) and argument > after_first:
            if namespace.exists("/last/file"):
                namespace.rename("/last/file", "/first/file")

    database = HookedDatabase(world.database, rename, has_snapshots=has_snapshots)
    assert world.client(database=database).sweep().blobs == (0 if has_snapshots else 1)
    assert namespace.open("/first/file").read() == _LARGE


def test_blobs_that_a_damaged_record_may_have_named_are_left_to_a_repair() -> None:
    """The record cannot tell which blobs it named, and they were too young for the repair that removed it."""
    world = World()
    namespace = world.client()
    namespace.write_file("/precious", _LARGE)
    key = inode_key(1, b"precious")
    value = world.database.get_many([key])[key].value
    world.database.commit(Commit(puts={key: value[:-1]}))
    world.clock.at_s += 10
    assert [finding.kind.name for finding in namespace.repair().repaired] == ["damaged-record"]
    world.clock.at_s += 5
    orphan = _unowned(world)
    world.clock.at_s += 3601
    assert namespace.sweep().blobs == 1, "younger than the repair: no damaged record named it"
    world.clock.at_s += 3601
    namespace.collect()
    assert orphan not in _objects(world) and len(_objects(world)) == 1
    assert namespace.check().totals != {}, "the blob is still unowned"
    assert [finding.kind.name for finding in namespace.repair().repaired] == ["unowned-blob"]
    world.clock.at_s += 10**6
    orphan = _unowned(world)
    world.clock.at_s += 3601
    assert namespace.sweep().blobs == 1, "the note is gone with the repair that found the blob old"
    namespace.collect()
    kept = [entry.path for entry in namespace.walk("/lost+found") if not entry.is_directory]
    assert _LARGE in [namespace.open(path).read() for path in kept]
    assert namespace.check().totals == {}


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"at": "x"}'])
def test_a_note_about_damage_that_cannot_be_read_counts_for_all_blobs(value: bytes) -> None:
    world = World()
    namespace = world.client()
    key = _unowned(world)
    world.clock.at_s += 3601
    world.database.commit(Commit(puts={DAMAGED: value}))
    assert namespace.sweep().blobs == 0
    namespace.repair()
    assert key in _objects(world)
    world.clock.at_s += 3601
    namespace.repair()
    assert DAMAGED not in world.records(b"x")


# --- blobs that were never finished -----------------------------------------------------------------------------------
def _unfinished(world: World, file_id: int = 77) -> str:
    """Begin a blob as a writer does that dies while it writes; return its key."""
    writer = world.blobs.open_write(file_id)
    writer.write(_LARGE * 1024 * 1024)
    return world.blobs.key(writer.name)


def _uploads(world: World) -> set[str]:
    return {upload.key for upload in iter_uploads(multipart(world.store), "")}


@pytest.mark.parametrize(("age_s", "is_left"), [(3599, True), (3601, False)])
def test_a_blob_that_was_never_finished_is_given_up(age_s: int, is_left: bool) -> None:
    """Otherwise it would stay, and no check would show it."""
    world = World()
    namespace = world.client()
    key = _unfinished(world)
    world.clock.at_s += age_s
    swept = namespace.sweep()
    assert (swept.uploads, swept.blobs) == (0 if is_left else 1, 0)
    assert _uploads(world) == ({key} if is_left else set())


def test_a_sweep_that_has_lost_its_lock_gives_up_no_blob() -> None:
    world = World()
    key = _unfinished(world)
    world.clock.at_s += 3601

    def lose_the_lock(call: str, _argument: object) -> None:
        if call == "snapshot":
            world.database.commit(Commit(deletes=[MAINTENANCE]))

    with pytest.raises(FencedError):
        world.client(database=HookedDatabase(world.database, lose_the_lock)).sweep()
    assert _uploads(world) == {key}


def test_a_writer_with_a_lease_goes_on_with_its_blob() -> None:
    world = World()
    namespace = world.client()
    writer = namespace.create_with_lease("/f")
    writer.write(_LARGE * 1024 * 1024)
    assert len(_uploads(world)) == 1
    world.clock.at_s += HARD_LIMIT_MS
    assert namespace.sweep().uploads == 0
    writer.close()
    assert len(namespace.open("/f").read()) == len(_LARGE) * 1024 * 1024


def test_uploads_of_others_are_left_alone() -> None:
    world = World()
    multipart(world.store).create_upload("data/other")
    multipart(world.store).create_upload(world.blobs.key("other"))
    world.clock.at_s += 10**6
    assert world.client().sweep().uploads == 0
    assert len(_uploads(world)) == 2


def test_hidden_files_of_dead_writers_are_given_up(tmp_path: Path) -> None:
    configuration = Configuration(name="ns", data=str(tmp_path / "data"), superuser="root", safety_age_s=0)
    init_namespace(configuration, f"sqlite://{tmp_path}/n.db", register=False)
    with open_namespace(f"sqlite://{tmp_path}/n.db", user="root") as namespace:
        writer = namespace.blobs.open_write(77)
        writer.write(_LARGE)
        (hidden,) = (path for path in tmp_path.rglob(".holdfast-file-*") if path.is_file())
        assert namespace.sweep().uploads == 0, "the writer may be alive"
        old_s = hidden.stat().st_mtime - CLOSING_S - 60
        os.utime(hidden, (old_s, old_s))
        assert namespace.sweep().uploads == 1
        assert not hidden.exists() and not hidden.parent.exists()
        with pytest.raises(LeaseLostError, match="write the file again"):
            writer.close()


@pytest.fixture
def slow(tmp_path: Path) -> World:
    """A namespace whose blobs are in a directory; its clock shows the time of the machine, until the test sets it."""
    clock = StillClock(time.time())
    return World(clock=clock, store=LocalStore(str(tmp_path), clock=clock))


def _age(directory: Path, by_s: float) -> None:
    """Make the hidden files in a directory older."""
    for path in directory.rglob(".holdfast-file-*"):
        at_s = path.stat().st_mtime - by_s
        os.utime(path, (at_s, at_s))


def test_a_writer_that_writes_little_is_alive(slow: World, tmp_path: Path) -> None:
    """What it writes is buffered, and gives the hidden file no date by itself."""
    with slow.client().create("/slow") as writer:
        writer.write(_LARGE)
        for _ in range(3):
            _age(tmp_path, 2000.0)
            slow.clock.at_s += 2000
            writer.write(_LARGE)
            _age(tmp_path, 2000.0)
            assert slow.client().sweep().uploads == 0
    assert slow.client().open("/slow").read() == 4 * _LARGE


@pytest.mark.parametrize(
    "end", [lambda writer: writer.close(), lambda writer: writer.prepare()], ids=["close", "prepare"]
)
def test_a_writer_whose_hidden_file_was_swept_is_told_so(
    slow: World, tmp_path: Path, end: Callable[[FileWriter], object]
) -> None:
    writer = slow.client().create("/slow")
    writer.write(_LARGE)
    _age(tmp_path, 3700.0)
    assert slow.client().sweep().uploads == 1
    slow.clock.at_s += 3700
    writer.write(_LARGE)
    with pytest.raises(LeaseLostError, match="write the file again"):
        end(writer)
    writer.discard()
    assert not slow.client().exists("/slow") and slow.client().check().is_healthy


def test_a_writer_whose_upload_was_swept_is_told_so() -> None:
    world = World()
    writer = world.client().create("/slow")
    writer.write(_LARGE * 1024 * 1024)
    world.clock.at_s += 3601
    assert world.client().sweep().uploads == 1
    with pytest.raises(LeaseLostError, match="write the file again"):
        writer.write(_LARGE * 1024 * 1024)
    writer.discard()
    assert not world.client().exists("/slow") and world.client().check().is_healthy
