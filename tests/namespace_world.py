"""Make namespaces in memory, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import create_namespace
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import ObjectStore
from holdfast.stores.memory import MemoryStore
from holdfast.transactions.base import (
    Backend,
    Commit,
    LockingTransaction,
    Outcome,
    Record,
    ScanPage,
    SnapshotReader,
)
from holdfast.transactions.memory import MemoryBackend
from tests.clocks import CountingIds, StillClock

__all__ = ["SUPERUSER", "HookedDatabase", "World", "all_records", "lose_a_reply"]

SUPERUSER = "hdfs"


@dataclass
class World:
    """One namespace in memory; each client has hints and ids of its own, like a process of its own.

    Attributes:
        clock: stands still until the test sets it.
        inline_bytes: files up to this size are records of the database.
    """

    superuser: str = SUPERUSER
    permissions: bool = True
    inline_bytes: int = 4
    safety_age_s: int = 3600
    clock: StillClock = field(default_factory=lambda: StillClock(1_800_000_000.0))
    ids: CountingIds = field(default_factory=CountingIds)
    database: Backend = None  # type: ignore[assignment]  # set below
    store: ObjectStore = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        self.database = self.database or MemoryBackend(self.ids)
        self.store = self.store or MemoryStore(clock=self.clock, ids=self.ids)
        self.configuration = Configuration(
            name="world",
            data="memory://world",
            superuser=self.superuser,
            permissions=self.permissions,
            inline_bytes=self.inline_bytes,
            safety_age_s=self.safety_age_s,
        )
        create_namespace(self.database, self.configuration, int(self.clock.now_s() * 1000))
        self.environment = Environment(clock=self.clock, ids=self.ids, runner=SerialRunner())
        self.blobs = BlobStore(self.store, "data/", self.ids)

    def client(
        self,
        user: str = SUPERUSER,
        groups: Sequence[str] = (),
        *,
        database: Backend | None = None,
        blobs: BlobStore | None = None,
        locks: bool = False,
    ) -> Namespace:
        """Open the namespace; with `locks`, operations lock what they read, as they do after many conflicts."""
        namespace = Namespace(
            database or self.database,
            blobs or self.blobs,
            self.configuration,
            self.environment,
            user=user,
            groups=groups,
        )
        if locks:
            namespace.operations.tries_without_locks = 0
        return namespace

    def records(self, kind: bytes) -> dict[bytes, Record]:
        """Return the records of a kind by key."""
        return {key: record for key, record in all_records(self.database).items() if key[:1] == kind}


def all_records(database: Backend) -> dict[bytes, Record]:
    """Return all records."""
    return dict(database.scan(b"\0", b"\xff", 1_000_000).records)


@dataclass
class HookedDatabase(Backend):
    """A database that calls a function of the test before each call: to let another client go first, or to record.

    Attributes:
        before: called with the name of the call and its first argument. What it does itself calls no hook.
        has_snapshots: False lets snapshots show the present state, to show that a test notices.
    """

    inner: Backend
    before: Callable[[str, object], None]
    has_snapshots: bool = True
    _is_inside: bool = False

    def _hook(self, call: str, argument: object = None) -> None:
        if self._is_inside:
            return
        self._is_inside = True
        try:
            self.before(call, argument)
        finally:
            self._is_inside = False

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self._hook("get_many", keys)
        return self.inner.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._hook("scan", start)
        return self.inner.scan(start, end, limit, guards)

    def commit(self, commit: Commit) -> Outcome:
        self._hook("commit", commit)
        return self.inner.commit(commit)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._hook("commit_group", commits)
        return self.inner.commit_group(commits)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        self._hook("snapshot")
        with self.inner.snapshot() as reader:
            yield _HookedReader(reader if self.has_snapshots else self.inner, self)

    def begin_locking_transaction(self) -> AbstractContextManager[LockingTransaction]:
        return self.inner.begin_locking_transaction()

    def make_durable(self) -> None:
        self._hook("make_durable")
        self.inner.make_durable()

    def close(self) -> None:
        self.inner.close()


@dataclass
class _HookedReader:
    """A snapshot whose reads call the hook as well."""

    inner: SnapshotReader
    database: HookedDatabase

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.database._hook("snapshot.get_many", keys)
        return self.inner.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self.database._hook("snapshot.scan", start)
        return self.inner.scan(start, end, limit, guards)


def lose_a_reply(world: World, then_away: int) -> HookedDatabase:
    """Return a database that takes the first commit, loses the reply, and then is away for a number of calls."""
    left: list[int] = []

    def fail(call: str, argument: object) -> None:
        if not left and call == "commit":
            assert isinstance(argument, Commit)
            left.append(then_away)
            world.database.commit(argument)
            raise OutcomeUnknownError("the connection was lost: read before you repeat")
        if left and left[0]:
            left[0] -= 1
            raise UnavailableError("the database is away: repeat later")

    return HookedDatabase(world.database, fail)
