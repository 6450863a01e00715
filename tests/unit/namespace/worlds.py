"""Make namespaces for tests: in memory, with a clock that stands still, and with several users of one database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import create_namespace
from holdfast.namespace.operation import Mode
from holdfast.runtime import Environment, SeededRandom
from holdfast.runtime.simulated import CountingIds, StillClock
from holdfast.stores.base import ObjectStore
from holdfast.stores.memory.store import MemoryStore
from holdfast.transactions.base import Database, Record
from holdfast.transactions.memory.store import MemoryTransactionStore

__all__ = ["World", "all_records"]

CONFIGURATION = Configuration(name="ns", data="memory://blobs", superuser="super")


@dataclass
class World:
    """A database and an object store, with as many clients as wanted.

    Attributes:
        database: with one namespace, which is created unless it exists.
        store: of the blobs.
        clock: set `at_s` to let time pass.
    """

    database: Database = field(default_factory=MemoryTransactionStore)
    store: ObjectStore = field(default_factory=MemoryStore)
    configuration: Configuration = CONFIGURATION
    clock: StillClock = field(default_factory=lambda: StillClock(1_800_000_000.0))
    ids: CountingIds = field(default_factory=CountingIds)
    mode: Mode = "optimistic"

    def __post_init__(self) -> None:
        self.environment = Environment(clock=self.clock, ids=self.ids, chance=SeededRandom(1))
        create_namespace(self.database, self.configuration, int(self.clock.at_s * 1000))

    def client(self, user: str = "super", groups: Sequence[str] = (), *, mode: Mode | None = None) -> Namespace:
        """Return a new client of a user."""
        return Namespace(
            self.database,
            BlobStore(self.store, "", self.ids),
            self.configuration,
            self.environment,
            user=user,
            groups=groups,
            mode=mode or self.mode,
        )

    def configured(self, **changes: object) -> World:
        """Return a new, empty world with another configuration."""
        return World(configuration=replace(self.configuration, **changes), mode=self.mode)  # type: ignore[arg-type]  # by name

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.at_s += seconds


def all_records(database: Database) -> dict[bytes, Record]:
    """Return every record."""
    with database.snapshot() as snapshot:
        page = snapshot.scan(b"\0", b"\xff" * 1024, 1_000_000)
    assert not page.more
    return dict(page.records)
