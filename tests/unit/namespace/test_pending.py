"""What waits is counted and listed: files that are being written, and what the collector has yet to remove."""

from __future__ import annotations

from holdfast.namespace.keys import lease_key
from holdfast.namespace.pending import OpenFile, count_pending_work, list_open_files
from holdfast.transactions.base import Commit
from tests.namespace_world import World


def test_pending_work_is_counted_by_kind() -> None:
    world = World()
    namespace = world.client()
    nothing = {"leases": 0, "deleted_trees": 0, "garbage_blobs": 0, "garbage_blobs_due": 0}
    assert count_pending_work(namespace, world.clock) == nothing
    namespace.write_file("/t/large", b"more than is inline")
    namespace.delete("/t", recursive=True)
    namespace.create_with_lease("/written")
    assert count_pending_work(namespace, world.clock) == {**nothing, "leases": 1, "deleted_trees": 1}
    namespace.collect()
    assert count_pending_work(namespace, world.clock) == {**nothing, "leases": 1, "garbage_blobs": 1}
    world.clock.at_s += world.safety_age_s - 1
    assert count_pending_work(namespace, world.clock)["garbage_blobs_due"] == 0
    world.clock.at_s += 2
    assert count_pending_work(namespace, world.clock)["garbage_blobs_due"] == 1


def test_a_count_stops_soon_after_its_limit() -> None:
    world = World()
    namespace = world.client()
    names = [lease_key(number) for number in range(1, 2500)]
    namespace.database.commit(Commit(puts=dict.fromkeys(names, b"?")))
    assert count_pending_work(namespace, world.clock)["leases"] == 2499
    assert count_pending_work(namespace, world.clock, most=10)["leases"] == 1000


def test_open_files_have_their_present_paths() -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/old/place")
    with namespace.create_with_lease("/old/place/log") as file:
        file.write(b"12345")
        file.sync()
        namespace.set_owner("/old/place/log", "ann")
        namespace.rename("/old", "/new")
        (found,) = list_open_files(namespace.database, world.clock, 10)
        assert found == OpenFile(
            path="/new/place/log",
            owner="ann",
            size=5,
            holder=found.holder,
            renewed_ms=int(world.clock.at_s * 1000),
            is_silent=False,
        )
        world.clock.at_s += 61
        assert list_open_files(namespace.database, world.clock, 10)[0].is_silent
    assert list_open_files(namespace.database, world.clock, 10) == []


def test_open_files_are_shown_beside_damaged_records_and_up_to_a_limit() -> None:
    world = World()
    namespace = world.client()
    namespace.database.commit(Commit(puts={lease_key(1): b"damaged"}))
    for number in range(3):
        namespace.create_with_lease(f"/{number}")
    assert {one.path for one in list_open_files(namespace.database, world.clock, 10)} == {"/0", "/1", "/2"}
    assert len(list_open_files(namespace.database, world.clock, 2)) == 1
