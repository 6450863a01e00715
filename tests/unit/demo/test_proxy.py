"""The stalling proxy forwards everything except the completions beyond the allowed number, and drops those."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from holdfast.demo.proxy import StallingProxy
from holdfast.errors import OutcomeUnknownError
from holdfast.stores.base import iter_objects, iter_uploads
from holdfast.stores.s3.options import S3Options
from holdfast.stores.s3.store import S3Store
from holdfast.testing.moto import MotoServer
from tests.patience import PATIENCE_S, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[MotoServer]:
    with MotoServer() as server:
        server.create_bucket("stalled")
        yield server


def store_at(url: str) -> S3Store:
    return S3Store(
        "stalled", S3Options(endpoint_url=url, region="us-east-1", access_key="a", secret_key="b", max_attempts=1)
    )


def test_only_the_allowed_uploads_are_completed(server: MotoServer) -> None:
    with StallingProxy(server.endpoint_url, allowed=1) as proxy:
        store = store_at(proxy.url)
        keys = ["t/one two+ü", "t/b"]
        store.put("t/small", b"x" * 100_000)
        assert store.get("t/small", 10, 5) == b"xxxxx"
        assert store.head("t/small").size_bytes == 100_000
        uploads = {key: store.create_upload(key) for key in keys}
        parts = {key: store.upload_part(key, uploads[key], 1, b"rows") for key in keys}
        store.complete_upload(keys[0], uploads[keys[0]], [parts[keys[0]]])
        raised: list[BaseException] = []

        def complete() -> None:
            try:
                store.complete_upload(keys[1], uploads[keys[1]], [parts[keys[1]]])
            except OutcomeUnknownError as error:
                raised.append(error)

        thread = threading.Thread(target=complete)
        thread.start()
        wait_until(lambda: proxy.stalled, "the proxy has stalled no request")
        assert proxy.stalled == 1
    thread.join(PATIENCE_S)
    assert len(raised) == 1
    store.close()
    behind = store_at(server.endpoint_url)
    assert [info.key for info in iter_objects(behind, "t/")] == ["t/one two+ü", "t/small"]
    assert [upload.key for upload in iter_uploads(behind, "t/")] == ["t/b"]
    behind.close()
