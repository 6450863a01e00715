"""S3: what each answer, and each missing answer, means; retries; credentials; processes. Servers: prepared answers."""

from __future__ import annotations

import functools
import logging
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable

import botocore.session
import pytest
import urllib3
from botocore.exceptions import ResponseStreamingError

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import Create, Part
from holdfast.stores.s3 import S3Options, store
from holdfast.stores.s3.store import S3Store
from tests.clocks import SimulatedClock, StillClock
from tests.patience import PATIENCE_S
from tests.unit.stores.s3.scripted_server import LOST, Answer, error
from tests.unit.stores.s3.scripted_store import CANARIES, PUT_DONE, Script, scripted_options

COMPLETED = Answer(body="<CompleteMultipartUploadResult><ETag>&quot;e9&quot;</ETag></CompleteMultipartUploadResult>")
PARTS_LISTED = Answer(body="<ListPartsResult><UploadId>u</UploadId></ListPartsResult>")
FAILED_WITH_200 = error("InternalError", 200)
PARTS = [Part(1, "p1", 3)]


def test_numbers_that_mean_nothing_are_not_sent(script: Script) -> None:
    """S3 would answer a range before the start with the whole object, and a page without objects with an empty one."""
    store, server = script()
    calls: list[Callable[[], object]] = [
        lambda: store.get("a", -1),
        lambda: store.get("a", 0, -1),
        lambda: store.list_page("", max_keys=0),
        lambda: store.upload_part("a", "u", 10_001, b""),
    ]
    for call in calls:
        with pytest.raises(InvalidRequestError):
            call()
    assert server.requests == []


# --- completion -------------------------------------------------------------------------------------------------------
def test_complete(script: Script) -> None:
    store, server = script(COMPLETED)
    assert store.complete_upload("t/a", "u", PARTS).etag == "e9"
    assert server.requests == [("POST", "/bucket/t/a?uploadId=u")]
    assert b"<PartNumber>1</PartNumber>" in server.bodies[0]


def test_complete_names_the_checksums_of_parts_that_have_any(script: Script) -> None:
    """S3 wants those of an upload that somebody made with checksums: Hadoop with fs.s3a.create.checksum.algorithm."""
    store, server = script(COMPLETED)
    store.complete_upload("t/a", "u", [Part(1, "p1", 3, "CRC32C", "mnG7TA=="), Part(2, "p2", 3)])
    assert b"<Part><ChecksumCRC32C>mnG7TA==</ChecksumCRC32C><ETag>" in server.bodies[0]
    assert server.bodies[0].count(b"Checksum") == 2


def test_complete_that_answers_no_etag(script: Script) -> None:
    """facts: radosgw's answer to Complete has an empty ETag."""
    store, _ = script(Answer(body="<CompleteMultipartUploadResult/>"))
    done = store.complete_upload("a", "u", PARTS)
    assert (done.etag, done.size_bytes) == ("", 3)


def test_complete_that_answers_200_with_an_error_is_no_success(script: Script) -> None:
    """facts: pitfall 5 and E5. The upload is still there: nothing happened, it is repeated."""
    store, server = script(FAILED_WITH_200, PARTS_LISTED, COMPLETED)
    assert store.complete_upload("a", "u", PARTS).etag == "e9"
    assert [method for method, _ in server.requests] == ["POST", "GET", "POST"]


@pytest.mark.parametrize("failed", [FAILED_WITH_200, error("InternalError", 500), Answer(500)])
def test_complete_that_fails_for_an_upload_that_is_gone_does_not_spin(script: Script, failed: Answer) -> None:
    """facts: pitfall 8, moto and radosgw answer 500 for a missing upload."""
    store, server = script(failed, error("NoSuchUpload", 404))
    with pytest.raises(NotFoundError, match="no such upload"):
        store.complete_upload("a", "u", PARTS)
    assert len(server.requests) == 2


def test_complete_that_fails_and_cannot_be_settled(script: Script) -> None:
    store, server = script(error("InternalError", 500))
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        store.complete_upload("a", "u", PARTS)
    assert [method for method, _ in server.requests] == ["POST", "GET"]


def test_complete_of_a_missing_upload_is_sent_once(script: Script) -> None:
    """facts: pitfall 4, a completion's retry is not portable; HEAD settles it, in the commit layer."""
    store, server = script(error("NoSuchUpload", 404))
    with pytest.raises(NotFoundError, match="no such upload"):
        store.complete_upload("a", "u", PARTS)
    assert len(server.requests) == 1


