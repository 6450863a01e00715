"""Test the S3 store on a real server: credentials, buckets, other processes, lost replies, a killed server."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, HoldfastError, NotFoundError, OutcomeUnknownError, PreconditionError
from holdfast.runtime import ThreadRunner
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import Create, Part, iter_objects, iter_uploads
from holdfast.stores.s3.store import S3Store
from tests.integration.lossy_proxy import LossyProxy
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module", autouse=True)
def bucket(server: SeaweedServer) -> None:
    server.create_bucket("bucket")


@pytest.fixture
def store(server: SeaweedServer) -> Iterator[S3Store]:
    opened = S3Store("bucket", server.options)
    yield opened
    opened.close()


@pytest.fixture
def proxy(server: SeaweedServer) -> Iterator[LossyProxy]:
    with LossyProxy(server.endpoint_url.removeprefix("http://")) as running:
        yield running


@pytest.fixture
def lossy(server: SeaweedServer, proxy: LossyProxy) -> Iterator[S3Store]:
    opened = S3Store("bucket", dataclasses.replace(server.options, endpoint_url=proxy.url))
    yield opened
    opened.close()


def _every_call(store: S3Store) -> Iterator[HoldfastError]:
    """Return the error of each kind of request."""
    for call in (
        lambda: store.put("a", b"1"),
        lambda: store.put("a", b"1", Create()),
        lambda: store.get("a"),
        lambda: store.head("a"),
        lambda: store.list_page("a/"),
        lambda: store.create_upload("a"),
        lambda: store.list_uploads_page("a/"),
        lambda: store.delete_many(["a", "b"]),
    ):
        with pytest.raises(HoldfastError) as caught:
            call()
        yield caught.value
    store.close()


def test_a_missing_bucket(server: SeaweedServer) -> None:
    """A missing bucket is reported in one sentence with the next act; Holdfast does not create it."""
    store = S3Store("no-such-bucket", server.options)
    errors = list(_every_call(store))
    assert {type(error) for error in errors} == {NotFoundError}
    head = errors.pop(3)  # an answer to HEAD has no body: it cannot tell a bucket from an object
    assert "check the bucket and the key" in str(head)
    sentence = "no such bucket: create it or check the url bucket='no-such-bucket'"
    assert all(str(error).startswith(sentence) for error in errors), errors


@pytest.mark.parametrize("wrong", [{"secret_key": "canary-wrong-secret"}, {"access_key": "canary-wrong-access"}])
def test_wrong_credentials(server: SeaweedServer, wrong: dict[str, str]) -> None:
    store = S3Store("bucket", dataclasses.replace(server.options, **wrong))
    for error in _every_call(store):
        assert type(error) is AccessDeniedError
        assert str(error).startswith("the store rejects the credentials: check them and the policy")
        assert "canary" not in repr(error) + repr(error.__cause__)
    assert "canary" not in repr(store)


# --- lost replies -----------------------------------------------------------------------------------------------------
def test_create_whose_reply_is_lost(lossy: S3Store, proxy: LossyProxy) -> None:
    """facts: LOST RESPONSE. The put took effect; the caller gets an unknown outcome, reads, and finds its object."""
    proxy.lose_once("PUT", "lost-create")
    with pytest.raises(OutcomeUnknownError):
        lossy.put("lost-create", b"mine", Create())
    assert proxy.dropped == [("PUT", "/bucket/lost-create", 200)]
    assert lossy.get("lost-create") == b"mine"
    with pytest.raises(PreconditionError):
        lossy.put("lost-create", b"mine", Create())  # what a blind retry would have met


def test_complete_whose_reply_is_lost(lossy: S3Store, proxy: LossyProxy) -> None:
    """facts: A-15. A HEAD request with size and own metadata settles it, not a retry."""
    upload_id = lossy.create_upload("lost-complete", {"holdfast-job": "j1"})
    parts = [lossy.upload_part("lost-complete", upload_id, 1, b"rows")]
    proxy.lose_once("POST", "lost-complete")
    with pytest.raises(OutcomeUnknownError):
        lossy.complete_upload("lost-complete", upload_id, parts)
    assert [status for _, _, status in proxy.dropped] == [200]
    found = lossy.head("lost-complete")
    assert (found.size_bytes, found.metadata["holdfast-job"]) == (4, "j1")


def test_requests_that_may_be_repeated_survive_a_lost_reply(lossy: S3Store, proxy: LossyProxy) -> None:
    proxy.lose_once("PUT", "lost-put")
    lossy.put("lost-put", b"1")
    proxy.lose_once("PUT", "partNumber")
    upload_id = lossy.create_upload("lost-part")
    part = lossy.upload_part("lost-part", upload_id, 1, b"rows")
    proxy.lose_once("DELETE", "uploadId")
    lossy.abort_upload("lost-part", upload_id)
    proxy.lose_once("POST", "delete")
    lossy.delete_many(["lost-put"])
    proxy.lose_once("GET", "list-type")
    assert list(iter_objects(lossy, "lost-p")) == []
    assert len(proxy.dropped) == 5
    assert part.size_bytes == 4
    assert list(iter_uploads(lossy, "")) == []


# --- processes --------------------------------------------------------------------------------------------------------
_UPLOADER = """
import pickle, sys
store = pickle.loads(sys.stdin.buffer.read())
upload_id = store.create_upload("elsewhere")
parts = [store.upload_part("elsewhere", upload_id, n, body) for n, body in ((1, b"1" * 5 * 2**20), (2, b"2"))]
print(upload_id, *(part.etag for part in parts))
"""


def test_another_process_uploads(store: S3Store) -> None:
    """The store is pickled to the task, as Spark does it; the driver completes the upload."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _UPLOADER],
        input=pickle.dumps(store),
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    upload_id, *etags = done.stdout.decode().split()
    sizes = (5 * 2**20, 1)
    parts = [Part(number, etag, sizes[number - 1]) for number, etag in enumerate(etags, 1)]
    assert list(iter_objects(store, "elsewhere")) == []
    store.complete_upload("elsewhere", upload_id, parts)
    assert store.get("elsewhere") == b"1" * 5 * 2**20 + b"2"


