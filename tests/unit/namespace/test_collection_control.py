"""A collection reports each step and can be stopped; the leader's term can be read; garbage goes in large requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.collector import CollectionResult
from holdfast.namespace.configuration import create_namespace
from holdfast.namespace.maintenance import LeaderElection, LockTerm, current_leader
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.memory import MemoryBackend
from tests.clocks import StillClock


class _CountingStore(MemoryStore):
    """Counts requests that delete."""

    def __init__(self) -> None:
        super().__init__()
        self.deletions: list[int] = []

    def delete(self, key: str) -> None:
        self.deletions.append(1)
        super().delete(key)

    def delete_many(self, keys: Sequence[str]) -> None:
        self.deletions.append(len(keys))
        for key in keys:
            super().delete(key)


def _namespace(store: MemoryStore, clock: StillClock) -> Namespace:
    environment = Environment(clock=clock, runner=SerialRunner())
    database = MemoryBackend(environment.ids)
    configuration = Configuration(name="ns", data="memory://x", superuser="root", inline_bytes=0, safety_age_s=60)
    create_namespace(database, configuration, 0)
    return Namespace(database, BlobStore(store, "", environment.ids), configuration, environment, user="root")


def test_a_collection_stops_when_it_is_told_to() -> None:
    namespace = _namespace(MemoryStore(), StillClock(1000.0))
    for number in range(5):
        namespace.mkdirs(f"/d{number}")
        namespace.delete(f"/d{number}", recursive=True)
    seen: list[int] = []

    def twice(done: CollectionResult) -> bool:
        seen.append(done.trees)
        return len(seen) < 2

    namespace.collect(after_step=twice)
    assert len(seen) == 2 and seen[-1] < 5
    assert namespace.collect().trees == 5 - seen[-1]


def test_garbage_is_deleted_many_at_a_time() -> None:
    store, clock = _CountingStore(), StillClock(1000.0)
    namespace = _namespace(store, clock)
    for number in range(7):
        namespace.write_file(f"/f{number}", b"bytes")
        namespace.delete(f"/f{number}")
    clock.at_s += 61
    assert namespace.collect().blobs == 7
    assert store.deletions == [1, 7], "the object that tells the store's time; the blobs"
    assert list(store.list_page("").objects) == []


def test_the_leader_can_be_read() -> None:
    clock = StillClock(1000.0)
    database = MemoryBackend(Environment().ids)
    assert current_leader(database, clock) is None
    election = LeaderElection(database, clock, "me", term_s=30)
    assert election.try_to_lead()
    assert current_leader(database, clock) == LockTerm("me", 1030.0)
    clock.at_s += 31
    assert current_leader(database, clock) is None
    assert election.try_to_lead()
    election.resign()
    assert current_leader(database, clock) is None


def test_quotas_are_read_without_counting(tmp_path: Path) -> None:
    namespace = _namespace(MemoryStore(), StillClock(1000.0))
    namespace.mkdirs("/a/b")
    found = namespace.quota_usage("/a")
    assert (found.names_quota, found.space_quota, found.names, found.space) == (None, None, 0, 0)
    namespace.set_quota("/a", names=10)
    namespace.write_file("/a/b/f", b"12345")
    found = namespace.quota_usage("/a")
    assert (found.names_quota, found.space_quota, found.names, found.space) == (10, None, 3, 5)
