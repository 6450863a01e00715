"""The completion's own request: signed as botocore signs, sent over the client's connections, errors as botocore's."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import botocore.exceptions as boto
import botocore.session
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores import s3_complete
from holdfast.stores.base import Part
from holdfast.stores.s3_complete import complete_upload
from holdfast.stores.s3_sign import Signer
from tests.unit.stores.scripted_server import LOST, Answer, ScriptedServer, error

DONE = Answer(body='<CompleteMultipartUploadResult><ETag>"e9"</ETag></CompleteMultipartUploadResult>')
PARTS = [Part(1, "e1", 5)]
NOW = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.timezone.utc)


def make_client(url: str, **config: Any) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        endpoint_url=url,
        region_name="eu-north-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        aws_session_token="token",
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(DONE) as scripted:
        yield scripted


def as_botocore_signs(signer: Signer, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    request = AWSRequest(method="POST", url=url, data=body, headers=headers)
    S3SigV4Auth(Credentials(signer.access_key, signer.secret_key, signer.token), "s3", signer.region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text("abcXYZ019-._~=/+% ", min_size=1, max_size=30),
    st.binary(max_size=50),
    st.sampled_from([None, "a+token/=="]),
    st.sampled_from(["https://bucket.s3.amazonaws.com/", "http://127.0.0.1:8333/bucket/"]),
)
def test_signatures_are_those_of_botocore(
    key: str, upload_id: str, body: bytes, token: str | None, address: str
) -> None:
    signer = Signer("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", token, "us-east-1")
    place = urlsplit(address)
    path = place.path + s3_complete.percent_encode(key, safe="/~")
    query = f"uploadId={s3_complete.percent_encode(upload_id)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)
        expected = as_botocore_signs(
            signer, f"{place.scheme}://{place.netloc}{path}?{query}", {"Content-Type": "application/xml"}, body
        )
    headers = {"host": place.netloc, "content-type": "application/xml"}
    assert signer.signed("POST", path, query, headers, body, "20261122T120000Z") == {"host": place.netloc, **expected}


def test_no_secret_shows_in_a_signer() -> None:
    assert "wJal" not in repr(Signer("AKIDEXAMPLE", "wJalrXUtnFEMI", "tok", "us-east-1"))


def test_the_clients_own_connections_are_used(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_client(server.url)
    monkeypatch.setattr(type(client._endpoint.http_session), "send", None)
    assert complete_upload(client, "bucket", "a b/ü+~", "u/1=", PARTS) == "e9"
    assert server.requests == [("POST", "/bucket/a%20b/%C3%BC%2B~?uploadId=u%2F1%3D")]
    assert b'<ETag>"e1"</ETag><PartNumber>1</PartNumber>' in server.bodies[0]


@pytest.mark.parametrize("way", ["proxy", "another botocore"])
def test_else_its_session_sends_the_same(server: ScriptedServer, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complete_upload(make_client(server.url), "bucket", "a b/ü+~", "u/1=", PARTS)
    client = make_client(server.url, proxies={"http": server.url} if way == "proxy" else None)
    if way == "another botocore":
        monkeypatch.setattr(s3_complete, "_pool", lambda _client, _address: None)
    assert complete_upload(client, "bucket", "a b/ü+~", "u/1=", PARTS) == "e9"
    (_, direct), (_, other) = server.requests
    assert urlsplit(other)._replace(scheme="", netloc="").geturl() == direct
    assert server.bodies[0] == server.bodies[1]


def test_what_is_missing_inside_botocore_is_no_error() -> None:
    class Other:
        class _endpoint:  # botocore's name
            http_session = object()

    assert s3_complete._pool(Other(), "http://127.0.0.1/bucket/") is None


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
