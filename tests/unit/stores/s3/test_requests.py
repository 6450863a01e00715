"""The requests of uploads: signed as botocore signs, sent over the client's connections, errors as botocore's."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import botocore.exceptions as boto
import botocore.loaders
import botocore.session
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.utils import percent_encode
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores.base import Part
from holdfast.stores.s3 import requests
from holdfast.stores.s3.errors import tls_error
from holdfast.stores.s3.requests import complete_upload, create_upload, sign_headers, upload_part
from tests.patience import PATIENCE_S
from tests.servers.tls import Authority, TlsFront
from tests.unit.stores.s3.scripted_server import LOST, Answer, ScriptedServer, error

DONE = Answer(body='<CompleteMultipartUploadResult><ETag>"e9"</ETag></CompleteMultipartUploadResult>')
PARTS = [Part(1, "e1", 5)]
NOW = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.timezone.utc)


_loader = botocore.loaders.create_loader()  # it reads a megabyte of JSON, once


def make_client(url: str, *, verify: str | None = None, **config: Any) -> Any:
    session = botocore.session.Session()
    session.register_component("data_loader", _loader)
    return session.create_client(
        "s3",
        endpoint_url=url,
        region_name="eu-north-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        aws_session_token="token",
        verify=verify,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(DONE) as scripted:
        yield scripted


def as_botocore_signs(keys: Credentials, method: str, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    request = AWSRequest(method=method, url=url, data=body, headers=headers)
    S3SigV4Auth(keys, "s3", "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text("abcXYZ019-._~=/+% ", min_size=1, max_size=30),
    st.binary(max_size=50),
    st.sampled_from([None, "a+token/=="]),
    st.sampled_from(["https://bucket.s3.amazonaws.com/", "http://127.0.0.1:8333/bucket/"]),
    st.sampled_from([("POST", "uploads"), ("PUT", "partNumber=12&uploadId={}"), ("POST", "uploadId={}")]),
    st.dictionaries(st.sampled_from(["content-type", "x-amz-meta-a", "x-amz-meta-b-c"]), st.text("a/- =", max_size=9)),
)
def test_signatures_are_those_of_botocore(
    key: str,
    upload_id: str,
    body: bytes,
    token: str | None,
    address: str,
    request: tuple[str, str],
    headers: dict[str, str],
) -> None:
    keys = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", token)
    place = urlsplit(address)
    method, query = request[0], request[1].format(percent_encode(upload_id))
    path = place.path + percent_encode(key, safe="/~")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)
        url = f"{place.scheme}://{place.netloc}{path}?{query}"
        expected = as_botocore_signs(keys, method, url, headers, body)
    frozen: ReadOnlyCredentials = keys.get_frozen_credentials()
    named = {**headers, "host": place.netloc}
    ours = sign_headers(frozen, "us-east-1", method, path, query, named, body, "20261122T120000Z")
    assert ours == {"host": place.netloc, **expected}


def test_the_clients_own_connections_are_used(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_client(server.url)
    monkeypatch.setattr(type(client._endpoint.http_session), "send", None)
    assert complete_upload(client, "bucket", "a b/ü+~", "u/1=", PARTS) == "e9"
    assert server.requests == [("POST", "/bucket/a%20b/%C3%BC%2B~?uploadId=u%2F1%3D")]
    assert b'<ETag>"e1"</ETag><PartNumber>1</PartNumber>' in server.bodies[0]


def test_all_three_requests_go_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Answer(body='<R xmlns="any"><UploadId>u/1=</UploadId></R>')
    with ScriptedServer(started, Answer(headers={"ETag": '"e1"'}), DONE) as server:
        client = make_client(server.url)
        monkeypatch.setattr(type(client._endpoint.http_session), "send", None)
        assert create_upload(client, "bucket", "a", {"Holdfast-Attempt": "0a 1"}) == "u/1="
        assert upload_part(client, "bucket", "a", "u/1=", 1, b"hello") == "e1"
        assert complete_upload(client, "bucket", "a", "u/1=", PARTS) == "e9"
    assert server.requests == [
        ("POST", "/bucket/a?uploads"),
        ("PUT", "/bucket/a?partNumber=1&uploadId=u%2F1%3D"),
        ("POST", "/bucket/a?uploadId=u%2F1%3D"),
    ]
    assert server.bodies[:2] == [b"", b"hello"]
    assert server.headers[0]["x-amz-meta-holdfast-attempt"] == "0a 1"


@pytest.mark.parametrize("metadata", [{"a": " b"}, {"a": "b  c"}, {"a": "b\tc"}])
def test_metadata_that_headers_change_are_left_to_botocore(metadata: dict[str, str]) -> None:
    with ScriptedServer(Answer(body="<R><UploadId>u</UploadId></R>")) as server:
        client = make_client(server.url)
        sent: list[str] = []
        client.meta.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
        assert create_upload(client, "bucket", "a", metadata) == "u"
        assert len(sent) == 1


def test_large_parts_are_left_to_botocore() -> None:
    with ScriptedServer(Answer(headers={"ETag": '"e1"'})) as server:
        client = make_client(server.url)
        sent: list[str] = []
        client.meta.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
        assert upload_part(client, "bucket", "a", "u", 1, bytes(1024 * 1024)) == "e1"
        assert upload_part(client, "bucket", "a", "u", 1, bytes(1024 * 1024 - 1)) == "e1"
        assert len(sent) == 1 and len(server.requests) == 2


def test_an_upload_without_an_id_is_the_servers_failure() -> None:
    with ScriptedServer(Answer(body="<R/>")) as server, pytest.raises(boto.ClientError) as raised:
        create_upload(make_client(server.url), "bucket", "a", {})
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


@pytest.mark.parametrize(
    ("status", "code"), [(301, "none"), (400, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")]
)
def test_a_bucket_elsewhere_is_followed_by_botocore_from_then_on(status: int, code: str) -> None:
    """One answer tells; botocore keeps the region, and is asked at once the next time."""
    answers = [error(code, status), DONE]
    with ScriptedServer(*answers) as server:
        client = make_client(server.url)
        sent: list[str] = []
        client.meta.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
        assert [complete_upload(client, "bucket", "a", "u", PARTS) for _ in range(2)] == ["e9", "e9"]
        assert len(sent) == 2 and len(server.requests) == 3


def test_buckets_with_signatures_of_their_own_are_left_to_botocore(server: ScriptedServer) -> None:
    assert requests.send_request(make_client(server.url), "b--use1-az4--x-s3", "POST", "k", "uploads", {}, b"") is None
    assert server.requests == []


def test_the_region_of_no_region_is_signed_as_botocore_does(server: ScriptedServer) -> None:
    client = botocore.session.Session().create_client(
        "s3", endpoint_url=server.url, region_name="aws-global", aws_access_key_id="a", aws_secret_access_key="b"
    )
    complete_upload(client, "bucket", "a", "u", PARTS)
    assert "/us-east-1/s3/aws4_request" in server.headers[0]["authorization"]


@pytest.mark.parametrize("way", ["proxy", "another botocore", "no credentials"])
def test_else_botocore_sends_the_same(server: ScriptedServer, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complete_upload(make_client(server.url), "bucket", "a b/ü+~", "u/1=", PARTS)
    client = make_client(server.url, proxies={"http": server.url} if way == "proxy" else None)
    if way == "another botocore":
        monkeypatch.setattr(requests, "_find_pool", lambda _client, _address: None)
    if way == "no credentials":
        assert requests.send_request(_Anonymous(client), "bucket", "POST", "a", "uploads", {}, b"") is None
    assert complete_upload(client, "bucket", "a b/ü+~", "u/1=", PARTS) == "e9"
    (_, own), (_, other) = server.requests
    assert urlsplit(other)._replace(scheme="", netloc="").geturl() == own
    assert b'<ETag>"e1"</ETag><PartNumber>1</PartNumber>' in server.bodies[0].replace(b"&quot;", b'"')


class _Anonymous:
    """A client without credentials."""

    def __init__(self, client: Any) -> None:
        self.meta, self._endpoint = client.meta, client._endpoint
        self._resolve_endpoint_ruleset = client._resolve_endpoint_ruleset
        self._request_signer = self
        self._credentials = None


def test_what_is_missing_inside_botocore_is_no_error() -> None:
    class Other:
        class _endpoint:  # botocore's name
            http_session = object()

    assert requests._find_pool(Other(), "http://127.0.0.1/bucket/") is None


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([LOST], boto.ConnectionClosedError),
        ([Answer(body="<Complete", missing_bytes=9)], boto.ConnectionClosedError),
        ([error("NoSuchUpload", 404)], boto.ClientError),
    ],
)
def test_errors_are_those_of_botocore(answers: list[Answer], expected: type[Exception]) -> None:
    with ScriptedServer(*answers) as server, pytest.raises(expected):
        complete_upload(make_client(server.url), "bucket", "a", "u", PARTS)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([LOST], boto.ConnectionClosedError),
        ([Answer(body="<Complete", missing_bytes=9)], boto.ConnectionClosedError),
        ([error("NoSuchUpload", 404)], boto.ClientError),
    ],
)
@pytest.mark.parametrize("has_tls", [False, True])
def test_errors_over_a_connection_that_stands_are_the_same(
    answers: list[Answer], expected: type[Exception], has_tls: bool, tmp_path: Path
) -> None:
    """Requests after the first one pass urllib3 by: see `_sent_along`."""
    authority = Authority(tmp_path)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ScriptedServer(DONE, *answers, DONE))
        url = server.url
        if has_tls:
            url = stack.enter_context(TlsFront(url, *authority.issue("127.0.0.1"))).url
        client = make_client(url, verify=authority.bundle) if has_tls else make_client(url)
        assert complete_upload(client, "bucket", "a", "u", PARTS) == "e9"
        with pytest.raises((expected, boto.SSLError) if has_tls else expected) as raised:
            complete_upload(client, "bucket", "a", "u", PARTS)
        assert tls_error(raised.value, url, None, has_answered=True) is None
        assert complete_upload(client, "bucket", "a", "u", PARTS) == "e9"
        assert len(server.requests) == 3
        client.close()


def test_connections_are_used_again(server: ScriptedServer) -> None:
    client = make_client(server.url)
    for _ in range(5):
        complete_upload(client, "bucket", "a", "u", PARTS)
    road = requests._routes[client]["bucket"]
    assert road is not None and road.pool.num_connections == 1
    assert len(server.requests) == 5


def test_a_server_that_closes_after_each_answer() -> None:
    with ScriptedServer(dataclasses.replace(DONE, headers={"Connection": "close"})) as server:
        client = make_client(server.url)
        for _ in range(3):
            assert complete_upload(client, "bucket", "a", "u", PARTS) == "e9"
        assert len(server.requests) == 3


def test_a_header_with_a_line_end_is_never_sent(server: ScriptedServer) -> None:
    client = make_client(server.url)
    complete_upload(client, "bucket", "a", "u", PARTS)
    with pytest.raises(boto.HTTPClientError):
        requests.send_request(client, "bucket", "PUT", "a", "partNumber=1", {"x-amz-meta-a": "b\r\nc: d"}, b"")
    assert len(server.requests) == 1
    assert complete_upload(client, "bucket", "a", "u", PARTS) == "e9"


def test_a_server_that_answers_once() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client = make_client(f"http://127.0.0.1:{listener.getsockname()[1]}", read_timeout=2)
        taken: list[socket.socket] = []

        def answer_once() -> None:
            taken.append(listener.accept()[0])
            taken[0].recv(65536)
            taken[0].sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(DONE.body)}\r\n\r\n{DONE.body}".encode())

        thread = threading.Thread(target=answer_once)
        thread.start()
        try:
            assert complete_upload(client, "bucket", "a", "u", PARTS) == "e9"
            with pytest.raises(boto.ReadTimeoutError):
                complete_upload(client, "bucket", "a", "u", PARTS)
        finally:
            thread.join(PATIENCE_S)
            for connection in taken:
                connection.close()
            client.close()


def test_a_server_that_does_not_answer() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(boto.ReadTimeoutError):
            complete_upload(make_client(url, read_timeout=0.1), "bucket", "a", "u", PARTS)
    with pytest.raises(boto.EndpointConnectionError):
        complete_upload(make_client(url), "bucket", "a", "u", PARTS)


def test_tls_that_is_none(server: ScriptedServer) -> None:
    with pytest.raises(boto.SSLError):
        complete_upload(make_client(server.url.replace("http:", "https:")), "bucket", "a", "u", PARTS)


@pytest.mark.parametrize("bucket", ["my-bucket", "my.bucket", "arn:aws:s3:eu-central-1:123456789012:accesspoint/mine"])
@pytest.mark.parametrize(
    "options",
    [
        {"region_name": "us-east-1"},
        {"region_name": "eu-west-1"},
        {"region_name": "me-south-1"},
        {"region_name": "cn-north-1"},
        {"region_name": "eu-west-1", "config": Config(s3={"addressing_style": "virtual"})},
        {"region_name": "eu-west-1", "config": Config(s3={"addressing_style": "path"})},
        {"region_name": "eu-west-1", "config": Config(use_fips_endpoint=True)},
        {"region_name": "eu-west-1", "config": Config(use_dualstack_endpoint=True)},
        {"region_name": "eu-west-1", "endpoint_url": "http://h:9000"},
        {"region_name": "eu-west-1", "endpoint_url": "http://h:9000/x"},
    ],
    ids=["us", "eu", "opt-in", "china", "virtual", "path", "fips", "dualstack", "server", "server below a path"],
)
def test_requests_go_where_botocores_own_go(bucket: str, options: dict[str, Any]) -> None:
    """Its presigned urls go to Amazon's global endpoint: opt-in regions refuse that, and private networks lack it."""
    session = botocore.session.get_session()
    client = session.create_client("s3", aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="s", **options)
    seen: list[AWSRequest] = []

    def answer(request: AWSRequest, **_: Any) -> AWSResponse:
        seen.append(request)
        return AWSResponse(request.url, 200, {}, _NoBody())

    client.meta.events.register("before-send.s3", answer)
    try:
        client.head_object(Bucket=bucket, Key="k")
    except boto.BotoCoreError:
        assert requests._find_bucket_address(client, bucket) is None, "what botocore refuses is left to it"
        return
    road = requests._find_bucket_address(client, bucket)
    assert road is not None and road.address == seen[0].url.removesuffix("k")
    scope = seen[0].headers["Authorization"].decode().partition("Credential=")[2].split("/")
    assert road.region == scope[2]


class _NoBody:
    def stream(self) -> list[bytes]:
        return []
