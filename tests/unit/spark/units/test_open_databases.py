"""Databases of a worker process: which stay open from task to task, and which are closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError, NotFoundError
from holdfast.records import open_database
from holdfast.records.database import Database
from holdfast.spark.units import tasks
from holdfast.spark.units.tasks import database_of_process
from holdfast.transactions.group_commit import GroupCommit


@pytest.fixture(autouse=True)
def _own_dbs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    dbs: dict[object, Database] = {}
    monkeypatch.setattr(tasks, "_open", dbs)
    yield
    for db in dbs.values():
        db.close()


def _url(path: Path) -> str:
    url = f"sqlite://{path}?synchronous=normal"
    open_database(url, create=True).close()
    return url


def _is_open(db: Database) -> bool:
    try:
        db.backend.get_many([b"key"])
    except HoldfastError:
        return False
    return True


def test_one_database_stays_open(tmp_path: Path) -> None:
    first, second = (_url(tmp_path / f"{number}.db") for number in range(2))
    db = database_of_process(first)
    assert database_of_process(first) is db
    other = database_of_process(second)
    assert (_is_open(db), _is_open(other)) == (False, True)


def test_a_file_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        database_of_process(f"sqlite://{tmp_path}/s.db")
    url = _url(tmp_path / "s.db")
    before = database_of_process(url)
    _url(tmp_path / "other.db")
    (tmp_path / "other.db").replace(tmp_path / "s.db")
    after = database_of_process(url)
    assert (_is_open(before), _is_open(after)) == (False, True)


@pytest.mark.parametrize(("option", "groups"), [("", False), ("&group=on", True)])
def test_commits_wait_for_no_others_unless_the_url_says_so(tmp_path: Path, option: str, *, groups: bool) -> None:
    db = database_of_process(_url(tmp_path / "s.db") + option)
    assert isinstance(db.backend, GroupCommit) is groups
