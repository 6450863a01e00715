"""What is found out about a server by trying, what is known without, and what is remembered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from holdfast.errors import AccessDeniedError, HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.runtime import SystemIds
from holdfast.stores.base import (
    Capabilities,
    ObjectInfo,
    Overwrite,
    PutMode,
    Support,
    UploadPage,
    iter_objects,
    iter_uploads,
    iter_uploads_of,
)
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from holdfast.stores.probe import (
    UploadListingMode,
    find_upload_listing_mode,
    make_probe_upload_key,
    store_heeds_conditions,
)
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.interceptors import Fault, FaultMode, Faulty, Recorder
from tests.servers.minio_like import MinioLike

T = TypeVar("T")
IDS = SystemIds()


class _Unknown(MemoryStore):
    """The reference store, of which nothing is known."""

    server = ""

    @property
    def capabilities(self) -> Capabilities:
        known = super().capabilities
        return dataclasses.replace(
            known, lists_uploads=Support.UNKNOWN, conditional_put=Support.UNKNOWN, server=type(self).server
        )


class _NeverLists(_Unknown):
    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        return UploadPage([], None)


class _RefusesToList(_Unknown):
    refusal: HoldfastError = UnsupportedError("the store does not support this request")

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        raise self.refusal


class _RefusesWithCode(_RefusesToList):
    refusal = InvalidRequestError("the store rejects the request: see the code")


class _Denies(_RefusesToList):
    refusal = AccessDeniedError("the store rejects the credentials")


def test_uploads_listed_by_directory() -> None:
    assert find_upload_listing_mode(_Unknown(), "t/_holdfast/") is UploadListingMode.BY_DIRECTORY


def test_minio_lists_by_whole_key_only() -> None:
    store = MinioLike(MemoryStore())
    upload_id = store.create_upload("t/a")
    store.create_upload("t/ab")
    assert list(iter_uploads(store, "t/")) == []
    assert [found.upload_id for found in iter_uploads_of(store, "t/a")] == [upload_id]
    assert find_upload_listing_mode(store, "t/_holdfast/") is UploadListingMode.BY_KEY
    assert [upload.key for upload in iter_uploads(store, "")] == ["t/a", "t/ab"], "the probe's own upload is gone"


def test_uploads_of_one_key_leave_out_its_neighbours() -> None:
    store = MemoryStore()
    wanted = {store.create_upload("t/a") for _ in range(2)}
    for neighbour in ("t/a/b", "t/ab", "t"):
        store.create_upload(neighbour)
    assert {found.upload_id for found in iter_uploads_of(store, "t/a")} == wanted
    with pytest.raises(InvalidRequestError):
        iter_uploads_of(store, "")


def test_minio_forgets_idle_uploads() -> None:
    store = MinioLike(MemoryStore())
    store.create_upload("t/a")
    store.expire_uploads()
    assert list(iter_uploads(store, "")) == []


@pytest.mark.parametrize("store", [_NeverLists(), _RefusesToList(), _RefusesWithCode()])
def test_uploads_that_are_not_listed_at_all(store: MemoryStore) -> None:
    assert find_upload_listing_mode(store, "") is UploadListingMode.NOT_AT_ALL


def test_denied_is_no_answer_and_nothing_stays() -> None:
    inner = _Denies()
    recorded = Recorder()
    with pytest.raises(AccessDeniedError):
        find_upload_listing_mode(InterceptedStore(inner, recorded), "t/")
    assert recorded.count(StoreOperation.ABORT_UPLOAD) == 1


def test_stores_that_say_what_they_do_are_not_asked() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(), recorded)
    assert find_upload_listing_mode(store, "") is UploadListingMode.BY_DIRECTORY
    assert find_upload_listing_mode(InterceptedStore(MemoryStore(limits=None, rename=True), recorded), "") is (
        UploadListingMode.NOT_AT_ALL
    )
    assert store_heeds_conditions(store, "", IDS)
    assert not recorded.calls


def test_a_server_is_asked_once() -> None:
    class Named(_Unknown):
        server = f"http://server-{IDS.token()} bucket"

    first, second = Recorder(), Recorder()
    assert find_upload_listing_mode(InterceptedStore(Named(), first), "") is UploadListingMode.BY_DIRECTORY
    assert find_upload_listing_mode(InterceptedStore(Named(), second), "") is UploadListingMode.BY_DIRECTORY
    assert first.calls
    assert not second.calls


def test_trouble_is_not_remembered() -> None:
    class Named(_Unknown):
        server = f"http://server-{IDS.token()} bucket"

    store = Named()
    faulty = Faulty(Fault(FaultMode.FAIL, StoreOperation.LIST_UPLOADS))
    with pytest.raises(HoldfastError):
        find_upload_listing_mode(InterceptedStore(store, faulty), "")
    assert list(iter_uploads(store, "")) == []
    assert find_upload_listing_mode(store, "") is UploadListingMode.BY_DIRECTORY


class _IgnoresConditions(_Unknown):
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        return super().put(key, data, Overwrite(), metadata)


class _RefusesConditions(_Unknown):
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        if not isinstance(mode, Overwrite):
            raise UnsupportedError("the store does not support this request")
        return super().put(key, data, mode, metadata)


@pytest.mark.parametrize(
    ("kind", "heeds"), [(_Unknown, True), (_IgnoresConditions, False), (_RefusesConditions, False)]
)
def test_conditions_are_tried_at_a_key_that_does_not_stay(kind: type[_Unknown], heeds: bool) -> None:
    store = kind()
    assert store_heeds_conditions(store, "t/_holdfast/", IDS) is heeds
    assert list(iter_objects(store, "")) == []


@pytest.mark.parametrize(
    ("options", "environment", "known"),
    [
        (S3Options(), {}, Support.YES),
        (S3Options(endpoint_url="https://s3.eu-central-1.amazonaws.com"), {}, Support.YES),
        (S3Options(endpoint_url="https://s3.cn-north-1.amazonaws.com.cn"), {}, Support.YES),
        (S3Options(endpoint_url="https://amazonaws.com.example.org"), {}, Support.UNKNOWN),
        (S3Options(endpoint_url="http://127.0.0.1:9000"), {}, Support.UNKNOWN),
        (S3Options(), {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}, Support.UNKNOWN),
        (S3Options(), {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"}, Support.UNKNOWN),
        (
            S3Options(),
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            Support.YES,
        ),
    ],
)
def test_aws_is_not_asked(
    options: S3Options, environment: dict[str, str], known: Support, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert S3Store("bucket", options).capabilities.lists_uploads is known


def test_handles_of_one_bucket_share_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    by_option = S3Store("bucket", S3Options(endpoint_url="http://127.0.0.1:9000"))
    assert S3Store("bucket").capabilities.server == by_option.capabilities.server
    assert S3Store("other").capabilities.server != by_option.capabilities.server


def test_an_endpoint_of_the_profile_is_not_aws(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tmp_path_factory.mktemp("aws") / "config"
    config.write_text("[profile other]\nendpoint_url = http://127.0.0.1:9000\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert S3Store("bucket").capabilities.lists_uploads is Support.UNKNOWN
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert S3Store("bucket").capabilities.lists_uploads is Support.UNKNOWN  # the first request says what is wrong


def test_a_crashed_probe_leaves_an_upload_where_it_was_told_to_work() -> None:
    calls: list[StoreCall] = []

    def remember(call: StoreCall, proceed: Callable[[], T]) -> T:
        calls.append(call)
        return proceed()

    find_upload_listing_mode(InterceptedStore(_Unknown(), remember), "t/_holdfast/")
    assert {call.key for call in calls} == {make_probe_upload_key("t/_holdfast/"), "t/_holdfast/probe/"}
