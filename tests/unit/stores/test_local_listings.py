"""Local listings in pages: each directory is read once, and no listing mistakes another one's place for its own."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError
from holdfast.stores.base import ObjectPage, iter_objects
from holdfast.stores.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def _put(store: LocalStore, *keys: str) -> list[str]:
    for key in keys:
        store.put(key, b"1")
    return sorted(keys)


def _keys(page: ObjectPage) -> list[str]:
    return [info.key for info in page.objects]


def test_a_listing_in_pages_reads_each_directory_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = _put(store, *(f"t/{name}{number}" for name in ("a", "b", "m/") for number in range(9)))
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(Path(path).name) or scandir(path))
    assert [info.key for info in iter_objects(store, "t/", page_size=2)] == keys
    assert read == ["t", "m"]


def test_more_listings_than_wait_go_on_where_they_were(store: LocalStore) -> None:
    keys = _put(store, *(f"{name}/{number}" for name in "tu" for number in range(9)))
    walks = [iter_objects(store, prefix, page_size=size) for prefix in ("t/", "u/") for size in (1, 2, 3, 4, 5)]
    found = list(zip(*walks, strict=True))  # a step of each in turn
    for number, walk in enumerate(zip(*found, strict=True)):
        assert [info.key for info in walk] == [key for key in keys if key.startswith("tu"[number // 5])]


def test_a_token_is_good_twice(store: LocalStore) -> None:
    keys = _put(store, *(f"a/{number}" for number in range(5)))
    token = store.list_page("a/", max_keys=2).next_token
    assert [_keys(store.list_page("a/", "", 2, token)) for _ in range(3)] == [keys[2:4]] * 3


def test_a_token_is_good_in_another_process(store: LocalStore, tmp_path: Path) -> None:
    keys = _put(store, "a/1", "b/2=3/c", "d")
    token = store.list_page("", max_keys=2).next_token
    assert _keys(LocalStore(str(tmp_path)).list_page("", "", 2, token)) == keys[2:]


def test_a_listing_sees_what_was_there_before_it_began(store: LocalStore) -> None:
    """An older one that has come to the same place does not know of it."""
    _put(store, "a", "b", "c", "e")
    older = store.list_page("", max_keys=2).next_token
    _put(store, "d")
    newer = store.list_page("", max_keys=2).next_token
    store.list_page("", "", 1, older)
    assert _keys(store.list_page("", "", 5, newer)) == ["c", "d", "e"]


def test_what_went_since_the_directory_was_read_is_left_out(store: LocalStore) -> None:
    _put(store, *"abcde")
    walk = iter_objects(store, "", page_size=1)
    first = [info.key for info in itertools.islice(walk, 1)]
    store.delete("d")
    assert first + [info.key for info in walk] == ["a", "b", "c", "e"]


def test_a_listing_that_failed_can_be_repeated(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(store, "a/1", "b/1", "c/1")
    token = store.list_page("", max_keys=1).next_token
    scandir = os.scandir

    def refused(path: str) -> object:
        if path.endswith("/c"):
            raise PermissionError(13, "no")
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refused)
        with pytest.raises(AccessDeniedError):
            store.list_page("", "", 5, token)
    assert _keys(store.list_page("", "", 5, token)) == ["b/1", "c/1"]
