"""TLS mistakes are named at once, with what to do."""

from __future__ import annotations

import http.server
import pickle
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Clock, SystemClock
from holdfast.stores.base import Create, Part
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.clocks import StillClock
from tests.servers.tls import Authority, TlsFront
from tests.unit.stores.s3.scripted_server import Answer, ScriptedServer, error

PUT_DONE = Answer(headers={"ETag": '"e1"'})


class _NoWaiting(SystemClock):
    """Fails a test that waits: a mistake is named at once."""

    def sleep(self, duration_s: float) -> None:
        pytest.fail(f"waited {duration_s} s for what no waiting mends")


@dataclass(frozen=True)
class _World:
    authority: Authority
    plain: ScriptedServer
    front: TlsFront
    other_name: TlsFront
    expired: TlsFront


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_World]:
    authority = Authority(tmp_path_factory.mktemp("tls"))
    with (
        ScriptedServer(PUT_DONE) as plain,
        TlsFront(plain.url, *authority.issue("127.0.0.1")) as front,
        TlsFront(plain.url, *authority.issue("elsewhere.example")) as other_name,
        TlsFront(plain.url, *authority.issue("127.0.0.1", expired=True)) as expired,
    ):
        yield _World(authority, plain, front, other_name, expired)


def _store(url: str, ca_bundle: str | None, clock: Clock | None = None) -> S3Store:
    options = S3Options(endpoint_url=url, region="us-east-1", access_key="a", secret_key="s", ca_bundle=ca_bundle)
    return S3Store("bucket", options, clock or _NoWaiting())


def _refusal(url: str, ca_bundle: str | None) -> str:
    store = _store(url, ca_bundle)
    try:
        calls: list[Callable[[], object]] = [
            lambda: store.put("a", b"1", Create()),
            lambda: store.list_page(""),
            lambda: store.complete_upload("a", "u", [Part(1, "e", 1)]),  # is sent beside botocore's client
        ]
        sentences = set()
        for call in calls:
            with pytest.raises(InvalidRequestError) as caught:
                call()
            sentences.add(caught.value.message)
        assert len(sentences) == 1
        return str(caught.value)
    finally:
        store.close()


def test_a_bundle_makes_the_server_known(world: _World) -> None:
    store = pickle.loads(pickle.dumps(_store(world.front.url, world.authority.bundle, SystemClock())))
    assert store.put("a", b"1").etag == "e1"
    store.close()


def test_the_environment_names_the_bundle_and_the_option_wins(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", world.authority.bundle)
    by_environment = _store(world.front.url, None)
    assert by_environment.put("a", b"1").etag == "e1"
    by_environment.close()
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/ca.pem")
    by_option = _store(world.front.url, world.authority.bundle)
    assert by_option.put("a", b"1").etag == "e1"
    by_option.close()
    assert "ca_bundle='/nowhere/ca.pem'" in _refusal(world.front.url, None)


def test_an_authority_that_nobody_knows(world: _World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    sentence = _refusal(world.front.url, None)
    assert "certificate is not accepted" in sentence and "unable to get local issuer" in sentence
    assert "--ca-bundle" in sentence
    assert f"endpoint='{world.front.url}'" in sentence
    assert "certificate is not accepted" in _refusal(world.front.url, Authority(tmp_path).bundle)


def test_a_certificate_for_another_name(world: _World) -> None:
    sentence = _refusal(world.other_name.url, world.authority.bundle)
    assert "use a host name of the certificate" in sentence and "elsewhere.example" in sentence


def test_a_certificate_that_has_expired(world: _World) -> None:
    assert "certificate has expired" in _refusal(world.expired.url, world.authority.bundle)


@pytest.mark.parametrize(
    "content", [None, "", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"]
)
def test_a_bundle_that_cannot_be_read(world: _World, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "bundle.pem"
    if content is not None:
        path.write_text(content)
    sentence = _refusal(world.front.url, str(path))
    assert "the CA bundle cannot be read" in sentence
    assert f"ca_bundle='{path}'" in sentence


def test_a_bundle_that_is_a_directory(world: _World, tmp_path: Path) -> None:
    assert "the CA bundle cannot be read" in _refusal(world.front.url, str(tmp_path))


def test_https_at_a_plain_port(world: _World) -> None:
    assert "does not speak TLS at this port: write http://" in _refusal(
        world.plain.url.replace("http://", "https://"), world.authority.bundle
    )


def test_http_at_a_port_that_hangs_up(world: _World) -> None:
    """As Python's and versitygw's servers do."""
    store = _store(world.front.url.replace("https://", "http://"), None, StillClock())
    with pytest.raises(UnavailableError, match="check the scheme and the port"):
        store.list_page("")
    store.close()


class _AsGo(socketserver.StreamRequestHandler):
    """Go's TLS servers see by the first byte that a request is plain, and say so in a text; MinIO does."""

    def handle(self) -> None:
        first = self.rfile.peek(1)[:1]
        if first == b"\x16":
            self.wfile.write(b"\x15\x03\x03\x00\x02\x02\x28")  # a handshake begins: an alert will do
            return
        while self.rfile.readline().strip():
            pass
        text = b"Client sent an HTTP request to an HTTPS server.\n"
        self.wfile.write(b"HTTP/1.0 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


def test_http_at_a_port_that_answers_in_plain_text() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _AsGo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            sentence = _refusal(f"http://127.0.0.1:{server.server_address[1]}", None)
        finally:
            server.shutdown()
            thread.join(10)
    assert "write https:// if it speaks TLS at this port" in sentence


class _HangsUp(http.server.BaseHTTPRequestHandler):
    """Reads a request and lets the connection go without an answer."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        socket.socket.shutdown(self.connection, socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


def test_a_connection_that_breaks_after_the_request_leaves_the_outcome_unknown(world: _World) -> None:
    """The server has the request, and TLS ends without a goodbye: to say that nothing happened would be a guess."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*world.authority.issue("127.0.0.1"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _HangsUp)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # keeps the tests' output clean
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        store = _store(f"https://127.0.0.1:{server.server_address[1]}", world.authority.bundle)
        with pytest.raises(OutcomeUnknownError, match="read before repeating"):
            store.put("log/1", b"1", Create())
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_a_server_that_has_answered_is_not_told_to_change_its_scheme() -> None:
    """A plain server that goes away and comes back as something else is network trouble."""
    with ScriptedServer(error("SlowDown", 503), Answer(0)) as server:
        store = _store(server.url, None, SystemClock())
        with pytest.raises((UnavailableError, OutcomeUnknownError)):
            store.put("a", b"1", Create())
        store.close()


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="CA bundle"):
        S3Options(ca_bundle=" ")
