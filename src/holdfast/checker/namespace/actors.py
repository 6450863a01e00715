"""Define the actors of a world: each makes calls on a real `Namespace`, and records what it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from holdfast.checker.histories.history import HISTORY, Outcome, record
from holdfast.checker.kernel.calls import Call
from holdfast.checker.kernel.process import Port
from holdfast.checker.namespace.handles import CLOCK, SimulatedHandle, WorldClock
from holdfast.checker.namespace.locking import LockingHandle
from holdfast.checker.simulated_store.handle import SimulatedStore
from holdfast.checker.transactions.database import DATABASE
from holdfast.errors import (
    ConflictError,
    NotFoundError,
    OutcomeUnknownError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import Configuration
from holdfast.namespace.errors import (
    BeingWrittenError,
    DirectoryInTheWayError,
    DirectoryNotEmptyError,
    LeaseLostError,
    NamesQuotaExceededError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
    PathNotFoundError,
    PermissionDeniedError,
    RenameError,
)
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.leader import Election
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operation import Mode
from holdfast.runtime import Clock, Environment, SeededRandom, SerialRunner
from holdfast.stores.base import Capabilities, Part, Put
from holdfast.transactions.memory.store import Records

__all__ = [
    "BLOBS",
    "COLLECTS",
    "Calls",
    "Pending",
    "Script",
    "Setting",
    "client",
    "collector",
    "network",
    "passing_time",
    "sweeper",
]

BLOBS = "blobs"
"""The name of the object store."""

COLLECTS = "collect"
"""The operation of a collector in the history; it never ends."""

Script: TypeAlias = Sequence[tuple[Any, ...]]
"""Calls, one after the other: each its name and its arguments, as the model has them (`model`)."""

_PUBLISH = ("sync", "sync_surely", "close", "close_surely")
_ANSWERS = (
    BeingWrittenError,
    DirectoryInTheWayError,
    DirectoryNotEmptyError,
    LeaseLostError,
    NamesQuotaExceededError,
    NotFoundError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
    PathNotFoundError,
    PermissionDeniedError,
    RenameError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A pending upload, as those know it who write its parts, and those who end it."""

    key: str
    upload_id: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the actors of a world share.

    Attributes:
        start, blobs: the records, and the bytes in the object store, at the start.
        uploads: what is uploaded and not completed at the start, by name.
        users: the clients that are ordinary users, with their own names; all others are the superuser.
        mode: how operations are kept apart.
        leaves_blobs: whether a blob may be left that no file refers to: of a writer that dies.
        start_s: the time at the start, seconds since the epoch.
        ticks: whether the time can change.
        reserves: whether the reservation of ids is part of the history.
    """

    start: Records
    start_s: float
    configuration: Configuration
    capabilities: Capabilities
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    uploads: Mapping[str, Pending] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    mode: Mode = "optimistic"
    leaves_blobs: bool = False
    ticks: bool = False
    reserves: bool = False

    def open(self, port: Port, knows: Sequence[str]) -> tuple[Namespace, WorldClock, SimulatedHandle]:
        """Open the namespace as a process does that has looked at some paths before the history began."""
        handle = SimulatedHandle if self.mode == "optimistic" else LockingHandle
        database = handle(port, self.start, reserves=self.reserves)
        clock = WorldClock(port, database, self.start_s, ticks=self.ticks)
        environment = Environment(clock=clock, ids=port, runner=SerialRunner(), chance=SeededRandom(1))
        blobs = BlobStore(SimulatedStore(port, BLOBS, self.capabilities), "", port)
        user = port.name if port.name in self.users else self.configuration.superuser
        namespace = Namespace(database, blobs, self.configuration, environment, user=user, mode=self.mode)
        for path in knows:
            namespace.find(path)
        database.begin()
        return namespace, clock, database


class Calls:
    """Makes the calls that the model knows, on a namespace."""

    def __init__(self, namespace: Namespace, clock: Clock, uploads: Mapping[str, Pending]) -> None:
        self.uploads = dict(uploads)
        self._namespace = namespace
        self._clock = clock
        self._store = NamespaceStore(namespace)
        self._writers: dict[str, FileWriter] = {}
        self._written: dict[str, str] = {}  # what is not published yet

    def make(self, name: str, *args: object) -> object:
        """Make one call, and return its answer."""
        act: Callable[..., object] = getattr(self, f"_{name}")
        return act(*args)

    # --- directories, names -------------------------------------------------------------------------------------------
    def _mkdirs(self, path: str) -> bool:
        return self._namespace.mkdirs(path)

    def _delete(self, path: str) -> bool:
        return self._namespace.delete(path)

    def _delete_tree(self, path: str) -> bool:
        return self._namespace.delete(path, recursive=True)

    def _rename(self, source: str, target: str) -> None:
        self._namespace.rename(source, target)

    def _replace(self, source: str, target: str) -> None:
        self._namespace.rename(source, target, overwrite=True)

    def _list(self, path: str) -> tuple[str, ...]:
        return tuple(one.path for one in self._namespace.list(path))

    def _walk(self, path: str) -> tuple[str, ...]:
        return tuple(sorted((one.path for one in self._namespace.walk(path)), key=lambda one: one.split("/")))

    def _set_mode(self, path: str, mode: int) -> None:
        self._namespace.set_permission(path, mode)

    def _set_owner(self, path: str, owner: str) -> None:
        self._namespace.set_owner(path, owner)

    def _set_quota(self, path: str, names: int) -> None:
        self._namespace.set_quota(path, names=names or None)

    # --- whole files --------------------------------------------------------------------------------------------------
    def _create(self, path: str, mark: str) -> None:
        self._namespace.write_file(path, mark.encode())

    def _overwrite(self, path: str, mark: str) -> None:
        self._namespace.write_file(path, mark.encode(), overwrite=True)

    def _read(self, path: str) -> str:
        return self._namespace.open(path).read().decode()

    def _concat(self, target: str, *sources: str) -> None:
        self._namespace.concat(target, sources)

    def _publish(self, *files: tuple[str, str]) -> None:
        with ExitStack() as stack:
            writers = []
            for path, mark in files:
                writers.append(self._namespace.create(path, check=False))
                stack.callback(writers[-1].discard)  # what is published is not discarded
                writers[-1].write(mark.encode())
                writers[-1].prepare()
            self._namespace.publish_many(writers)

    def _put_all(self, *files: tuple[str, str]) -> None:
        self._store.apply([Put(path[1:], mark.encode()) for path, mark in files])

    def _start_upload(self, path: str, name: str) -> None:
        self.uploads[name] = Pending(key=path[1:], upload_id=self._store.create_upload(path[1:]))

    def _upload(self, name: str, mark: str) -> None:
        pending = self._pending(name)
        part = self._store.upload_part(pending.key, pending.upload_id, len(pending.parts) + 1, mark.encode())
        self.uploads[name] = replace(pending, parts=(*pending.parts, part))

    def _complete(self, name: str, content: str) -> None:
        """Complete an upload with the parts that this process knows.

        Args:
            content: theirs, for the model.
        """
        pending = self._pending(name)
        self._store.complete_upload(pending.key, pending.upload_id, pending.parts)

    def _abort(self, name: str) -> None:
        pending = self._pending(name)
        self._store.abort_upload(pending.key, pending.upload_id)

    def _pending(self, name: str) -> Pending:
        if name not in self.uploads:
            raise NotFoundError("the upload was not started: there is nothing to end", upload=name)
        return self.uploads[name]

    # --- files under a lease ------------------------------------------------------------------------------------------
    def _create_with_lease(self, path: str, writer: str) -> None:
        self._writers[writer] = self._namespace.create_with_lease(path)

    def _append(self, path: str, writer: str) -> None:
        self._writers[writer] = self._namespace.append(path)

    def _write(self, writer: str) -> None:
        """Let the writer look at the clock, and renew its lease if it is time.

        If the renewal conflicts with a recovery, the next call tells: so there are two.
        """
        if writer in self._writers:
            self._clock.now_s()
            self._writers[writer].write(b"")
            self._writers[writer].write(b"")

    def _sync(self, writer: str, mark: str) -> None:
        self._end(writer, mark, lambda file: file.sync())

    def _close(self, writer: str, mark: str) -> None:
        self._end(writer, mark, lambda file: file.close())

    def _sync_surely(self, writer: str, mark: str) -> None:
        _repeated(lambda: self._sync(writer, mark))

    def _close_surely(self, writer: str, mark: str) -> None:
        _repeated(lambda: self._close(writer, mark))

    def _end(self, writer: str, mark: str, act: Callable[[FileWriter], object]) -> None:
        if writer not in self._writers:
            raise LeaseLostError("the file was not opened: there is nothing to close", writer=writer)
        file = self._writers[writer]
        written = self._written.get(writer, "")
        file.write(mark.removeprefix(written).encode())
        self._written[writer] = mark
        try:
            act(file)
        except LeaseLostError:
            self._writers.pop(writer).discard()
            raise
        self._written[writer] = ""

    def _recover(self, path: str) -> bool:
        return self._namespace.recover_lease(path)


def _repeated(call: Callable[[], None]) -> None:
    """Make a call; if nobody knows whether it took effect, make it once more."""
    try:
        call()
    except OutcomeUnknownError:
        call()


def client(setting: Setting, script: Script, knows: Sequence[str]) -> Callable[[Port], None]:
    """Make the calls of a script; go on after errors that say what happened."""

    def run(port: Port) -> None:
        namespace, clock, _database = setting.open(port, knows)
        calls = Calls(namespace, clock, setting.uploads)
        unpublished = ""  # what a sync could not publish, the next call publishes
        for name, *args in script:
            if name in _PUBLISH:
                args[1] = unpublished + args[1]
            try:
                record(port, name, tuple(args), partial(calls.make, name, *args), answers=_ANSWERS)
                unpublished = ""
            except OutcomeUnknownError:
                return
            except (*_ANSWERS, TransactionConflictError, UnavailableError):
                unpublished = args[1] if name in _PUBLISH[:2] else unpublished

    return run


def collector(setting: Setting, rounds: int, *, elects: bool) -> Callable[[Port], None]:
    """Collect what is deleted, as long as it leads; what it did to leases is noted as an operation without an end.

    Args:
        elects: False to take itself for the leader in any case.
    """

    def run(port: Port) -> None:
        namespace, clock, database = setting.open(port, ())
        election = Election(database, clock, port.token())
        port.call(Call(HISTORY, "invoke", (port.name, COLLECTS, ())))
        for _ in range(rounds):
            try:
                if not elects or election.lead():
                    namespace.collect()
            except (UnavailableError, OutcomeUnknownError):
                continue

    return run


def sweeper(setting: Setting) -> Callable[[Port], None]:
    """Sweep once: find blobs that nobody owns, and delete them."""

    def run(port: Port) -> None:
        namespace, _clock, _database = setting.open(port, ())
        try:
            namespace.sweep()
            namespace.collect()
        except (ConflictError, UnavailableError, OutcomeUnknownError):
            return

    return run


def passing_time(port: Port) -> None:
    """Let much time pass, at some moment."""
    port.call(Call(HISTORY, "invoke", (port.name, "later", ())))
    port.call(Call(CLOCK, "pass"))
    port.call(Call(HISTORY, "end", (port.name, Outcome.OK, None)))


def network(port: Port) -> None:
    """As the network, deliver a commit that its caller no longer waits for."""
    port.call(Call(DATABASE, "carry_out"))