def test_many_threads(store: S3Store) -> None:
    """facts: one client serves many threads, and every object has the right content."""

    def cycle(number: int) -> bool:
        key, body = f"threads/{number:03d}", b"%d" % number * 100
        upload_id = store.create_upload(key)
        store.complete_upload(key, upload_id, [store.upload_part(key, upload_id, 1, body)])
        return store.get(key) == body

    assert all(ThreadRunner(32).map(cycle, range(200)))
    assert len(list(iter_objects(store, "threads/", page_size=33))) == 200
    assert list(iter_uploads(store, "threads/")) == []


# --- the server -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_pending_uploads_survive_a_killed_server(tmp_path: Path) -> None:
    """facts: weed keeps pending uploads over kill -9 and restart."""
    server = SeaweedServer(tmp_path / "weed").start()
    try:
        server.create_bucket("bucket")
        store = S3Store("bucket", server.options)
        store.put("t/object", b"1")
        upload_id = store.create_upload("t/a")
        part = store.upload_part("t/a", upload_id, 1, b"rows")
        store.close()
        server.kill()
        assert server.pid is None
        server.start()
        store = S3Store("bucket", server.options)
        assert [(upload.key, upload.upload_id) for upload in iter_uploads(store, "t/")] == [("t/a", upload_id)]
        store.complete_upload("t/a", upload_id, [part])
        assert [store.get(info.key) for info in iter_objects(store, "t/")] == [b"rows", b"1"]
        store.close()
    finally:
        server.stop()
    assert (tmp_path / "weed").is_dir()  # the caller's directory is not removed


_STARTER = """
import json, os, signal
from holdfast.s3_server import SeaweedServer
server = SeaweedServer().start()
print(json.dumps([server.pid, str(server._home)]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_no_server_outlives_a_killed_parent() -> None:
    died = subprocess.run([sys.executable, "-c", _STARTER], capture_output=True, timeout=PATIENCE_S, check=False)
    assert died.returncode == -9
    pid, home = json.loads(died.stdout)
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z", "the server runs on")
    shutil.rmtree(home)
