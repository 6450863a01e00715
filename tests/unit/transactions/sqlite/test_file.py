"""A disk that is full, a file that is damaged, locked, missing or not ours: one sentence, and nothing half done."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.registry import open_backend
from holdfast.transactions.sqlite.backend import SqliteBackend, prepare_file
from holdfast.transactions.sqlite.file import _use_write_ahead_log, convert_sqlite_errors
from tests.children import Child


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    return path


def _backend(path: str, *, timeout_s: float = 60.0) -> SqliteBackend:
    return SqliteBackend(path, Environment(), timeout_s=timeout_s)


def _fill(backend: SqliteBackend) -> int:
    """Commit until it fails; return how many commits were acknowledged."""
    for number in range(1000):
        try:
            outcome = backend.commit(Commit(puts={b"k%d" % number: bytes(20_000)}, adds={b"count": 1}))
        except (StorageFullError, OutcomeUnknownError):
            return number
        assert isinstance(outcome, Committed)
    raise AssertionError("the disk does not become full")


def _is_whole(backend: SqliteBackend, count: int) -> bool:
    records = backend.scan(b"k", b"l", 10_000).records
    return len(records) == count and backend.get_many([b"count"])[b"count"].number == count


def test_a_file_that_reaches_its_limit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite reports a full database in the middle of a transaction."""
    backend = _backend(path)
    with backend._connections.writer() as writer:
        writer.execute("PRAGMA max_page_count = 60")
    count = _fill(backend)
    assert count > 2
    assert _is_whole(backend, count)
    with backend._connections.writer() as writer:
        writer.execute("PRAGMA max_page_count = 10000")
    assert isinstance(backend.commit(Commit(puts={b"k%d" % count: b""}, adds={b"count": 1})), Committed)
    assert _is_whole(backend, count + 1)
    backend.close()


def test_a_disk_that_is_full(path: str) -> None:
    """The log cannot grow: the commit fails, and what was acknowledged stays."""

    def fill() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        backend = _backend(path)
        count = _fill(backend)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert _is_whole(backend, count)
        assert isinstance(backend.commit(Commit(puts={b"k%d" % count: b""}, adds={b"count": 1})), Committed)
        backend.close()
        return count + 1

    count = Child(fill).result()
    backend = _backend(path)
    assert count > 2
    assert _is_whole(backend, count)
    backend.close()


def test_a_disk_that_is_full_before_anything_is_written(path: str) -> None:
    """Not even the queue, or the memory that readers share, can be made: nothing happened, and the error says so."""

    def use() -> list[str]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        found = []
        backend = _backend(path)
        for call in (lambda: backend.commit(Commit(puts={b"a": b"1"})), lambda: backend.get_many([b"a"])):
            with pytest.raises(UnavailableError) as caught:
                call()
            found.append(caught.value.message)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert isinstance(backend.commit(Commit(inserts={b"a": b"1"})), Committed)
        backend.close()
        return found

    for message in Child(use).result():
        assert "the disk of the database" in message


def test_a_file_that_is_read_only(path: str) -> None:
    backend = _backend(path)
    with backend._connections.writer() as writer:
        writer.execute("PRAGMA query_only = 1")
    with pytest.raises(AccessDeniedError, match="cannot be written"):
        backend.commit(Commit(puts={b"a": b"1"}))
    assert backend.get_many([b"a"]) == {}
    backend.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_file_without_rights(path: str) -> None:
    os.chmod(path, stat.S_IRUSR)
    with pytest.raises(AccessDeniedError):
        _backend(path).commit(Commit(puts={b"a": b"1"}))


def _no_database(path: str) -> None:
    Path(path).write_bytes(b"name,price\n" * 1000)


def _database_of_others(path: str) -> None:
    os.remove(path)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE shopping (item TEXT)")
    connection.execute("PRAGMA user_version = 1")  # as our own schema has it
    connection.commit()
    connection.close()


def _empty(path: str) -> None:
    Path(path).write_bytes(b"")


def _records_of_others(path: str) -> None:
    os.remove(path)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("PRAGMA user_version = 7")
    connection.commit()
    connection.close()


def _newer_schema(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (os.remove, NotFoundError, "does not exist"),
        (_no_database, InvalidRequestError, "not an SQLite database"),
        (_database_of_others, InvalidRequestError, "database of another program"),
        (_records_of_others, InvalidRequestError, "database of another program"),
        (_empty, NotFoundError, "no tables of Holdfast"),
        (_newer_schema, UnsupportedError, "upgrade Holdfast"),
    ],
)
def test_a_file_that_is_not_ours(
    path: str, spoil: Callable[[str], None], error: type[HoldfastError], words: str
) -> None:
    spoil(path)
    before = Path(path).read_bytes() if os.path.exists(path) else None
    with pytest.raises(error, match=words):
        open_backend(f"sqlite://{path}")
    assert (Path(path).read_bytes() if os.path.exists(path) else None) == before


@pytest.mark.parametrize("spoil", [_database_of_others, _records_of_others])
def test_tables_are_not_made_in_the_database_of_another_program(path: str, spoil: Callable[[str], None]) -> None:
    spoil(path)
    before = Path(path).read_bytes()
    with pytest.raises(InvalidRequestError, match="database of another program"):
        open_backend(f"sqlite://{path}", create=True)
    assert Path(path).read_bytes() == before, "not even its journal mode is changed"


