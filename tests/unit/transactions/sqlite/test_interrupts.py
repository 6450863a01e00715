"""Interrupts and collections at any line: nothing stays locked, and nobody is stopped."""

from __future__ import annotations

import gc
import os
import random
import signal
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import FrameType

import pytest

from holdfast.errors import OutcomeUnknownError
from holdfast.runtime import Environment
from holdfast.runtime import process as forks_module
from holdfast.transactions import pool as pool_module
from holdfast.transactions.base import Backend, Commit, Committed
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.sqlite import backend as backend_module
from holdfast.transactions.sqlite import connections as connections_module
from holdfast.transactions.sqlite import ticket_queue as queue_module
from holdfast.transactions.sqlite.backend import SqliteBackend, prepare_file
from tests.children import Child
from tests.interrupts import InterruptError, disturbed_at, interrupted_at
from tests.patience import PATIENCE_S


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SqliteBackend]:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    found = SqliteBackend(path, Environment(), synchronous="normal")
    yield found
    found.close()


def _use(backend: Backend) -> None:
    assert isinstance(backend.commit(Commit(adds={b"n": 1})), Committed)
    assert backend.get_many([b"n"])[b"n"].number > 0
    with backend.snapshot() as snapshot:
        snapshot.scan(b"a", b"z", 5)
    with backend.begin_locking_transaction() as transaction:
        transaction.read([b"n"], exclusive=True)
        transaction.apply(Commit(adds={b"n": 1}))


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def test_an_interrupt_at_any_line_leaves_nothing_locked(backend: SqliteBackend) -> None:
    modules = (pool_module, connections_module, queue_module, backend_module)
    made: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        made.append(backend._connect())
        return made[-1]

    backend._connections._connect = connect
    line, is_within = 0, True
    with ThreadPoolExecutor(1) as threads:
        while is_within:
            line += 1
            is_within = interrupted_at(line, lambda: _use(backend), *modules)
            assert threads.submit(backend.commit, Commit(adds={b"m": 1})).result(PATIENCE_S)
            assert backend._connections.borrowing_threads() == []
            assert backend._connections.queue()._permits.count_holders() == 0
            idle = [*backend._connections._readers, *backend._connections._writers]
            assert [one for one in made if _is_open(one) and one not in idle] == [], "a child would inherit it"
    assert line > 150
    assert backend.get_many([b"m"])[b"m"].number == line


class _ForgottenWalk:
    """Only a collection of garbage ends it."""

    def __init__(self, backend: Backend) -> None:
        self.own = self
        self.walk = backend.snapshot()
        self.walk.__enter__().scan(b"a", b"z", 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_around_a_fork_leaves_nothing_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reports the interrupt of a hook, and goes on with the fork."""
    monkeypatch.setattr(forks_module, "_watching", weakref.WeakValueDictionary())  # not what other tests have left
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    backend = SqliteBackend(path, Environment(), synchronous="normal")
    child = 0

    def fork() -> None:
        nonlocal child
        backend.get_many([b"n"])  # a connection that is closed before the fork
        child = os.fork()
        if not child:
            os._exit(0)

    line, is_within = 0, True
    with ThreadPoolExecutor(1) as threads:
        threads.submit(int).result()
        while is_within:
            line += 1
            child = 0
            is_within = interrupted_at(line, fork, forks_module, pool_module, connections_module)
            if child:
                os.waitpid(child, 0)
            assert threads.submit(backend.commit, Commit(adds={b"m": 1})).result(PATIENCE_S)
            assert isinstance(backend.commit(Commit(adds={b"m": 1})), Committed)
    assert line > 60
    assert backend.get_many([b"m"])[b"m"].number == 2 * line
    backend.close()


def test_a_forgotten_walk_that_is_collected_at_any_line_stops_nobody(backend: SqliteBackend) -> None:
    """A collection of garbage may begin at any line, and ends a walk that nobody can reach anymore."""

    modules = (pool_module, connections_module)
    collected: list[int] = []

    def work() -> int:
        line, is_within = 0, True
        while is_within:
            line += 1
            _ForgottenWalk(backend)
            is_within = disturbed_at(line, lambda: collected.append(gc.collect()), lambda: _use(backend), *modules)
        gc.collect()
        return line

    gc.collect()
    gc.freeze()  # hundreds of collections need not look at what other tests have imported
    gc.disable()
    try:
        thread = threading.Thread(target=lambda: collected.append(work()), daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
    finally:
        gc.enable()
    assert not thread.is_alive(), "it waits for itself"
    assert len(collected) == collected[-1] > 100
    assert min(collected) > 0
    assert backend._connections.borrowing_threads() == []


@pytest.mark.slow
def test_a_forgotten_walk_that_is_collected_waits_for_nobody(backend: SqliteBackend) -> None:
    """Another thread may have the lock of the connections."""
    connections = backend._connections
    _ForgottenWalk(backend)
    with connections._mutex:
        thread = threading.Thread(target=gc.collect, daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert connections.borrowing_threads() == []


@pytest.mark.slow
def test_a_thousand_interrupts_a_second_stop_nobody(backend: SqliteBackend) -> None:
    """The handler of a real signal raises in the main thread, while others commit."""

    def run() -> list[int]:
        groups = GroupCommit(backend)
        is_over = threading.Event()

        def raise_it(number: int, frame: FrameType | None) -> None:
            raise InterruptError

        def work(number: int) -> tuple[int, int]:
            acknowledged = unknown = 0
            while not is_over.is_set():
                try:
                    assert isinstance(groups.commit(Commit(adds={b"%d" % number: 1})), Committed)
                    acknowledged += 1
                    groups.get_many([b"%d" % number])
                except OutcomeUnknownError:
                    unknown += 1
            return acknowledged, unknown

        hits = 0
        signal.signal(signal.SIGALRM, raise_it)
        with ThreadPoolExecutor(3) as threads:
            workers = [threads.submit(work, number) for number in range(3)]
            end_s = monotonic() + 20
            while monotonic() < end_s:
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.random() * 0.003 + 1e-6)
                    again_s = monotonic() + 0.1  # Python drops an exception that hits a finalizer
                    while monotonic() < again_s:
                        with suppress(OutcomeUnknownError):
                            groups.commit(Commit(adds={b"main": 1}))
                            groups.get_many([b"main"])
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except InterruptError:
                    hits += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            is_over.set()
            counts = [worker.result(PATIENCE_S) for worker in workers]
        for number, (acknowledged, unknown) in enumerate(counts):
            found = groups.get_many([b"%d" % number])[b"%d" % number].number
            assert acknowledged <= found <= acknowledged + unknown
        assert backend._connections.borrowing_threads() == []
        return [hits, *(acknowledged for acknowledged, _ in counts)]

    hits, *counts = Child(run).result()
    assert hits > 100
    assert min(counts) > 100
