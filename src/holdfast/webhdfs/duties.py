"""Do the background work of a namespace in the server that leads: one of all its servers.

Each server tells in a record that it lives. Who leads collects what is deleted, ends the leases of silent writers,
empties the trash, and removes what has expired. Every step is a transaction that validates what it read, and those of
the trash also that this server leads still: one that was stopped for a while, and has lost the lead, changes nothing.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.errors import FencedError, HoldfastError
from holdfast.namespace import Namespace
from holdfast.namespace.collector import CollectionResult
from holdfast.namespace.errors import PathExistsError
from holdfast.namespace.keys import LEADER
from holdfast.namespace.maintenance import LeaderElection, LockTerm
from holdfast.namespace.operation import Changes, Operation, OperationContext
from holdfast.namespace.operations.names import Delete, Rename
from holdfast.namespace.paths import NsPath
from holdfast.namespace.receipts import delete_old_receipts
from holdfast.namespace.view import ResolvedPath, View
from holdfast.transactions.base import Commit
from holdfast.webhdfs import metrics
from holdfast.webhdfs.servers import SILENT_S, ServerRecord, list_servers, server_key
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore

_LOG = logging.getLogger("holdfast.webhdfs")

_RENEW_S = 5.0
"""How often a collection renews the leadership, which lasts longer, and tells that this process lives."""

_CHECKPOINT = "%y%m%d%H%M%S"
"""How Hadoop names what was in the trash at a time."""

_NAMES = 60
"""So many names are tried: a user may have taken them."""


@dataclass(frozen=True, slots=True)
class _OfLeader:
    """An operation that takes effect only while a process leads."""

    operation: Operation[Any]
    token: str

    @property
    def paths(self) -> Sequence[NsPath]:
        return self.operation.paths

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        return (*self.operation.extra_keys(chains), LEADER)

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        return self.operation.extra_range(chains)

    def execute(self, view: View, context: OperationContext) -> Changes[Any]:
        value = view.value(LEADER)
        if value is None or LockTerm.decode(value).holder != self.token:
            raise FencedError("another server leads now")
        return self.operation.execute(view, context)


class Duties:
    """The background work of one process of a server.

    Args:
        token: names the process.
    """

    def __init__(self, namespace: Namespace, tokens: TokenStore, settings: ServerSettings, token: str) -> None:
        self._namespace = namespace.as_user(namespace.configuration.superuser, ())
        self._tokens = tokens
        self._settings = settings
        self._token = token
        self._clock = namespace.environment.clock
        self._since_s = self._clock.now_s()
        self._election = LeaderElection(namespace.database, self._clock, token)
        self._done: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        self._is_stopping = False

    def run_round(self) -> None:
        """Tell that this process lives; if it leads, do what there is to do. Never raises."""
        try:
            if self._lead():
                self._do("collect", 15.0, self._collect)
                self._do("trash", 60.0, self._empty_trash)
                self._do("tokens", 600.0, self._tokens.delete_expired)
                self._do("servers", 60.0, self._remove_dead_servers)
                self._do("receipts", 600.0, self._delete_old_receipts)
        except HoldfastError as error:
            metrics.DUTY_FAILURES.labels("lead").inc()
            _LOG.warning("the background work waits: %s", error)
        except Exception:  # noqa: BLE001  # it is logged; the next round tries again
            metrics.DUTY_FAILURES.labels("lead").inc()
            _LOG.exception("the background work failed")

    def _do(self, name: str, every_s: float, duty: Callable[[], object]) -> None:
        now_s = self._clock.elapsed_s()
        if self._is_stopping or now_s < self._due_s.get(name, 0.0):
            return
        self._due_s[name] = now_s + every_s
        try:
            duty()
        except FencedError:
            raise  # another one leads
        except HoldfastError as error:
            metrics.DUTY_FAILURES.labels(name).inc()
            _LOG.warning("a part of the background work failed, %s: %s", name, error)

    def stop(self) -> None:
        """Let a round in progress end after its present step: a collection may take hours. Safe from another thread."""
        self._is_stopping = True

    def end(self) -> None:
        """Let another server lead at once, and remove what this one has told."""
        self._election.resign()
        self._namespace.database.commit(Commit(deletes=[server_key(self._token)]))

    def _lead(self) -> bool:
        """Lead from now on, or go on, if nobody else does; tell that this process lives; return whether it leads."""
        leads = self._election.try_to_lead()
        metrics.LEADS.set(leads)
        self._tell(leads)
        return leads

    def _tell(self, leads: bool) -> None:
        record = ServerRecord(
            token=self._token,
            host=self._settings.shown_host,
            port=self._settings.port,
            pid=os.getpid(),
            since_s=self._since_s,
            at_s=self._clock.now_s(),
            requests=metrics.count_requests(),
            duties=self._done if leads else None,
        )
        self._namespace.database.commit(Commit(puts={server_key(self._token): record.encode()}))

    # --- duties -------------------------------------------------------------------------------------------------------
    def _collect(self) -> None:
        renewed_s = self._clock.elapsed_s()

        def may_go_on(done: CollectionResult) -> bool:
            nonlocal renewed_s
            now_s = self._clock.elapsed_s()
            if self._is_stopping or now_s - renewed_s < _RENEW_S:
                return not self._is_stopping
            renewed_s = now_s
            return self._lead()

        done = self._namespace.collect(after_step=may_go_on)
        self._count(done)

    def _count(self, done: CollectionResult) -> None:
        for kind, number in asdict(done).items():
            self._done[kind] = self._done.get(kind, 0) + number
            if number:
                metrics.COLLECTED.labels(kind).inc(number)

    def _delete_old_receipts(self) -> None:
        delete_old_receipts(self._namespace.database, int(self._clock.now_s() * 1000))

    def _remove_dead_servers(self) -> None:
        now_s = self._clock.now_s()
        gone = [
            server_key(one.token)
            for one in list_servers(self._namespace.database)
            if abs(now_s - one.at_s) > 2 * SILENT_S
        ]
        if gone:
            self._namespace.database.commit(Commit(deletes=gone))

    # --- the trash ----------------------------------------------------------------------------------------------------
    def _empty_trash(self) -> None:
        """Put what was deleted since the last round into a checkpoint, and delete old ones, as Hadoop does."""
        if self._settings.trash_s is None or not self._namespace.exists("/user"):
            return
        for user in self._namespace.list("/user"):
            try:
                self._empty_trash_of(user.path, self._settings.trash_s)
            except FencedError:
                raise  # another one leads
            except HoldfastError as error:  # the others' is emptied nevertheless
                metrics.DUTY_FAILURES.labels("trash").inc()
                _LOG.warning("the trash of a user is not emptied, %s: %s", user.path, error)

    def _empty_trash_of(self, home: str, kept_s: float) -> None:
        now_s = self._clock.now_s()
        for name, made_s in self._iter_checkpoints(f"{home}/.Trash"):
            path = NsPath.parse(f"{home}/.Trash/{name}")
            if name == "Current":
                self._make_checkpoint(path, now_s)
            elif now_s - made_s > kept_s:
                self._run(Delete(path=path, recursive=True))
                self._count_emptied()

    def _iter_checkpoints(self, trash: str) -> Iterator[tuple[str, float]]:
        found = self._namespace.find(trash)
        for entry in self._namespace.list(trash) if found is not None and found.is_directory else ():
            if entry.name == "Current":
                yield entry.name, 0.0
            with suppress(ValueError):
                yield entry.name, time.mktime(time.strptime(entry.name, _CHECKPOINT))

    def _make_checkpoint(self, current: NsPath, now_s: float) -> None:
        for later_s in range(_NAMES):
            name = time.strftime(_CHECKPOINT, time.localtime(now_s + later_s))
            with suppress(PathExistsError):
                self._run(Rename(source=current, target=current.parent.child(name.encode())))
                return

    def _count_emptied(self) -> None:
        self._done["checkpoints"] = self._done.get("checkpoints", 0) + 1

    def _run(self, operation: Operation[Any]) -> None:
        self._namespace.operations.run(_OfLeader(operation, self._token), self._namespace.caller)
