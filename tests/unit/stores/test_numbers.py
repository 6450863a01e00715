"""Every store refuses numbers that mean nothing, and accepts large ones, before it asks anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import MultipartStore
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "local", "namespace"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MultipartStore]:
    """A store with the objects a/f and a/g."""
    made: dict[str, Callable[[], MultipartStore]] = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(str(tmp_path / "local")),
        "namespace": lambda: _namespace(tmp_path),
    }
    found = made[request.param]()
    found.put("a/f", b"12")
    found.put("a/g", b"3" * 100)
    yield found
    found.close()


def _namespace(place: Path) -> NamespaceStore:
    """Return a store in a real database: a memory store accepts what a driver would refuse."""
    configuration = Configuration(name="ns", data=str(place / "data"), superuser="root", inline_bytes=10)
    init_namespace(configuration, f"sqlite:///{place}/ns.db", register=False)
    return NamespaceStore(open_namespace(f"sqlite:///{place}/ns.db", user="root"))


@pytest.mark.parametrize("size", [0, -1, -(2**70), 1.5, True])
def test_a_page_without_objects(store: MultipartStore, size: Any) -> None:
    with pytest.raises(InvalidRequestError, match="a page has at least one object"):
        store.list_page("", max_keys=size)


@pytest.mark.parametrize("size", [2**31 - 2, 2**31, 2**63 - 1, 2**63, 2**70])
def test_a_page_of_any_size(store: MultipartStore, size: int) -> None:
    page = store.list_page("", max_keys=size)
    assert ([one.key for one in page.objects], page.next_token) == (["a/f", "a/g"], None)


@pytest.mark.parametrize("given", [(-1, None), (0, -1), (2**63, 1), (0, 2**70)])
def test_a_range_of_no_object(store: MultipartStore, given: tuple[int, int | None]) -> None:
    for key in ("a/f", "a/g"):
        with pytest.raises(InvalidRequestError, match="a range begins at 0 or later"):
            store.get(key, *given)


def test_a_range_that_is_larger_than_the_object(store: MultipartStore) -> None:
    most = 2**63 - 1
    for key, content in (("a/f", b"12"), ("a/g", b"3" * 100)):
        assert store.get(key, 1, most) == content[1:]
        assert store.get(key, most) == store.get(key, most, most) == store.get(key, 100, 1) == b""


@pytest.mark.parametrize("number", [0, -1, 100_001, 2**70, 1.5, True])
def test_a_part_number_out_of_range(store: MultipartStore, number: Any) -> None:
    upload = store.create_upload("u")
    with pytest.raises(InvalidRequestError, match="a part number is out of range"):
        store.upload_part("u", upload, number, b"1")
    part = store.upload_part("u", upload, 1, b"1")
    assert [one.upload_id for one in store.list_uploads_page("").uploads] == [upload]
    store.complete_upload("u", upload, [part])


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_page_of_a_directory_without_entries(tmp_path: Path, limit: Any) -> None:
    with _namespace(tmp_path).namespace as namespace, pytest.raises(InvalidRequestError, match="at least one entry"):
        namespace.list_page("/", limit=limit)


@pytest.mark.parametrize("limit", [2**31, 2**63 - 1, 2**63, 2**70])
def test_a_page_of_a_directory_of_any_size(tmp_path: Path, limit: int) -> None:
    with _namespace(tmp_path).namespace as namespace:
        namespace.write_file("/d/f", b"1")
        for path in ("/d", "/d/f"):
            page = namespace.list_page(path, limit=limit)
            assert ([one.name for one in page.entries], page.more) == (["f"], False)
