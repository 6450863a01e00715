"""Stores of a worker process: which stay open from task to task, and which are closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError, NotFoundError
from holdfast.records import open_store
from holdfast.records.store import Store
from holdfast.transactions.group_commit import GroupCommit
from holdfast.units import connections
from holdfast.units.connections import store_of_process


@pytest.fixture(autouse=True)
def _own_stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stores: dict[object, Store] = {}
    monkeypatch.setattr(connections, "_open", stores)
    yield
    for store in stores.values():
        store.close()


def _url(path: Path) -> str:
    url = f"sqlite://{path}?synchronous=normal"
    open_store(url, create=True).close()
    return url


def _is_open(store: Store) -> bool:
    try:
        store.database.get_many([b"key"])
    except HoldfastError:
        return False
    return True


def test_the_four_stores_that_were_used_last_stay_open(tmp_path: Path) -> None:
    urls = [_url(tmp_path / f"{number}.db") for number in range(5)]
    stores = [store_of_process(url) for url in urls[:4]]
    assert store_of_process(urls[0]) is stores[0]
    stores.append(store_of_process(urls[4]))
    assert [_is_open(store) for store in stores] == [True, False, True, True, True]
    assert store_of_process(urls[2]) is stores[2]


def test_a_file_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        store_of_process(f"sqlite://{tmp_path}/s.db")
    url = _url(tmp_path / "s.db")
    before = store_of_process(url)
    _url(tmp_path / "other.db")
    (tmp_path / "other.db").replace(tmp_path / "s.db")
    after = store_of_process(url)
    assert (_is_open(before), _is_open(after)) == (False, True)


@pytest.mark.parametrize(("option", "groups"), [("", False), ("&group=on", True)])
def test_commits_wait_for_no_others_unless_the_url_says_so(tmp_path: Path, option: str, *, groups: bool) -> None:
    store = store_of_process(_url(tmp_path / "s.db") + option)
    assert isinstance(store.database, GroupCommit) is groups
