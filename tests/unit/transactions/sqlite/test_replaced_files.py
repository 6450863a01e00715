"""A file that was removed or replaced takes no commits: they would be acknowledged, and lost with the process."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import NotFoundError, OutcomeUnknownError
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.sqlite import backend as backend_module
from holdfast.transactions.sqlite.backend import SqliteBackend
from holdfast.transactions.sqlite.connection import prepare_file
from holdfast.transactions.steps import Judgment
from tests.patience import PATIENCE_S

_COMMIT = Commit(puts={b"a": b"2"})


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    return path


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
    with backend.locked() as transaction:
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
    judge = backend_module.judge

    def replaced(*args: Any) -> Judgment:
        _restore(path)
        return judge(*args)

    monkeypatch.setattr(backend_module, "judge", replaced)
    with pytest.raises(OutcomeUnknownError, match="removed or replaced during the commit"):
        backend.commit(_COMMIT)
    backend.close()
