"""Flushes of an SQLite file, and files that are removed or replaced."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import NotFoundError, OutcomeUnknownError, StorageFullError, UnavailableError
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.registry import open_backend
from holdfast.transactions.sqlite import backend as backend_module
from holdfast.transactions.sqlite.backend import SqliteBackend, prepare_file
from holdfast.transactions.validation import ValidationResult
from tests.patience import PATIENCE_S


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    return path


# --- durability -------------------------------------------------------------------------------------------------------
@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the inodes of the files that this process flushes by itself."""
    found: list[int] = []
    flush = os.fsync

    def note(descriptor: int) -> None:
        found.append(os.fstat(descriptor).st_ino)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return found


@pytest.mark.parametrize("link", ["none", "file", "directory"])
def test_the_log_is_flushed(link: str, tmp_path: Path, flushed: list[int]) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "records.db"
    open_backend(f"sqlite://{path}", create=True).close()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "link.db").symlink_to(path)
    named = {"none": path, "file": tmp_path / "link.db", "directory": tmp_path / "link" / "records.db"}[link]
    database = open_backend(f"sqlite://{named}?synchronous=normal")
    try:
        database.commit(Commit(puts={b"a": b"1"}))
        del flushed[:]
        database.make_durable()
        assert flushed == [Path(f"{path}-wal").stat().st_ino]
    finally:
        database.close()


def test_what_a_client_with_another_setting_has_committed_is_flushed_too(tmp_path: Path, flushed: list[int]) -> None:
    path = tmp_path / "records.db"
    database = open_backend(f"sqlite://{path}", create=True)
    hasty = open_backend(f"sqlite://{path}?synchronous=normal")
    try:
        hasty.commit(Commit(puts={b"a": b"1"}))
        del flushed[:]
        database.make_durable()
        assert flushed == [Path(f"{path}-wal").stat().st_ino]
    finally:
        hasty.close()
        database.close()


def test_nothing_was_committed(tmp_path: Path) -> None:
    open_backend(f"sqlite://{tmp_path}/records.db", create=True).close()
    database = open_backend(f"sqlite://{tmp_path}/records.db?synchronous=normal")
    try:
        database.make_durable()  # there is no log yet
    finally:
        database.close()


@pytest.mark.parametrize(("code", "expected"), [(5, UnavailableError), (28, StorageFullError)])
def test_a_disk_that_fails(
    code: int, expected: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_backend(f"sqlite://{tmp_path}/records.db?synchronous=normal", create=True)
    try:
        database.commit(Commit(puts={b"a": b"1"}))

        def fail(descriptor: int) -> None:
            raise OSError(code, "the disk failed")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(expected):
            database.make_durable()
    finally:
        monkeypatch.undo()
        database.close()


# --- replaced files ---------------------------------------------------------------------------------------------------
_COMMIT = Commit(puts={b"a": b"2"})


def _backend(path: str) -> SqliteBackend:
    return SqliteBackend(path, Environment())


def _restore(path: str) -> None:
    """Put another file in the place of the database."""
    prepare_file(f"{path}-copy", create=True)
    os.replace(f"{path}-copy", path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@pytest.mark.parametrize("comes_back", [False, True])
def test_after_the_file_was_removed(path: str, comes_back: bool) -> None:
    backend = _backend(path)
    assert isinstance(backend.commit(Commit(puts={b"a": b"1"})), Committed)
    with backend._connections.writer() as writer:
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    saved = f"{path}-saved"
    shutil.move(path, saved)
    if comes_back:
        prepare_file(path, create=True)
    for call in (lambda: backend.commit(_COMMIT), lambda: backend.get_many([b"a"])):
        with pytest.raises(NotFoundError, match="removed or replaced"):
            call()
    backend.close()
    os.replace(saved, path)
    backend = _backend(path)
    assert backend.get_many([b"a"])[b"a"].value == b"1"
    backend.close()


def _commit_under_locks(backend: SqliteBackend) -> object:
    with backend.begin_locking_transaction() as transaction:
        return transaction.apply(_COMMIT)


@pytest.mark.parametrize(
    "commit", [lambda backend: backend.commit(_COMMIT), _commit_under_locks], ids=["commit", "locked"]
)
def test_while_a_commit_waits_for_its_turn(path: str, commit: Callable[[SqliteBackend], object]) -> None:
    backend = _backend(path)
    backend.commit(Commit(puts={b"a": b"1"}))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(commit, backend)
        assert not wait([waiting], 0.3).done
        _restore(path)
        other.execute("ROLLBACK")
        other.close()
        with pytest.raises(NotFoundError, match="removed or replaced"):
            waiting.result(PATIENCE_S)
    backend.close()


def test_in_the_middle_of_a_commit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _backend(path)
    validate_group = backend_module.validate_group

    def replaced(*args: Any) -> ValidationResult:
        _restore(path)
        return validate_group(*args)

    monkeypatch.setattr(backend_module, "validate_group", replaced)
    with pytest.raises(OutcomeUnknownError, match="removed or replaced during the commit"):
        backend.commit(_COMMIT)
    backend.close()


def test_right_after_a_commit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _backend(path)
    convert = backend_module.convert_sqlite_errors

    @contextmanager
    def replaced(*args: Any, commits: bool = False) -> Iterator[None]:
        with convert(*args, commits=commits):
            yield
        if commits:
            _restore(path)

    monkeypatch.setattr(backend_module, "convert_sqlite_errors", replaced)
    with pytest.raises(OutcomeUnknownError, match="removed or replaced during the commit"):
        backend.commit(_COMMIT)
    backend.close()
