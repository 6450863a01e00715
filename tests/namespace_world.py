"""Make namespaces in memory, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import create_namespace
from holdfast.runtime import Environment, SerialRunner
from holdfast.runtime.simulated import CountingIds, StillClock
from holdfast.stores.base import ObjectStore
from holdfast.stores.memory.store import MemoryStore
from holdfast.transactions.base import Database, Record
from holdfast.transactions.memory.store import MemoryTransactionStore

__all__ = ["SUPERUSER", "World", "all_records"]

SUPERUSER = "hdfs"


@dataclass
class World:
    """One namespace in memory; each client has hints and ids of its own, like a process of its own.

    Attributes:
        clock: stands still until the test sets it.
        inline_bytes: files up to this size are records of the database.
    """

    inline_bytes: int = 4
    safety_age_s: int = 3600
    clock: StillClock = field(default_factory=lambda: StillClock(1_800_000_000.0))
    ids: CountingIds = field(default_factory=CountingIds)
    database: Database = None  # type: ignore[assignment]  # set below
    store: ObjectStore = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        self.database = self.database or MemoryTransactionStore(self.ids)
        self.store = self.store or MemoryStore(clock=self.clock, ids=self.ids)
        self.configuration = Configuration(
            name="world",
            data="memory://world",
            superuser=SUPERUSER,
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
        database: Database | None = None,
        blobs: BlobStore | None = None,
    ) -> Namespace:
        """Open the namespace."""
        return Namespace(
            database or self.database,
            blobs or self.blobs,
            self.configuration,
            self.environment,
            user=user,
            groups=groups,
        )

    def records(self, kind: bytes) -> dict[bytes, Record]:
        """Return the records of a kind by key."""
        return {key: record for key, record in all_records(self.database).items() if key[:1] == kind}


def all_records(database: Database) -> dict[bytes, Record]:
    """Return all records."""
    return dict(database.scan(b"\0", b"\xff", 1_000_000).records)
