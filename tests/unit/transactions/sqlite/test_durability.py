"""`make_durable` flushes the log of the very file in which the commits are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import StorageFullError, UnavailableError
from holdfast.transactions.base import Commit
from holdfast.transactions.registry import open_backend


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
