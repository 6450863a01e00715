"""A listing in pages shows every file once, wherever a page ends."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import iter_uploads
from tests.namespace_world import World

_KEYS = sorted(
    ["a-b", "a/x", "a/y/z", "a.b", "a0", "aa/x", "a-", "a-b!/x", "b", "b-/x", "b-c", "ab", "ac/c", "a b/x"],
    key=lambda key: key.split("/"),
)


@pytest.fixture(scope="module")
def store() -> NamespaceStore:
    store = NamespaceStore(World().client())
    for key in _KEYS:
        store.put(key, b"")
    return store


def _pages(store: NamespaceStore, prefix: str, size: int) -> list[str]:
    found: list[str] = []
    token: str | None = None
    while True:
        page = store.list_page(prefix, max_keys=size, token=token)
        found += [one.key for one in page.objects]
        token = page.next_token
        if token is None:
            return found


@pytest.mark.parametrize("prefix", ["", "a", "a-", "a-b", "a/", "a/y", "b", "b-", "aa", "none"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_of_a_prefix_that_is_the_name_of_a_directory(store: NamespaceStore, prefix: str, size: int) -> None:
    """The files of the directory ``a`` come before ``a-b``."""
    assert _pages(store, prefix, size) == [key for key in _KEYS if key.startswith(prefix)]


@pytest.mark.parametrize("prefix", ["", "a", "b"])
def test_a_listing_begins_after_any_key(store: NamespaceStore, prefix: str) -> None:
    for after in (*_KEYS, "a", "a!", "a/", "a/x/y", "b-", "zz"):
        found = [one.key for one in store.list_page(prefix, start_after=after).objects]
        assert found == [key for key in _KEYS if key.startswith(prefix) and key.split("/") > after.split("/")], after


def test_pages_of_uploads_of_which_some_have_none_below_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.namespace.object_store.store._UPLOADS", 2)
    store = NamespaceStore(World().client())
    for number in range(7):
        store.create_upload(f"{'job' if number in (0, 6) else 'other'}/{number}")
    assert sorted(one.key for one in iter_uploads(store, "job/")) == ["job/0", "job/6"]


def test_a_listing_of_names_that_are_not_unicode_is_refused(store: NamespaceStore) -> None:
    with pytest.raises(InvalidRequestError, match="the prefix of a listing must be valid Unicode"):
        store.list_page("a/\udcff")
    with pytest.raises(InvalidRequestError, match="the start_after of a listing must be valid Unicode"):
        store.list_page("a/", start_after="a/\udcff")
