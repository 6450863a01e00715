"""The walks over pages: they hold the checks that no server may break."""

from __future__ import annotations

import itertools

import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.stores.base import (
    Change,
    Complete,
    Delete,
    ObjectInfo,
    ObjectPage,
    Part,
    Put,
    Require,
    RequireEmpty,
    Update,
    UploadInfo,
    UploadPage,
    as_renaming,
    as_transactional,
    batched_keys,
    iter_objects,
    iter_uploads,
    multipart,
)
from holdfast.stores.checks import check_changes, check_key, check_move
from holdfast.stores.memory import MemoryStore


class _PagesOfUploads(MemoryStore):
    """Answers with pages that were prepared."""

    def __init__(self, pages: dict[tuple[str, str] | None, UploadPage]) -> None:
        super().__init__()
        self._pages = pages

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        return self._pages[marker]


def test_uploads_of_neighbours_are_filtered() -> None:
    """facts: pitfall 1, swift returned ``a/dataset1`` for the prefix ``a/dataset1/``."""
    uploads = [UploadInfo("a/dataset1", "1"), UploadInfo("a/dataset1/x", "2"), UploadInfo("a/dataset10/x", "3")]
    store = _PagesOfUploads({None: UploadPage(uploads, None)})
    assert [upload.upload_id for upload in iter_uploads(store, "a/dataset1/")] == ["2"]


def test_uploads_are_listed_below_directories_only() -> None:
    """facts: pitfall 1, a prefix has to end in a slash, or ``dataset1`` reaches into ``dataset10``."""
    with pytest.raises(InvalidRequestError, match="end the prefix in '/'"):
        list(iter_uploads(MemoryStore(), "a/dataset1"))


def test_unsorted_markers_are_followed() -> None:
    """facts: SeaweedFS's pages are not sorted; only a marker that comes back would make the walk endless."""
    pages = {
        None: UploadPage([UploadInfo("t/m", "1")], ("t/m", "1")),
        ("t/m", "1"): UploadPage([UploadInfo("t/a", "2")], ("t/a", "2")),
        ("t/a", "2"): UploadPage([UploadInfo("t/z", "3")], None),
    }
    assert [upload.key for upload in iter_uploads(_PagesOfUploads(pages), "t/")] == ["t/m", "t/a", "t/z"]


def test_markers_that_come_back_are_an_error() -> None:
    """facts: pitfall 2, the token must advance, else error."""
    pages = {
        None: UploadPage([], ("t/m", "1")),
        ("t/m", "1"): UploadPage([], ("t/n", "1")),
        ("t/n", "1"): UploadPage([], ("t/m", "1")),
    }
    with pytest.raises(CorruptDataError, match="does not advance"):
        list(iter_uploads(_PagesOfUploads(pages), "t/"))


class _SamePageAlways(MemoryStore):
    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        return ObjectPage([ObjectInfo("t/a", 1), ObjectInfo("other", 1)], "the same")


def test_listing_that_does_not_advance_is_an_error() -> None:
    walk = iter_objects(_SamePageAlways(), "t/")
    assert [info.key for info in itertools.islice(walk, 2)] == ["t/a", "t/a"]
    with pytest.raises(CorruptDataError, match="does not advance"):
        next(walk)


def test_capabilities_decide_what_a_store_is() -> None:
    with pytest.raises(UnsupportedError, match="no multipart"):
        multipart(MemoryStore(limits=None))
    with pytest.raises(UnsupportedError, match="no atomic rename"):
        as_renaming(MemoryStore())
    assert as_renaming(MemoryStore(rename=True)).capabilities.rename


@pytest.mark.parametrize("key", ["", "/a", "a\0b", "\ud800", "x" * 1025, "é" * 513])
def test_keys_that_no_store_takes(key: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_key(key)


@pytest.mark.parametrize("key", ["a", "a/b", "x" * 1024, "é" * 512, "a b+%"])
def test_keys_that_are_fine(key: str) -> None:
    check_key(key)


@pytest.mark.parametrize(
    ("source", "target"), [("", "b"), ("a", ""), ("/a", "b"), ("a/", "b"), ("a", "b/"), ("a", "a"), ("a", "a/b")]
)
def test_moves_of_directories_that_cannot_be(source: str, target: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_move(source, target)


@pytest.mark.parametrize(("source", "target"), [("a", "ab"), ("a/b", "a"), ("a b", "a b+"), ("a", "b/a")])
def test_moves_of_directories_that_may_be(source: str, target: str) -> None:
    check_move(source, target)


def test_batched_keys() -> None:
    assert list(batched_keys([])) == []
    assert [len(batch) for batch in batched_keys(map(str, range(2500)))] == [1000, 1000, 500]
    assert list(batched_keys("abc", 2)) == [["a", "b"], ["c"]]


def test_an_update_without_an_etag_is_refused() -> None:
    """Scenario 79: an empty etag would be no condition at all."""
    with pytest.raises(InvalidRequestError, match="needs the etag"):
        Update("")


def test_changes_that_no_store_could_make_are_refused() -> None:
    part = Part(1, "etag", 1)
    check_changes([])
    check_changes(
        [Put("a", b""), Require("a"), Require("a"), RequireEmpty("d/"), Complete("b", "id", (part,)), Delete("c")]
    )
    refused: list[tuple[str, list[Change]]] = [
        ("two changes", [Put("a", b""), Delete("a")]),
        ("two changes", [Complete("a", "1", (part,)), Complete("a", "2", (part,))]),
        ("numbered from 1", [Complete("a", "1", ())]),
        ("must not be empty", [Put("", b"")]),
        ("must not be empty", [Delete("/a")]),
        ("must end in '/'", [RequireEmpty("d")]),
    ]
    for words, changes in refused:
        with pytest.raises(InvalidRequestError, match=words):
            check_changes(changes)


def test_a_secret_in_an_object_is_not_shown() -> None:
    assert "secret" not in repr(Put("a", b"secret"))


def test_a_store_without_transactions_is_not_taken_for_one() -> None:
    with pytest.raises(UnsupportedError, match="several changes"):
        as_transactional(MemoryStore())
    assert as_transactional(MemoryStore(transactions=True)).capabilities.transactions
