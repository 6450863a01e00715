"""URLs and files that cannot be a database are refused in one sentence that shows no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.transactions.base import Commit
from holdfast.transactions.registry import open_database
from holdfast.transactions.urls import public_url

needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("url", ["postgresql://user:pw-secret@[::1/db", "sqlite://[x/y"])
def test_a_url_with_broken_brackets_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="the url of the database is not valid") as caught:
        open_database(url, create=True)
    assert "pw-secret" not in str(caught.value)
    assert public_url(url) == "(not a url)"


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="this is a directory: add a file name"):
        open_database(f"sqlite://{tmp_path}", create=True)


def test_a_path_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/a%00b", f"{tmp_path}/{'x' * 300}.db"):
        with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
            open_database(f"sqlite://{path}", create=True)


@needs_rights
def test_a_directory_without_rights_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
        open_database(f"sqlite://{tmp_path}/n.db", create=True)


def test_a_queue_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.db-queue").mkdir()
    database = open_database(f"sqlite://{tmp_path}/n.db", create=True)
    try:
        with pytest.raises(AccessDeniedError, match="the queue beside the database file cannot be written"):
            database.commit(Commit(puts={b"x": b"1"}))
    finally:
        database.close()
