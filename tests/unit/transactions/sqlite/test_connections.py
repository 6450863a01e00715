"""Which connections are kept for the next caller."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AccessDeniedError, NotFoundError, UnavailableError
from holdfast.runtime import Environment, SystemClock
from holdfast.runtime import process as forks_module
from holdfast.runtime.process import ForkInProgress, register_fork_listener
from holdfast.transactions.base import Backend, Commit, Committed
from holdfast.transactions.registry import open_backend
from holdfast.transactions.sqlite import backend as backend_module
from holdfast.transactions.sqlite import connections as connections_module
from holdfast.transactions.sqlite.backend import SqliteBackend, prepare_file
from holdfast.transactions.sqlite.connections import SqliteConnectionPool
from holdfast.transactions.sqlite.ticket_queue import TicketQueue
from tests.children import Child, open_files, run_in_children
from tests.patience import PATIENCE_S, wait_until


@pytest.fixture
def connections(tmp_path: Path) -> SqliteConnectionPool:
    path = str(tmp_path / "records.db")
    Path(path).touch()
    return SqliteConnectionPool(path, lambda: sqlite3.connect(path), SystemClock())


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_a_connection_is_lent_again_unless_its_block_failed(connections: SqliteConnectionPool, kind: str) -> None:
    """After an error it may be broken, or in the middle of a transaction."""
    lend = getattr(connections, kind)
    with lend() as first:
        pass
    with lend() as second:
        assert second is first
    with pytest.raises(KeyError), lend():
        raise KeyError
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")
    with lend() as fourth:
        assert fourth is not first
        assert fourth.execute("SELECT 1").fetchone() == (1,)
    connections.close()


def test_a_connection_that_comes_back_after_the_end_is_closed(connections: SqliteConnectionPool) -> None:
    with connections.reader() as first:
        connections.close()
        assert first.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")


def test_a_path_that_leads_nowhere_anymore(tmp_path: Path) -> None:
    """Whatever the operating system says: it is one of Holdfast's errors."""
    directory = tmp_path / "directory"
    directory.mkdir()
    path = directory / "records.db"
    path.touch()
    connections = SqliteConnectionPool(str(path), lambda: sqlite3.connect(path), SystemClock())
    path.unlink()
    directory.rmdir()
    directory.touch()
    with pytest.raises(NotFoundError), connections.reader():
        pass
    directory.unlink()
    directory.symlink_to(directory)
    with pytest.raises(AccessDeniedError, match="cannot be reached"), connections.reader():
        pass
    connections.close()


# --- forks ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    return path


def _count(backend: Backend, key: bytes, times: int) -> None:
    for _ in range(times):
        assert isinstance(backend.commit(Commit(adds={key: 1})), Committed)


def test_parent_and_children_use_one_backend(path: str) -> None:
    backend = open_backend(f"sqlite://{path}")
    _count(backend, b"n", 1)
    children = [Child(lambda: _count(backend, b"n", 20)) for _ in range(3)]
    _count(backend, b"n", 20)
    for child in children:
        child.result()
    assert backend.get_many([b"n"])[b"n"].number == 81
    backend.close()


def test_versions_are_not_used_twice(path: str) -> None:
    """A child that went on counting where its parent was would give two commits one version."""
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)

    def versions(number: int) -> set[int]:
        outcomes = [backend.commit(Commit(adds={b"%d" % number: 1})) for _ in range(10)]
        return {one.version for one in outcomes if isinstance(one, Committed)}

    found = [*run_in_children(3, versions), versions(9)]
    assert len(set().union(*found)) == 40
    backend.close()


def test_no_connection_is_open_during_a_fork(path: str) -> None:
    """SQLite's notes about its locks, in the memory of the process, must not reach the child."""
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)
    backend.get_many([b"n"])

    assert open_files("records.db") != []
    assert Child(lambda: open_files("records.db")).result() == []
    backend.close()


def test_threads_at_work_do_not_harm_a_child(path: str) -> None:
    """At the moment of a fork, other threads read and write, and hold every lock there is."""
    backend = open_backend(f"sqlite://{path}")
    is_over = threading.Event()
    counts = [0] * 4

    def work(number: int) -> None:
        while not is_over.is_set():
            _count(backend, b"parent", 1)
            backend.get_many([b"parent"])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for one in threads:
        one.start()
    try:
        for _ in range(5):
            Child(lambda: _count(backend, b"child", 5)).result()
    finally:
        is_over.set()
        for one in threads:
            one.join(PATIENCE_S)
    found = backend.get_many([b"parent", b"child"])
    assert (found[b"parent"].number, found[b"child"].number) == (sum(counts), 25)
    backend.close()


