"""Define the actors of a namespace world: clients and background processes that use the shipped `Namespace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from holdfast.errors import ConflictError, OutcomeUnknownError, TransactionConflictError, UnavailableError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import Configuration
from holdfast.namespace.maintenance import LeaderElection
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast.stores.base import Capabilities
from holdfast_checker.framework.subject import VerdictCache
from holdfast_checker.histories.history import HISTORY, Outcome, record_operation
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.namespace.calls import ANSWERS, PUBLISH, NamespaceCallExecutor, PendingUpload
from holdfast_checker.namespace.handles import ChangeAwaitingClock, LockingNamespaceHandle, NamespaceHandle
from holdfast_checker.namespace.scenes import NamespaceScene
from holdfast_checker.simulated.database import RecordMap
from holdfast_checker.simulated.server import CLOCK
from holdfast_checker.simulated.store_handle import SimulatedStore

BLOBS = "blobs"
"""The name of the simulated object store that holds the blobs (bytes of files)."""

COLLECTS = "collect"
"""The name of a garbage collector's operation in the recorded history; it never ends."""

Script: TypeAlias = Sequence[tuple[Any, ...]]
"""A sequence of calls on the namespace: each is the name of an operation of `model`, and its arguments."""


@dataclass(frozen=True, kw_only=True)
class NamespaceSetting(VerdictCache):
    """The initial state and configuration that all actors of a namespace world share.

    Attributes:
        start, blobs: the records of the database, and the blobs in the object store, at the start.
        uploads: the uploads that are not completed at the start, by name.
        start_s: the time at the start, seconds since the epoch.
    """

    scene: NamespaceScene
    start: RecordMap
    start_s: float
    configuration: Configuration
    capabilities: Capabilities
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    uploads: Mapping[str, PendingUpload] = field(default_factory=dict)

    def open(self, port: Port, knows: Sequence[str]) -> tuple[Namespace, ChangeAwaitingClock, NamespaceHandle]:
        """Open the namespace for a process that has looked up the paths `knows` before the history begins.

        Returns:
            The namespace, its clock, and its handle on the database.
        """
        handle = LockingNamespaceHandle if self.scene.locks else NamespaceHandle
        database = handle(port, self.start)
        clock = ChangeAwaitingClock(port, database, self.start_s, ticks=self.scene.later)
        environment = Environment(clock=clock, ids=port, runner=SerialRunner(), chance=SeededRandom(1))
        blobs = BlobStore(SimulatedStore(port, BLOBS, self.capabilities), "", port)
        user = port.name if port.name in self.scene.users else self.configuration.superuser
        namespace = Namespace(database, blobs, self.configuration, environment, user=user)
        if self.scene.locks:
            namespace.operations.tries_without_locks = 0
        for path in knows:
            namespace.find(path)
        database.switch_to_simulated_database()
        return namespace, clock, database


def run_client(setting: NamespaceSetting, script: Script, knows: Sequence[str], port: Port) -> None:
    """Run a client process: make the calls of a script, and record them; stop after a call with unknown outcome."""
    namespace, clock, _database = setting.open(port, knows)
    calls = NamespaceCallExecutor(namespace, clock, setting.uploads)
    unpublished = ""  # what a sync could not publish, the next call publishes
    for name, *args in script:
        if name in PUBLISH:
            args[1] = unpublished + args[1]
        try:
            record_operation(port, name, tuple(args), partial(calls.execute_by_name, name, *args), answers=ANSWERS)
            unpublished = ""
        except OutcomeUnknownError:
            return
        except (*ANSWERS, TransactionConflictError, UnavailableError):
            unpublished = args[1] if name in PUBLISH[:2] else unpublished


def run_garbage_collector(setting: NamespaceSetting, rounds: int, elects: bool, port: Port) -> None:
    """Run a garbage collector process for some rounds, while it is the elected leader.

    Args:
        elects: whether it takes part in the election; if not, it always acts as the leader.
    """
    namespace, clock, database = setting.open(port, ())
    election = LeaderElection(database, clock, port.token())
    port.call(Call(HISTORY, "invoke", (port.name, COLLECTS, ())))
    for _ in range(rounds):
        try:
            if not elects or election.try_to_lead():
                namespace.collect()
        except (UnavailableError, OutcomeUnknownError):
            continue


def run_sweeper(setting: NamespaceSetting, port: Port) -> None:
    """Run a sweeper process once: it records blobs that no file refers to as garbage."""
    namespace, _clock, _database = setting.open(port, ())
    try:
        namespace.sweep()
    except (ConflictError, UnavailableError, OutcomeUnknownError):
        return


def let_leases_expire(port: Port) -> None:
    """Advance the simulated clock by so much that every lease expires: the program of an actor."""
    port.call(Call(HISTORY, "invoke", (port.name, "expire_leases", ())))
    port.call(Call(CLOCK, "pass"))
    port.call(Call(HISTORY, "end", (port.name, Outcome.OK, None)))
