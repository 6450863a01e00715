"""Test operations that lock on databases where a second transaction has to wait, or finds no connection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.keys import (
    MOST_ID,
    ROOT_ID,
    ROOT_KEY,
    data_key,
    inode_key,
    lease_key,
    rename_record_key,
    times_key,
    usage_key,
)
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Put
from holdfast.transactions.base import Commit, LockingTransaction, Outcome, Record, ScanPage, SnapshotReader
from holdfast.transactions.memory import MemoryBackend
from tests.database_servers import NewUrl
from tests.databases import needs_postgres
from tests.namespace_world import World


class _OneAtATime:
    """A database that refuses every call from outside while a transaction holds locks."""

    def __init__(self) -> None:
        self._inner = MemoryBackend()
        self._is_locked = False

    def _free(self) -> MemoryBackend:
        assert not self._is_locked, "a call while a transaction holds locks"
        return self._inner

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._free().get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._free().scan(start, end, limit, guards)

    def commit(self, commit: Commit) -> Outcome:
        return self._free().commit(commit)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._free().commit_group(commits)

    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        return self._free().snapshot()

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with self._free().begin_locking_transaction() as transaction:
            self._is_locked = True
            try:
                yield transaction
            finally:
                self._is_locked = False

    def make_durable(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def test_nothing_else_reaches_the_database_while_locks_are_held() -> None:
    """A read in the middle would wait for the lock of its own operation."""
    namespace = World(database=_OneAtATime()).client(locks=True)
    for number in range(3):
        assert namespace.mkdirs(f"/deep{number}/a/b")
    with namespace.create("/deep0/file") as file:
        file.write(b"1")
    namespace.rename("/deep0/file", "/deep1/file")
    namespace.set_quota("/deep1", names=10)
    namespace.set_quota("/", names=10_000)
    assert namespace.delete("/deep1", recursive=True)
    namespace.collect()
    assert namespace.content_summary("/").directories == 1 + 3 * 3 - 3


def test_only_directories_above_the_parents_of_all_paths_have_a_shared_lock() -> None:
    """Their other users go on; records that two operations may both write are not read by both before they do."""
    locked: dict[bool, set[bytes]] = {False: set(), True: set()}

    class Recorded(_OneAtATime):
        @contextmanager
        def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
            with super().begin_locking_transaction() as transaction:
                read = transaction.read

                def record(keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
                    locked[exclusive].update(keys)
                    return read(keys, exclusive=exclusive)

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(transaction, "read", record)
                    yield transaction

    namespace = World(database=Recorded()).client(locks=True)
    for path in ("/a/b/f", "/x/y/g"):
        namespace.write_file(path, b"1")
    for found in locked.values():
        found.clear()
    namespace.rename("/a/b/f", "/x/y/g", overwrite=True)
    assert locked[False] == {ROOT_KEY, inode_key(ROOT_ID, b"a"), inode_key(ROOT_ID, b"x")}
    assert not locked[False] & locked[True]
    parents = {key for key in locked[True] if key.endswith((b"b", b"y"))}
    assert len(parents) == 2


def test_what_a_step_leaves_to_be_written_waits_until_the_locks_are_free() -> None:
    """The times of directories are due once a second. On SQLite, each writer would have waited a minute for itself."""
    world = World(database=_OneAtATime())
    namespace = world.client(locks=True)
    store = NamespaceStore(namespace)
    for number in range(3):
        world.clock.at_s += 2
        store.apply([Put(f"a/{number}", b"1"), Put(f"b/{number}", b"1")])
        assert namespace.status("/a").mtime_ms == int(world.clock.at_s * 1000)
    assert set(world.records(b"t")), "the times are written"


def _client(url: str, folder: Path) -> Namespace:
    init_namespace(Configuration(name="ns", data=f"file://{folder}", superuser="super"), url, register=False)
    namespace = open_namespace(url, user="super", groups=())
    namespace.operations.tries_without_locks = 0
    return namespace


def test_one_writer(tmp_path: Path) -> None:
    with _client(f"sqlite://{tmp_path}/names.db", tmp_path) as namespace:
        assert namespace.mkdirs("/a/b")
        assert namespace.exists("/a/b")


@needs_postgres
def test_one_connection(new_postgres_url: NewUrl, tmp_path: Path) -> None:
    with _client(f"{new_postgres_url()}?connections=1", tmp_path) as namespace:
        assert namespace.mkdirs("/a/b")
        assert namespace.exists("/a/b")


def test_what_is_locked_after_an_inode_sorts_behind_it() -> None:
    """Defect: the bytes of small files sorted before inodes, and those who lock met deadlocks with those who do not."""
    last = inode_key(MOST_ID, b"\xff" * 255)
    assert last < min(lease_key(0), data_key(""), usage_key(0, b"n"), times_key(0), rename_record_key(0))