def test_complete_whose_reply_is_lost_is_never_repeated_blindly(script: Script) -> None:
    """facts: LOST RESPONSE."""
    store, server = script(LOST)
    with pytest.raises(OutcomeUnknownError):
        store.complete_upload("a", "u", PARTS)
    assert len(server.requests) == 1


def test_complete_is_repeated_when_the_store_is_busy(script: Script) -> None:
    """facts: A-17, 503 SlowDown did nothing."""
    store, server = script(error("SlowDown", 503), error("SlowDown", 503), COMPLETED)
    assert store.complete_upload("a", "u", PARTS).etag == "e9"
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", ["InvalidPart", "InvalidPartOrder", "EntityTooSmall", "MalformedXML"])
def test_complete_with_wrong_parts(script: Script, code: str) -> None:
    """facts: A-18."""
    store, server = script(error(code, 400))
    with pytest.raises(InvalidRequestError, match=code):
        store.complete_upload("a", "u", PARTS)
    assert len(server.requests) == 1


def test_part_of_an_upload_that_is_gone(script: Script) -> None:
    """moto answers 500 to a part after the abort."""
    store, server = script(error("InternalError", 500), error("NoSuchUpload", 404))
    with pytest.raises(NotFoundError):
        store.upload_part("a", "u", 1, b"1")
    assert len(server.requests) == 2


def test_part_is_repeated(script: Script) -> None:
    store, server = script(LOST, error("InternalError", 500), PARTS_LISTED, PUT_DONE)
    assert store.upload_part("a", "u", 1, b"123") == Part(1, "e1", 3)
    assert [method for method, _ in server.requests] == ["PUT", "PUT", "GET", "PUT"]


def test_abort_of_a_missing_upload(script: Script) -> None:
    store, _ = script(error("NoSuchUpload", 404))
    store.abort_upload("a", "u")


def test_abort_in_a_missing_bucket(script: Script) -> None:
    store, _ = script(error("NoSuchBucket", 404))
    with pytest.raises(NotFoundError, match="no such bucket: create it or check the url bucket='bucket'") as caught:
        store.abort_upload("a", "u")
    assert "key" not in caught.value.variables, "it may be a record of Holdfast's own, which nobody has named"


# --- other requests ---------------------------------------------------------------------------------------------------
def test_overwriting_put_is_repeated(script: Script) -> None:
    store, server = script(LOST, error("InternalError", 500), error("SlowDown", 503), PUT_DONE)
    assert store.put("a", b"1").etag == "e1"
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error("NoSuchBucket", 404), NotFoundError),
        (error("AccessDenied", 403), AccessDeniedError),
        (error("InvalidAccessKeyId", 403), AccessDeniedError),
        (error("SignatureDoesNotMatch", 403), AccessDeniedError),
        (error("ExpiredToken", 400), AccessDeniedError),
        (error("RequestTimeTooSkewed", 403), AccessDeniedError),
        (error("InsufficientStorage", 507), StorageFullError),
        (error("QuotaExceeded", 403), StorageFullError),
        (error("SlowDown", 503), UnavailableError),
        (error("TooManyRequests", 429), UnavailableError),
        (error("RequestTimeout", 400), UnavailableError),
        (error("InternalError", 500), OutcomeUnknownError),
        (error("NotImplemented", 501), UnsupportedError),
        (error("InvalidArgument", 400), InvalidRequestError),
        (Answer(403), AccessDeniedError),
        (Answer(502, "<html>not of S3</html>"), OutcomeUnknownError),
    ],
)
def test_answers_to_a_put(script: Script, answer: Answer, expected: type[HoldfastError]) -> None:
    store, _ = script(answer)
    with pytest.raises(HoldfastError) as caught:
        store.put("a", b"1")
    assert type(caught.value) is expected
    assert caught.value.__cause__ is not None
    assert caught.value.message[0].islower()


def test_a_full_store_is_not_asked_again(script: Script) -> None:
    store, server = script(error("InsufficientStorage", 507))
    with pytest.raises(StorageFullError):
        store.put("a", b"1")
    assert len(server.requests) == 1


def test_tries_are_counted_and_spread(script: Script) -> None:
    clock = StillClock()
    store, server = script(error("SlowDown", 503), clock=clock)
    with pytest.raises(UnavailableError, match="overloaded"):
        store.put("a", b"1")
    assert len(server.requests) == S3Options().max_attempts == 6
    assert len(clock.waits) == 5
    assert all(0 < wait <= 0.4 * 2**number for number, wait in enumerate(clock.waits))


