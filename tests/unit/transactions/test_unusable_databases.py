"""URLs and files that cannot be a database are refused in one sentence that shows no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.transactions.base import Commit
from holdfast.transactions.registry import open_backend
from holdfast.transactions.urls import public_url
from tests.patience import PATIENCE_S

needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("url", ["postgresql://user:pw-secret@[::1/db", "sqlite://[x/y"])
def test_a_url_with_broken_brackets_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="the url of the database is not valid") as caught:
        open_backend(url, create=True)
    assert "pw-secret" not in str(caught.value)
    assert public_url(url) == "(not a url)"


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="this is a directory: add a file name"):
        open_backend(f"sqlite://{tmp_path}", create=True)


def test_a_file_with_two_names_is_refused_through_both_until_one_is_gone(tmp_path: Path) -> None:
    """SQLite keeps a log beside each name: two processes would not see each other's commits, and lose them."""
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    open_backend(f"sqlite://{first}", create=True).close()
    second.hardlink_to(first)
    for name in (first, second):
        with pytest.raises(InvalidRequestError, match=r"several names .*keep one name.* names=2"):
            open_backend(f"sqlite://{name}", create=True)
    assert {one.name for one in tmp_path.iterdir()} <= {"first.db", "second.db", "first.db-queue"}
    first.unlink()
    first.symlink_to(second)
    for name in (first, second):
        open_backend(f"sqlite://{name}").close()


def test_a_file_that_is_mounted_without_its_directory_is_refused(tmp_path: Path) -> None:
    """As with `docker run -v /data/shop.db:/data/shop.db`: each side would keep a log of its own."""
    file, place = tmp_path / "n.db", tmp_path / "a container"
    open_backend(f"sqlite://{file}", create=True).close()
    place.mkdir()
    opens = f"from {open_backend.__module__} import open_backend as o; o('sqlite://{quote(str(place))}/n.db')"
    mounts = 'mount -t tmpfs none "$2" && touch "$2/n.db" && mount --bind "$1" "$2/n.db" && echo mounted'
    unshared = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*unshared, "sh", "-c", f'{mounts} && "$0" -c "$3"', sys.executable, file, place, opens]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if "mounted" not in done.stdout:
        pytest.skip(f"no mounts: {done.stderr[:100]}")
    assert "the database file is mounted alone" in done.stderr, done.stderr


def test_a_path_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/a%00b", f"{tmp_path}/{'x' * 300}.db"):
        with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
            open_backend(f"sqlite://{path}", create=True)


@needs_rights
def test_a_directory_without_rights_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
        open_backend(f"sqlite://{tmp_path}/n.db", create=True)


def test_a_queue_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.db-queue").mkdir()
    database = open_backend(f"sqlite://{tmp_path}/n.db", create=True)
    try:
        with pytest.raises(AccessDeniedError, match="the queue beside the database file cannot be written"):
            database.commit(Commit(puts={b"x": b"1"}))
    finally:
        database.close()