def test_a_copy_that_has_lost_its_log_gets_it_back(path: str, tmp_path: Path) -> None:
    """`VACUUM INTO` copies no journal mode; without a log, a walk would hold up every commit."""
    copy = str(tmp_path / "copy.db")
    connection = sqlite3.connect(path)
    connection.execute(f"VACUUM INTO '{copy}'")
    connection.close()
    prepare_file(copy, create=False)
    backend = _backend(copy, timeout_s=0.1)
    with backend.snapshot() as snapshot:
        assert isinstance(backend.commit(Commit(puts={b"a": b"1"})), Committed)
        assert snapshot.get_many([b"a"]) == {}
    backend.close()


def test_a_file_that_is_damaged(path: str) -> None:
    backend = _backend(path)
    for number in range(200):
        backend.commit(Commit(puts={b"k%d" % number: bytes(1000)}))
    backend.close()
    data = bytearray(Path(path).read_bytes())
    data[8192:-4096] = b"\xaa" * (len(data) - 8192 - 4096)
    Path(path).write_bytes(data)
    backend = _backend(path)
    with pytest.raises(CorruptDataError, match="damaged"):
        backend.scan(b"k", b"l", 1000)
    backend.close()


def test_a_file_that_another_program_locks(path: str) -> None:
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    backend = _backend(path, timeout_s=0.05)
    with pytest.raises(UnavailableError, match="another process has locked the database"):
        backend.commit(Commit(puts={b"a": b"1"}))
    assert backend.get_many([b"a"]) == {}
    stranger.execute("ROLLBACK")
    assert isinstance(backend.commit(Commit(puts={b"a": b"1"})), Committed)
    stranger.close()
    backend.close()


def test_a_process_that_is_stopped_while_it_begins_to_read_does_not_mean_damage(path: str) -> None:
    """For a moment, it has the mark that all readers need for itself; SQLite waits ten seconds for it."""
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = 15  # type: ignore[attr-defined, unused-ignore] # as Python 3.11 raises it
    with pytest.raises(UnavailableError, match="let it go on"), convert_sqlite_errors(path):
        raise error


def test_a_copy_that_cannot_be_written_is_read_without_a_log(tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as owner, closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        owner.execute("CREATE TABLE copied (number)")
        _use_write_ahead_log(reader, is_needed=False)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            _use_write_ahead_log(reader, is_needed=True)
        owner.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(path, timeout=0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                _use_write_ahead_log(other, is_needed=False)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("database is locked", UnavailableError),
        ("locking protocol", UnavailableError),
        ("database or disk is full", StorageFullError),
        ("attempt to write a readonly database", AccessDeniedError),
        ("unable to open database file", AccessDeniedError),
        ("file is not a database", InvalidRequestError),
        ("database disk image is malformed", CorruptDataError),
        ("disk I/O error", UnavailableError),
        ("something else", CorruptDataError),
    ],
)
def test_an_error_without_a_code_is_known_by_its_message(message: str, kind: type[HoldfastError]) -> None:
    with pytest.raises(kind), convert_sqlite_errors("/data/records.db"):
        raise sqlite3.OperationalError(message)  # as Python 3.10 raises it


def test_an_error_in_a_pessimistic_transaction_rolls_it_back(path: str) -> None:
    backend = _backend(path)
    with pytest.raises(ZeroDivisionError), backend.begin_locking_transaction() as transaction:
        assert 1 // len(transaction.read([b"a"], exclusive=True))
    assert isinstance(backend.commit(Commit(puts={b"a": b"1"})), Committed)
    backend.close()


def test_a_killed_process_loses_nothing_and_locks_nothing(path: str) -> None:
    """SIGKILL in the middle of commits, from several threads."""

    def work() -> None:
        backend = open_backend(f"sqlite://{path}")

        def count(number: int) -> None:
            for turn in range(1_000_000):
                backend.commit(Commit(puts={b"t%d" % number: b"%d" % turn}, adds={b"n": 1}))
                os.write(acknowledged, b"%d %d\n" % (number, turn))

        threads = [threading.Thread(target=count, args=(number,), daemon=True) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    reader, acknowledged = os.pipe()
    child = Child(work)
    os.close(acknowledged)
    with os.fdopen(reader, "rb") as stream:
        seen = [stream.readline() for _ in range(100)]
        child.signal(signal.SIGKILL)
        seen += stream.readlines()
    assert child.wait()[1] == -signal.SIGKILL
    last = {}
    for line in seen:
        if line.endswith(b"\n"):
            number, turn = line.split()
            last[b"t" + number] = int(turn)
    backend = _backend(path)
    assert isinstance(backend.commit(Commit(puts={b"after": b"1"})), Committed)
    found = backend.get_many([*last, b"n"])
    written = {key: int(found[key].value) for key in last}
    assert all(written[key] in (turn, turn + 1) for key, turn in last.items())
    assert found[b"n"].number == sum(turn + 1 for turn in written.values()), "no commit is half done"
    backend.close()