def test_only_large_bodies_ask_before_they_are_sent(script: Script) -> None:
    """Asking costs a round trip; not asking costs the reason of a refusal that comes in mid-body."""
    store, server = script(PUT_DONE)
    store.put("small", b"x" * 1000, Create())
    store.upload_part("large", "u", 1, b"x" * 2 * 2**20)
    assert [headers.get("expect") for headers in server.headers] == [None, "100-continue"]
    assert [len(body) for body in server.bodies] == [1000, 2 * 2**20]


def test_a_body_that_is_cut_off_is_read_again(script: Script) -> None:
    store, server = script(Answer(body="half", missing_bytes=4), Answer(body="complete"))
    assert store.get("a") == b"complete"
    assert len(server.requests) == 2


def test_ranges_are_sent(script: Script) -> None:
    store, server = script(Answer(206, "x"))
    store.get("a", 5)
    store.get("a", 5, 10)
    store.get("a", 0, 10)
    assert [headers["range"] for headers in server.headers] == ["bytes=5-", "bytes=5-14", "bytes=0-9"]


def _read(etag: str, body: str = "x") -> Answer:
    return Answer(206, body, {"ETag": f'"{etag}"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})


def test_a_range_of_another_object_is_refused(script: Script) -> None:
    store, _ = script(_read("e1"), _read("e2"), _read("e2"))
    assert store.get("a", 0, 1, "e1") == b"x"
    with pytest.raises(PreconditionError, match="replaced while it was read: list again"):
        store.get("a", 1, 1, "e1")
    assert store.get("a", 1, 1) == b"x"


def test_a_range_behind_the_end_of_another_object_is_refused(script: Script) -> None:
    store, _ = script(error("InvalidRange", 416), _read("e2"))
    with pytest.raises(PreconditionError, match="replaced"):
        store.get("a", 10, 1, "e1")


def test_an_answer_without_an_etag_is_taken(script: Script) -> None:
    store, _ = script(Answer(206, "x"))
    assert store.get("a", 0, 1, "e1") == b"x"


# --- what errors name -------------------------------------------------------------------------------------------------
def test_errors_name_the_request(script: Script) -> None:
    """The server's log is searched by the id, ours by operation and key."""
    body = "<Error><Code>AccessDenied</Code><RequestId>tx0001</RequestId></Error>"
    refused = Answer(403, body, {"x-amz-request-id": "tx0001"})
    store, _ = script(refused)
    calls: dict[str, Callable[[], object]] = {
        "PutObject": lambda: store.put("t/a", b"1"),
        "GetObject": lambda: store.get("t/a"),
        "DeleteObject": lambda: store.delete("t/a"),
        "ListObjectsV2": lambda: store.list_page("t/a"),
        "CreateMultipartUpload": lambda: store.create_upload("t/a"),
        "UploadPart": lambda: store.upload_part("t/a", "u", 1, b"1"),
        "CompleteMultipartUpload": lambda: store.complete_upload("t/a", "u", PARTS),
        "AbortMultipartUpload": lambda: store.abort_upload("t/a", "u"),
        "ListMultipartUploads": lambda: store.list_uploads_page("t/a"),
    }
    for operation, call in calls.items():
        with pytest.raises(AccessDeniedError) as caught:
            call()
        said = f"key='t/a' operation='{operation}' request_id='tx0001' code='AccessDenied'"
        assert said in str(caught.value)


def test_errors_without_an_answer_name_what_was_asked(script: Script) -> None:
    store, _ = script(LOST)
    with pytest.raises(OutcomeUnknownError, match=r"bucket='bucket' key='a' operation='PutObject'$"):
        store.put("a", b"1", Create())


# --- deletes ----------------------------------------------------------------------------------------------------------
def _deleted(*errors: tuple[str, str]) -> Answer:
    found = "".join(f"<Error><Key>{key}</Key><Code>{code}</Code></Error>" for key, code in errors)
    return Answer(body=f"<DeleteResult>{found}</DeleteResult>")


def test_errors_of_single_keys_are_noticed(script: Script) -> None:
    store, _ = script(_deleted(("b", "InternalError"), ("c", "InternalError")))
    with pytest.raises(UnavailableError, match="repeat the whole call bucket='bucket' key='b' errors=2"):
        store.delete_many(["a", "b", "c"])


def test_keys_that_may_not_be_deleted(script: Script) -> None:
    store, _ = script(_deleted(("b", "AccessDenied")))
    with pytest.raises(AccessDeniedError):
        store.delete_many(["a", "b"])


def test_keys_that_are_gone_are_deleted(script: Script) -> None:
    store, server = script(_deleted(("b", "NoSuchKey")))
    store.delete_many(["a", "b"])
    assert server.requests == [("POST", "/bucket?delete")]


@pytest.mark.parametrize("answer", [error("MissingContentMD5", 400), error("MalformedXML", 400), Answer(501)])
def test_servers_without_bulk_delete(script: Script, answer: Answer) -> None:
    """facts: juicefs answers MissingContentMD5, swift InvalidRequest. They are asked once."""
    store, server = script(answer, Answer(204))
    store.delete_many(["a", "b"])
    store.delete_many(["c"])
    expected = [("POST", "/bucket?delete"), *(("DELETE", f"/bucket/{key}") for key in "abc")]
    assert server.requests == expected


@pytest.mark.parametrize("key", ["a\x01", "\x1f/a", "a\uffff"])
def test_keys_that_no_document_holds_are_refused(script: Script, key: str) -> None:
    """XML 1.0 has no syntax for most control characters, so no server could list such a key."""
    store, server = script(Answer(204))
    for call in (lambda: store.put(key, b"1"), lambda: store.create_upload(key)):
        with pytest.raises(InvalidRequestError, match="must not contain control characters"):
            call()
    assert server.requests == []
    store.delete(key)  # of another program


def test_nothing_to_delete_asks_nothing(script: Script) -> None:
    store, server = script(Answer(500))
    store.delete_many([])
    assert server.requests == []


# --- reaching the server ----------------------------------------------------------------------------------------------
def _closed_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_an_endpoint_that_is_not_there() -> None:
    url, clock = _closed_port(), StillClock()
    with pytest.raises(UnavailableError, match=f"cannot be reached: check the endpoint url and the network .*{url}"):
        S3Store("bucket", scripted_options(url), clock).put("a", b"1")
    assert len(clock.waits) == 5


def test_an_endpoint_that_swallows_packets_shows_within_30_s() -> None:
    """No try starts more than 15 s after the first: with 5 s (10 s for two addresses) each, 25 s is the end."""
    clock = SimulatedClock(at_s=0.0, step_s=10.0)
    with pytest.raises(UnavailableError):
        S3Store("bucket", scripted_options(_closed_port()), clock).create_upload("a")
    assert len(clock.waits) == 1
    assert S3Options().connect_timeout_s <= 5


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(InvalidRequestError, match="check both"):
        S3Store("bucket", scripted_options("http://")).list_page("")


def test_no_credentials_at_all() -> None:
    """Neither options nor environment: one sentence, no request."""
    with pytest.raises(AccessDeniedError, match="no usable credentials"):
        S3Store("bucket", S3Options(endpoint_url=_closed_port())).head("a")


def test_the_environment_names_the_endpoint(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = script(PUT_DONE)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    store = S3Store("bucket")
    assert store.put("a", b"1").etag == "e1"
    assert "from-environment" in server.headers[0]["authorization"]
    store.close()


def test_metadata_that_no_header_can_carry(script: Script) -> None:
    store, server = script(PUT_DONE)
    with pytest.raises(InvalidRequestError):
        store.put("a", b"1", metadata={"a": "é"})
    assert server.requests == []


# --- options ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options",
    [
        {"access_key": "a"},
        {"secret_key": "s"},
        {"session_token": "t"},
        {"addressing_style": "other"},
        {"max_attempts": 0},
        {"max_connections": 0},
        {"endpoint_url": "localhost:9000"},
        {"endpoint_url": "http://user:canary@host"},
    ],
)
def test_options_that_cannot_be_right(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        S3Options(**options)  # type: ignore[arg-type]  # what a careless caller does
    assert "canary" not in str(caught.value)


# --- credentials ------------------------------------------------------------------------------------------------------
def test_credentials_never_show(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    texts: list[str] = []
    for answer in (error("InvalidAccessKeyId", 403), error("SignatureDoesNotMatch", 403), LOST, Answer(500)):
        store, _ = script(answer)
        for call in (functools.partial(store.put, "a", b"1"), functools.partial(store.create_upload, "a")):
            with pytest.raises(HoldfastError) as caught:
                call()
            texts += [repr(caught.value), str(caught.value), "".join(traceback.format_exception(caught.value))]
            texts += [repr(pickle.dumps(caught.value))]
        texts += [repr(store), str(store), repr(store._connection.options)]
    texts.append(caplog.text)
    for canary in CANARIES:
        assert not [text for text in texts if canary in text]


# --- processes and threads --------------------------------------------------------------------------------------------
def test_pickling_carries_no_client(script: Script) -> None:
    store, server = script(PUT_DONE)
    store.put("a", b"1")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.bucket == "bucket"
    assert copy.put("a", b"1").etag == "e1"
    assert len(server.requests) == 2
    copy.close()


def test_closing_twice_and_using_again(script: Script) -> None:
    store, _ = script(PUT_DONE)
    store.close()
    store.put("a", b"1")
    store.close()
    store.close()
    assert store.put("a", b"1").etag == "e1"


def test_threads_share_one_client(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    store, server = script(PUT_DONE)
    built: list[str] = []
    make = botocore.session.Session.create_client

    def counted(session: botocore.session.Session, name: str, **named: object) -> object:
        built.append(name)
        return make(session, name, **named)

    monkeypatch.setattr(botocore.session.Session, "create_client", counted)
    list(ThreadRunner(16).map(lambda n: store.put(f"k{n}", b"1"), range(32)))
    assert built == ["s3"]
    assert len(server.requests) == 32


_FORKING = """
import os, sys
from holdfast.stores.s3.store import S3Store
from holdfast.stores.s3 import S3Options
store = S3Store("bucket", S3Options(endpoint_url=sys.argv[1], region="us-east-1", access_key="a", secret_key="s"))
store.put("parent", b"1")
own = store._connection._get_client()
child = os.fork()
if child == 0:
    store.put("child", b"1")
    os._exit(0 if store._connection._get_client() is not own else 3)
_, status = os.waitpid(child, 0)
store.put("parent-again", b"1")
assert store._connection._get_client() is own
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_makes_its_own_client(script: Script) -> None:
    """PySpark forks its workers from one parent: a socket that two processes use mixes their replies."""
    _, server = script(PUT_DONE)
    command = [sys.executable, "-W", "error", "-c", _FORKING, server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert [path for _, path in server.requests] == ["/bucket/parent", "/bucket/child", "/bucket/parent-again"]


_DROPPING = """
import gc, os, sys, weakref
from holdfast.stores.s3.store import S3Store
from holdfast.stores.s3 import S3Options
store = S3Store("bucket", S3Options(endpoint_url=sys.argv[1], region="us-east-1", access_key="a", secret_key="s"))
store.put("parent", b"1")
client = weakref.ref(store._connection._get_client())
child = os.fork()
del store
gc.collect()
if child == 0:
    os._exit(3 if client() is None else 0)
assert client() is None
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_free_the_client_of_its_parent(script: Script) -> None:
    """This takes OpenSSL's lock: if another thread had it at the time of the fork, the child waits forever.

    fsspec drops its filesystems in a child, and a collection of garbage drops the rest.
    """
    _, server = script(PUT_DONE)
    subprocess.run([sys.executable, "-c", _DROPPING, server.url], timeout=PATIENCE_S, check=True)


@pytest.mark.parametrize("name", ["access_key", "secret_key", "session_token"])
def test_a_credential_with_a_line_break_is_refused_without_showing_it(name: str) -> None:
    """A token that is read from a file has one at its end; the header that it breaks was shown in a traceback."""
    given = {"access_key": "a", "secret_key": "b", "session_token": "c", name: "TOPSECRET\n"}
    with pytest.raises(InvalidRequestError, match="line break") as refused:
        S3Options(**given)
    assert "TOPSECRET" not in str(refused.value)


def test_a_password_in_the_environments_endpoint_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hunter2@127.0.0.1:1")
    store = S3Store("bucket", S3Options(access_key="a", secret_key="b", max_attempts=1))
    for use in (lambda: store.capabilities, lambda: store.put("a", b"1")):
        with pytest.raises(InvalidRequestError, match="AWS_ENDPOINT_URL") as refused:
            use()
        assert "hunter2" not in str(refused.value)
    store.close()


def test_a_body_that_breaks_in_any_way_is_read_again() -> None:
    """TLS damage inside a body escaped as urllib3's own error, and was not repeated."""

    class Broken:
        def read(self) -> bytes:
            raise urllib3.exceptions.SSLError("bad record mac")

    with pytest.raises(ResponseStreamingError):
        store._read_whole_body(Broken())