def test_a_fork_does_not_wait_for_a_thread_that_uses_the_backend_for_the_first_time(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of the file is made then; the thread that forks holds what others need to make one."""
    is_forking, is_made = threading.Event(), threading.Event()
    first = TicketQueue.of

    def of(path: str) -> TicketQueue:
        assert is_forking.wait(PATIENCE_S)
        queue = first(path)
        is_made.set()
        return queue

    class Waiter:
        def before_fork(self, fork: ForkInProgress) -> bool:
            is_forking.set()
            return is_made.wait(PATIENCE_S)

        def after_fork(self, *, is_ready: bool) -> None:
            pass

    backend = open_backend(f"sqlite://{path}")  # it hears of forks before the other one
    waiter = Waiter()
    register_fork_listener(waiter)
    with monkeypatch.context() as patched:
        patched.setattr(TicketQueue, "of", of)
        thread = threading.Thread(target=lambda: _count(backend, b"parent", 1), daemon=True)
        thread.start()
        child = Child(lambda: None)
        child.result()
        thread.join(PATIENCE_S)
    Child(lambda: _count(backend, b"child", 1)).result()
    found = backend.get_many([b"parent", b"child"])
    assert (found[b"parent"].number, found[b"child"].number) == (1, 1)
    backend.close()


def test_a_fork_waits_for_a_thread_that_opens_the_database(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection, too, must not be open in the child: the child would hold no lock, and believe that it does."""
    is_open, is_forking = threading.Event(), threading.Event()
    migrate = backend_module.migrate_schema

    def slow(*arguments: Any, **options: Any) -> None:
        is_open.set()
        assert is_forking.wait(PATIENCE_S)
        migrate(*arguments, **options)

    class Watcher:
        def before_fork(self, fork: ForkInProgress) -> bool:
            is_forking.set()
            return True

        def after_fork(self, *, is_ready: bool) -> None:
            pass

    watcher = Watcher()
    register_fork_listener(watcher)
    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as threads:
        patched.setattr(backend_module, "migrate_schema", slow)
        opened = threads.submit(open_backend, f"sqlite://{path}")
        assert is_open.wait(PATIENCE_S)

        def use() -> list[str]:
            backend = open_backend(f"sqlite://{path}")
            _count(backend, b"child", 1)
            return open_files("records.db")

        monkeypatch.setattr(backend_module, "migrate_schema", migrate)
        child = Child(lambda: (open_files("records.db"), use()))
        inherited, own = child.result()
        backend = opened.result(PATIENCE_S)
    assert inherited == []
    assert own != []
    _count(backend, b"parent", 1)
    assert len(backend.get_many([b"parent", b"child"])) == 2
    backend.close()


def test_no_fork_while_a_connection_is_being_closed(path: str) -> None:
    """To close the last connection takes a lock, and moves the log into the file."""
    is_closing, is_forking = threading.Event(), threading.Event()

    class Slow(sqlite3.Connection):
        def close(self) -> None:
            is_closing.set()
            assert is_forking.wait(PATIENCE_S)
            super().close()

    class Watcher:
        def before_fork(self, fork: ForkInProgress) -> bool:
            is_forking.set()
            return True

        def after_fork(self, *, is_ready: bool) -> None:
            pass

    watcher = Watcher()
    register_fork_listener(watcher)
    lent = SqliteConnectionPool(
        path, lambda: sqlite3.connect(path, factory=Slow, check_same_thread=False), SystemClock()
    )
    with lent.reader():
        pass
    thread = threading.Thread(target=lent.close, daemon=True)
    thread.start()
    assert is_closing.wait(PATIENCE_S)
    assert Child(lambda: open_files("records.db")).result() == []
    thread.join(PATIENCE_S)


def test_a_backend_that_another_thread_opens_during_a_fork_waits(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks it whether it is ready; the child may use the file."""
    monkeypatch.setattr(forks_module, "_ROUNDS", 1)
    is_forking, is_made = threading.Event(), threading.Event()
    made: list[SqliteBackend] = []

    def use() -> None:
        assert is_forking.wait(PATIENCE_S)
        made.append(SqliteBackend(path, Environment()))
        is_made.set()
        made[0].get_many([b"n"])

    class Waiter:
        def before_fork(self, fork: ForkInProgress) -> bool:
            is_forking.set()
            return is_made.wait(PATIENCE_S)

        def after_fork(self, *, is_ready: bool) -> None:
            pass

    waiter = Waiter()
    register_fork_listener(waiter)
    thread = threading.Thread(target=use, daemon=True)
    thread.start()

    def count() -> list[str]:
        inherited = open_files("records.db")
        _count(made[0], b"n", 1)
        return inherited

    assert Child(count).result() == []
    thread.join(PATIENCE_S)
    _count(made[0], b"n", 1)
    assert made[0].get_many([b"n"])[b"n"].number == 2
    made[0].close()


def test_a_walk_for_which_a_fork_waits_may_read_another_database(path: str, tmp_path: Path) -> None:
    prepare_file(str(tmp_path / "other.db"), create=True)
    other, backend = (SqliteBackend(one, Environment()) for one in (str(tmp_path / "other.db"), path))
    _count(backend, b"n", 1)
    begun = threading.Event()

    def walk() -> None:
        with backend.snapshot():
            begun.set()
            wait_until(lambda: other._connections._forks, "nobody forks")
            other.get_many([b"n"])

    thread = threading.Thread(target=walk, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    Child(lambda: _count(backend, b"n", 1)).result()
    thread.join(PATIENCE_S)
    assert backend.get_many([b"n"])[b"n"].number == 2
    backend.close()
    other.close()


def test_the_queues_of_deleted_files_are_closed(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / f"{number}.db"
        backend = open_backend(f"sqlite://{path}", create=True)
        _count(backend, b"n", 1)
        backend.close()
        for one in tmp_path.iterdir():
            one.unlink()
    assert len(open_files(f"{tmp_path}/")) <= 1


def test_a_child_of_a_process_in_mid_walk_is_told_to_start_anew(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of the walk cannot be closed, so the child cannot use the file."""
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)

    def use() -> str:
        try:
            backend.get_many([b"n"])
        except UnavailableError as error:
            return error.message
        return "no error"

    def use_another() -> str:
        try:
            open_backend(f"sqlite://{path}")
        except UnavailableError as error:
            return error.message
        return "no error"

    with backend.snapshot() as reader:
        assert "forked while its parent used the database" in Child(use).result()
        assert "forked while its parent used the database" in Child(use_another).result(), "what SQLite notes is shared"
        assert reader.get_many([b"n"])[b"n"].number == 1
    assert Child(use).result() == "no error"

    monkeypatch.setattr(connections_module, "_FORK_WAIT_S", 0.01)
    begun, is_over = threading.Event(), threading.Event()

    def walk() -> None:
        with backend.snapshot():
            begun.set()
            is_over.wait(PATIENCE_S)

    thread = threading.Thread(target=walk, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    assert "forked while its parent used the database" in Child(use).result()
    is_over.set()
    thread.join(PATIENCE_S)
    assert Child(use).result() == "no error"
    backend.close()


def test_threads_that_read_all_the_time_let_others_fork(path: str) -> None:
    """Between two pages of theirs, no connection is lent."""
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            backend.scan(b"a", b"z", 10)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for one in threads:
        one.start()
    try:
        for _ in range(10):
            Child(lambda: _count(backend, b"n", 1)).result()
    finally:
        is_over.set()
        for one in threads:
            one.join(PATIENCE_S)
    assert backend.get_many([b"n"])[b"n"].number == 11
    backend.close()


def test_a_child_that_unwinds_a_walk_of_its_parent_leaves_it_alone(path: str) -> None:
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)
    block = backend.snapshot()
    snapshot = block.__enter__()
    Child(lambda: block.__exit__(None, None, None)).result()
    _count(backend, b"n", 1)
    assert snapshot.get_many([b"n"])[b"n"].number == 1
    block.__exit__(None, None, None)
    backend.close()


def test_a_closed_backend_takes_no_commits(path: str) -> None:
    backend = SqliteBackend(path, Environment())
    _count(backend, b"n", 1)
    backend.close()
    with pytest.raises(UnavailableError, match="the database is closed: open it again"):
        _count(backend, b"n", 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_whose_wait_is_interrupted_cuts_the_child_off(path: str) -> None:
    """Python goes on with the fork, while another thread still uses a connection."""

    class Interrupted(SystemClock):
        def sleep(self, duration_s: float) -> None:
            raise KeyboardInterrupt

    backend = SqliteBackend(path, Environment(clock=Interrupted()))
    _count(backend, b"n", 1)
    begun, is_over = threading.Event(), threading.Event()

    def walk() -> None:
        with backend.snapshot():
            begun.set()
            is_over.wait(PATIENCE_S)

    thread = threading.Thread(target=walk, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)

    def use() -> str:
        try:
            _count(backend, b"n", 1)
        except UnavailableError as error:
            return error.message
        return "no error"

    assert "forked while its parent used the database" in Child(use).result()
    is_over.set()
    thread.join(PATIENCE_S)
    _count(backend, b"n", 1)
    assert backend.get_many([b"n"])[b"n"].number == 2
    backend.close()


def test_a_file_that_was_opened_during_two_forks_of_which_one_is_over_stays_usable(path: str) -> None:
    """Nothing was open when it was forked: no connection is opened until all are over."""
    found = SqliteConnectionPool(path, lambda: sqlite3.connect(path), SystemClock())
    with found.reader():
        pass
    state = forks_module._ForkState()
    found._born_under = [ForkInProgress(forks_module._ForkState()), ForkInProgress(state)]
    found.after_fork(is_ready=False)
    with found.reader():
        pass
    found.close()


class _NoWait(SystemClock):
    def sleep(self, duration_s: float) -> None:
        raise AssertionError("it waits for itself")


def test_the_thread_that_forks_opens_no_connection_before_it_is_done(path: str) -> None:
    """Of two forks at once, the end of one does not end the other."""
    found = SqliteConnectionPool(path, lambda: sqlite3.connect(path), _NoWait())
    states = [forks_module._ForkState() for _ in range(2)]
    for fork in [ForkInProgress(state) for state in states]:
        found.before_fork(fork)
    while states:
        with pytest.raises(UnavailableError, match="this process is being forked"), found.reader():
            pass
        states.pop()
    with found.reader():
        pass
    found.close()
