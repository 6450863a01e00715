"""Which connections are kept for the next caller."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, NotFoundError
from holdfast.runtime import SystemClock
from holdfast.transactions.sqlite.connections import Connections


@pytest.fixture
def connections(tmp_path: Path) -> Connections:
    path = str(tmp_path / "records.db")
    Path(path).touch()
    return Connections(path, lambda: sqlite3.connect(path), SystemClock())


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_a_connection_is_lent_again_unless_its_block_failed(connections: Connections, kind: str) -> None:
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


def test_a_connection_that_comes_back_after_the_end_is_closed(connections: Connections) -> None:
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
    connections = Connections(str(path), lambda: sqlite3.connect(path), SystemClock())
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
