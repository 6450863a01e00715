"""The loopback HTTP server replies as it is told, loses replies, and forwards without changing a request."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from tests.servers.http_server import LoopbackServer, Reply, Request, forward


def ask(url: str, method: str, path: str, body: bytes = b"") -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, {"X-Signed": "a b"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_a_reply_is_sent_as_it_is() -> None:
    with LoopbackServer(lambda request: Reply(207, "Odd", (("X-Tag", "t"),), request.body)) as server:
        response, body = ask(server.url, "PUT", "/a?b", b"data")
        assert (response.status, response.reason, response.getheader("X-Tag"), body) == (207, "Odd", "t", b"data")
        assert response.getheader("Content-Length") == "4"
        response, body = ask(server.url, "HEAD", "/a", b"data")
        assert (response.getheader("Content-Length"), body) == ("4", b"")


def test_a_reply_may_be_lost_or_cut_short() -> None:
    with LoopbackServer(lambda request: None) as server, pytest.raises(http.client.RemoteDisconnected):
        ask(server.url, "GET", "/")
    cut = Reply(200, body=b"half", content_length=8)
    with LoopbackServer(lambda request: cut) as server, pytest.raises(http.client.IncompleteRead):
        ask(server.url, "GET", "/")


def test_a_request_is_forwarded_unchanged() -> None:
    seen: list[Request] = []

    def record(request: Request) -> Reply:
        seen.append(request)
        return Reply(200, headers=(("ETag", '"e"'),), content_length=100_000 if request.method == "HEAD" else None)

    with LoopbackServer(record) as upstream:
        target = urlsplit(upstream.url).netloc
        with LoopbackServer(lambda request: forward(request, target)) as proxy:
            response, _ = ask(proxy.url, "PUT", "/one%20two+%C3%BC?uploadId=u&x", b"data")
            assert (response.status, response.getheader("ETag")) == (200, '"e"')
            assert ask(proxy.url, "HEAD", "/a")[0].getheader("Content-Length") == "100000"
            host = urlsplit(proxy.url).netloc
    assert (seen[0].method, seen[0].path, seen[0].body) == ("PUT", "/one%20two+%C3%BC?uploadId=u&x", b"data")
    assert {("Host", host), ("X-Signed", "a b")} <= set(seen[0].headers)


def test_closing_is_safe_at_any_time() -> None:
    never_started = LoopbackServer(lambda request: None)
    never_started.close()
    with LoopbackServer(lambda request: None) as server:
        server.close()
