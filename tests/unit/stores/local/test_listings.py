"""Local listings in pages: each directory is read once, and no listing mistakes another one's place for its own."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, HoldfastError
from holdfast.stores.base import ObjectInfo, ObjectPage, iter_objects
from holdfast.stores.local import walk
from holdfast.stores.local.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def _put(store: LocalStore, *keys: str) -> list[str]:
    for key in keys:
        store.put(key, b"1")
    return sorted(keys)


def _keys(page: ObjectPage) -> list[str]:
    return [info.key for info in page.objects]


def test_a_listing_in_pages_reads_each_directory_once(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = sorted(f"t/{name}{number:04}" for name in ("a", "b", "m/") for number in range(900))
    for key in keys:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"1")
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(Path(path).name) or scandir(path))
    assert [info.key for info in iter_objects(store, "t/")] == keys
    assert read == ["t", "m"]
    read.clear()
    assert [info.key for info in iter_objects(store, "t/", page_size=7)] == keys
    assert read == ["t", "t", "m"], "who comes back for a second small page goes on"


@pytest.mark.parametrize("smallest", [1, 1000])
def test_listings_in_turn_go_on_where_they_were(tmp_path: Path, store: LocalStore, smallest: int) -> None:
    """Also when more of them wait than are kept."""
    keys = [f"t/{number:05}" for number in range(2 * smallest + 9)]
    (tmp_path / "t").mkdir()
    for key in keys:
        (tmp_path / key).write_bytes(b"1")
    walks = [iter_objects(store, "t/", page_size=smallest + number) for number in range(20)]
    for key, infos in zip(keys, zip(*walks, strict=True), strict=True):  # a step of each in turn
        assert {info.key for info in infos} == {key}


def test_a_listing_costs_the_same_at_its_end_as_at_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing piles up from page to page: a hundred thousand layers would end the process."""
    infos = [ObjectInfo(f"{number:06}", 1) for number in range(100_000)]
    monkeypatch.setattr(
        walk, "_walk_files", lambda _root, _directory, _prefix, start_after: iter(infos[int(start_after or -1) + 1 :])
    )
    listings, token, found = walk.PagedTreeListing("/"), None, []
    while True:
        page = listings.page("", "", 1, token)
        found += page.objects
        token = page.next_token
        if token is None:
            break
    assert found == infos


def test_a_token_is_good_twice(store: LocalStore) -> None:
    keys = _put(store, *(f"a/{number}" for number in range(5)))
    token = store.list_page("a/", max_keys=2).next_token
    assert [_keys(store.list_page("a/", "", 2, token)) for _ in range(3)] == [keys[2:4]] * 3


def test_a_token_is_good_in_another_process(store: LocalStore, tmp_path: Path) -> None:
    keys = _put(store, "a/1", "b/2=3/c", "d")
    token = store.list_page("", max_keys=2).next_token
    assert _keys(LocalStore(str(tmp_path)).list_page("", "", 2, token)) == keys[2:]


def test_a_listing_sees_what_was_there_before_it_began(tmp_path: Path, store: LocalStore) -> None:
    """An older one that has come to the same place does not know of it."""
    keys = [f"{number:04}" for number in range(0, 2500, 2)]
    for key in keys:
        (tmp_path / key).write_bytes(b"1")
    older = store.list_page("", max_keys=1000).next_token
    _put(store, "2101")
    newer = store.list_page("", max_keys=1000).next_token
    assert _keys(store.list_page("", "", 1000, older)) == keys[1000:]
    assert _keys(store.list_page("", "", 1000, newer)) == sorted([*keys[1000:], "2101"])


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


# --- what cannot be looked at -----------------------------------------------------------------------------------------
def test_a_link_below_a_file_hides_nothing(tmp_path: Path, store: LocalStore) -> None:
    """Its target goes through a file, which the system reports as it does a directory that is none."""
    keys = _put(store, "a", "b", "p=1/c")
    (tmp_path / "latest").symlink_to("a/part")
    (tmp_path / "p=1" / "latest").symlink_to("c/part")
    (tmp_path / "self").symlink_to("self")
    assert [info.key for info in iter_objects(store, "")] == keys


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_file_that_cannot_be_looked_at_is_no_file_that_is_not_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    _put(store, "a", "b", "c")
    status = os.stat

    def failing(path: str) -> os.stat_result:
        if path.endswith("/b"):
            raise OSError(code, os.strerror(code))
        return status(path)

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises((HoldfastError, OSError)):
        list(iter_objects(store, ""))


def test_deep_trees_are_listed(tmp_path: Path) -> None:
    """Deeper than Python's own stack of calls."""
    root = str(tmp_path / "deep")
    folders = [root + "/d" * depth for depth in range(1200)]
    for folder in folders:
        os.mkdir(folder)
    try:
        Path(folders[-1], "file").write_bytes(b"1")
        assert [info.key for info in iter_objects(LocalStore(root), "")] == ["d/" * 1199 + "file"]
    finally:
        os.unlink(f"{folders[-1]}/file")
        for folder in reversed(folders):
            os.rmdir(folder)
