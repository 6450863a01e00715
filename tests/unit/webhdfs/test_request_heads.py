"""Request lines and headers: what is accepted, what is refused, and what a connection is good for afterwards."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from holdfast.webhdfs.connection import MOST_HEAD_BYTES
from tests.webhdfs_server import Reply, ServedNamespace, ServerProcess, read_replies, receive_reply, relative, target_of

_STATUS = b"/webhdfs/v1/?op=GETFILESTATUS&user.name=root"
_ARGUMENT = "java.lang.IllegalArgumentException"


def _request(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    return (
        method
        + b" "
        + target
        + b" HTTP/1.1\r\nHost: localhost\r\n"
        + b"".join(one + b"\r\n" for one in headers)
        + b"\r\n"
    )


_CLOSE = b"Connection: close"


def _ask(server: ServerProcess, *pieces: bytes) -> list[Reply]:
    return read_replies(server.send(*pieces, ends=False))


# --- targets ----------------------------------------------------------------------------------------------------------
_NAMES = ["grüße", "中文", "😀", "a b", "a+b", "100%", "q?#&=;@!$'()*,", 'quote"<>\\^`{|}', "é", "\u202eabc", "\x7f"]


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_comes_back_as_it_was(server: ServerProcess, name: str) -> None:
    """Through the redirect of an upload, too."""
    path = f"/names/{name}"
    assert server.upload(path, b"bytes").status == 201
    found = server.call("GET", "LISTSTATUS", path).document["FileStatuses"]["FileStatus"]
    assert [one["length"] for one in found] == [5]
    listed = server.call("GET", "LISTSTATUS", "/names").document["FileStatuses"]["FileStatus"]
    assert name in [one["pathSuffix"] for one in listed]
    assert server.download(path).body == b"bytes"


@pytest.mark.parametrize("cut", range(13, 30))
def test_raw_utf_8_in_the_target_is_a_name(server: ServerProcess, cut: int) -> None:
    """As Java's client sends it, in whatever segments, and also in the second request of a connection."""
    raw = "/raw/ü中😀".encode()
    query = b"?op=MKDIRS&user.name=root"
    request = _request(b"/webhdfs/v1" + raw + query, b"Content-Length: 0", method=b"PUT")
    with server.connect() as connection:
        for _ in range(2):
            connection.sendall(request[:cut])
            connection.sendall(request[cut:])
            assert receive_reply(connection).document == {"boolean": True}
    assert server.call("GET", "GETFILESTATUS", "/raw/ü中😀").status == 200


def test_the_content_of_a_pipelined_upload_is_no_request_line(server: ServerProcess) -> None:
    """Its 8-bit bytes stay as they are, in whatever segments they come."""
    first = server.call("PUT", "CREATE", "/pipelined")
    target = relative(first.headers["location"]).encode()
    content = bytes(range(128, 256)) * 2
    upload = _request(target, b"Content-Length: 256", method=b"PUT") + content
    with server.connect() as connection:
        connection.sendall(_request(_STATUS) + upload[:-200])
        assert receive_reply(connection).status == 200
        connection.sendall(upload[-200:])
        assert receive_reply(connection).status == 201
    assert server.download("/pipelined").body == content


@pytest.mark.parametrize(
    "target",
    [
        b"/webhdfs/v1/%ff?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/\xff\xfe?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/\xc3?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/%ed%a0%80?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/%c0%af?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/?op=GETFILESTATUS&user.name=%ff",
        b"/webhdfs/v1/?op=GETFILESTATUS&%ff=a",
        b"/webhdfs/v1/?op=FOO",
        b"/webhdfs/v1/a%00b?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/?op=GETFILESTATUS&op=%00&user.name=%00",
        b"/webhdfs/v1/../../etc?op=GETFILESTATUS&user.name=root",
        b"/webhdfs/v1/%2e%2e/etc?op=GETFILESTATUS&user.name=root",
        b"http://h",
        b"h:80",
        b"a b",
        b"/a\tb",
        b"/a\0b",
        b"http://[/webhdfs/v1/",
        b"http://h:99999999/webhdfs/v1/",
        b"",
    ],
)
def test_an_impossible_target_is_refused(server: ServerProcess, target: bytes) -> None:
    """By an exception without a Content-Type."""
    [reply] = _ask(server, _request(target, _CLOSE))
    assert (reply.status, reply.java_class) in [
        (400, _ARGUMENT),
        (400, "org.apache.hadoop.fs.InvalidPathException"),
    ], reply
    assert "content-type" not in reply.headers


def test_an_absolute_target_is_understood(server: ServerProcess) -> None:
    """Clients of proxies send it."""
    [reply] = _ask(server, _request(b"http://somewhere:80" + _STATUS, _CLOSE))
    assert reply.status == 200


def test_addresses_outside_of_webhdfs_do_not_exist(server: ServerProcess) -> None:
    """However near they are."""
    for target in (
        b"/webhdfs",
        b"/webhdfs/v10/?op=GETFILESTATUS",
        b"/WEBHDFS/v1/",
        b"//webhdfs/v1/",
        b"/%77ebhdfs/v1/",
    ):
        [reply] = _ask(server, _request(target, _CLOSE))
        assert reply.status == 404, target


# --- methods and versions ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [b"HEAD", b"OPTIONS", b"PATCH", b"TRACE", b"PROPFIND", b"MKCOL", b"PURGE"])
def test_other_methods_are_refused(server: ServerProcess, method: bytes) -> None:
    """The connection stays, and an answer to HEAD has no body."""
    with server.connect() as connection:
        connection.sendall(_request(_STATUS, method=method) + _request(_STATUS, _CLOSE))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    first, second = read_replies(received, [method.decode(), "GET"])
    assert (first.status, second.status) == (400, 200)
    if method != b"HEAD":
        assert first.java_class == "java.lang.UnsupportedOperationException"


@pytest.mark.parametrize(
    "line",
    [
        b"FOO / HTTP/1.1",
        b"get / HTTP/1.1",
        b"CONNECT h:80 HTTP/1.1",
        b"GET / HTTP/1.1 x",
        b"GET / HTP/1.1",
        b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x80\xff\xfe",
        b" GET / HTTP/1.1",
    ],
)
def test_what_is_no_request_line_is_refused(server: ServerProcess, line: bytes) -> None:
    """Once, and then the connection ends."""
    [reply] = _ask(server, line + b"\r\nHost: localhost\r\n\r\n")
    assert (reply.status, reply.headers["connection"]) == (400, "close")
    assert reply.java_class in (_ARGUMENT, "java.lang.UnsupportedOperationException")


@pytest.mark.parametrize("version", [b"", b" HTTP/0.9", b" HTTP/2.0"])
def test_other_versions_get_one_answer(server: ServerProcess, version: bytes) -> None:
    """The connection ends: it is not clear what follows."""
    [reply] = _ask(server, b"GET /nothing" + version + b"\r\nHost: localhost\r\n\r\n")
    assert (reply.status, reply.headers["connection"]) == (404, "close")


@pytest.mark.parametrize("target", [b"/webhdfs/v1", b"/webhdfs/v1/", b"/webhdfs/v1/a?op=", b"/webhdfs/v1/?a=b&=&&?"])
def test_a_request_needs_an_operation(server: ServerProcess, target: bytes) -> None:
    """The exception says so."""
    [reply] = _ask(server, _request(target, _CLOSE))
    assert (reply.status, reply.java_class) == (400, "java.lang.UnsupportedOperationException")


def test_http_1_0_gets_an_answer_and_an_end(server: ServerProcess) -> None:
    """Old load balancers ask so."""
    [reply] = _ask(server, b"GET " + _STATUS + b" HTTP/1.0\r\n\r\n")
    assert (reply.status, reply.headers["connection"]) == (200, "close")


# --- headers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "header",
    [
        b"Host: other",
        b"a b: c",
        b"a\0: b",
        b"a: \0",
        b"a: b\rc: d",
        b"no colon",
        b": no name",
        b"\xc3\xbc: a",
        b"a: " + b"b" * MOST_HEAD_BYTES,
        b"a" * MOST_HEAD_BYTES + b": b",
        b"\r\n".join(b"a%d: b" % number for number in range(100)),
        b"\r\n".join(b"a%d: " % number + b"b" * 1000 for number in range(66)),
    ],
)
def test_impossible_headers_are_refused(server: ServerProcess, header: bytes) -> None:
    """The limits are 64 KiB and 100 headers."""
    [reply] = _ask(server, _request(_STATUS, header, _CLOSE))
    assert (reply.status, reply.java_class) == (400, _ARGUMENT)


@pytest.mark.parametrize(
    "value", [b"a\xb2:\xb2", b"h:\xb2", b"h:" + b"9" * 5000, b"h:-1", b"h/path", b"a b", b"[::1", b"<h>", b"a@b"]
)
def test_an_impossible_host_is_refused(server: ServerProcess, value: bytes) -> None:
    """Addresses in answers contain it."""
    [reply] = _ask(server, b"GET " + _STATUS + b" HTTP/1.1\r\nHost: " + value + b"\r\nConnection: close\r\n\r\n")
    assert (reply.status, reply.java_class) == (403, "java.lang.SecurityException")


@pytest.mark.parametrize("value", [b"http://[", b"null", b"http://other", b"\xff", b"h"])
def test_another_site_is_refused(server: ServerProcess, value: bytes) -> None:
    """Also one whose name is impossible."""
    [reply] = _ask(server, _request(_STATUS, b"Origin: " + value, _CLOSE))
    assert (reply.status, reply.java_class) == (403, "java.lang.SecurityException")


@pytest.mark.parametrize(
    "header",
    [b"a: \xff\xc3\xbc", b"a:", b"a:\tb\t", b"Authorization: \xff", b"Cookie: " + b"c" * 60_000, b"Expect: 200-ok"],
)
def test_odd_headers_are_ignored(server: ServerProcess, header: bytes) -> None:
    """They mean nothing here."""
    [reply] = _ask(server, _request(_STATUS, header, _CLOSE))
    assert reply.status == 200


def test_the_longest_paths_fit(server: ServerProcess) -> None:
    """Two of 8,000 characters, as in a rename."""
    path = "/" + "/".join(["%" * 100] * 79)
    assert server.call("PUT", "MKDIRS", path).status == 200
    assert server.call("PUT", "RENAME", path, destination=f"{path}x").document == {"boolean": True}
    assert server.request("GET", "/webhdfs/v1/" + "a" * MOST_HEAD_BYTES + "?op=GETFILESTATUS").status == 400


@pytest.mark.parametrize(
    "pieces",
    [
        [b"a" * 65_536] * 20,
        [b"GET /", *[b"a" * 65_536] * 20],
        [b"GET / HTTP/1.1\r\na: ", *[b"a" * 65_536] * 20],
        [b"GET / HTTP/1.1\r\n", *[b"a" * 65_536] * 20],
        [b"\r\n" * 32_768] * 20,
    ],
    ids=["method", "target", "value", "name", "lines"],
)
def test_a_head_without_end_is_refused(server: ServerProcess, pieces: list[bytes]) -> None:
    """The server stops reading it; a reset may overtake the answer."""
    assert [one.status for one in _ask(server, *pieces)] in ([400], [])


# --- several requests on a connection ---------------------------------------------------------------------------------
def test_a_connection_stays_after_every_answer(server: ServerProcess) -> None:
    """Redirects, errors and created files among them."""
    with server.connect() as connection:

        def ask(method: bytes, target: str, body: bytes = b"") -> Reply:
            connection.sendall(_request(target.encode(), b"Content-Length: %d" % len(body), method=method) + body)
            return receive_reply(connection)

        first = ask(b"PUT", target_of("CREATE", "/kept"))
        assert (first.status, first.body) == (307, b"")
        created = ask(b"PUT", relative(first.headers["location"]), b"bytes")
        assert (created.status, created.headers["content-type"]) == (201, "application/octet-stream")
        assert ask(b"GET", target_of("GETFILESTATUS", "/missing")).status == 404
        assert ask(b"GET", target_of("FOO", "/kept")).status == 400
        assert ask(b"PUT", target_of("MKDIRS", "/kept/below")).status == 403
        assert ask(b"GET", "/nowhere").status == 404
        opened = ask(b"GET", target_of("OPEN", "/kept"))
        assert ask(b"GET", relative(opened.headers["location"])).body == b"bytes"


def test_each_request_of_a_connection_may_have_the_longest_head(server: ServerProcess) -> None:
    with server.connect() as connection:
        for _ in range(3):
            connection.sendall(_request(target_of("GETFILESTATUS", "/").encode(), b"X: " + b"x" * 30_000))
            assert receive_reply(connection).status == 200


def test_pipelined_requests_are_answered_in_order(server: ServerProcess) -> None:
    """Also hundreds of them, in one segment."""
    requests = [_request(target_of("MKDIRS", f"/lined/{number}").encode(), method=b"PUT") for number in range(200)]
    replies = _ask(server, b"".join(requests) + _request(_STATUS, _CLOSE))
    assert [one.document for one in replies[:-1]] == [{"boolean": True}] * 200
    assert "FileStatus" in replies[-1].document
    listed = server.call("GET", "LISTSTATUS", "/lined").document["FileStatuses"]["FileStatus"]
    assert len(listed) == 200


def test_requests_before_damaged_bytes_are_answered(server: ServerProcess, served: ServedNamespace) -> None:
    """What they did took effect: an exception instead would be a lie."""
    whole = [_request(target_of("MKDIRS", f"/before/{number}").encode(), method=b"PUT") for number in range(3)]
    cut = _request(target_of("MKDIRS", "/before/3").encode(), b"Transfer-Encoding: chunked", method=b"PUT") + b"x\r\n"
    for damaged in (b"GARBAGE\r\n\r\n", cut):
        replies = _ask(server, b"".join(whole) + damaged + _request(_STATUS))
        assert [one.document for one in replies] == [{"boolean": True}] * 3
        assert replies[-1].headers["connection"] == "close"
    assert server.call("GET", "GETFILESTATUS", "/before/3").status == 404


# --- Expect: 100-continue ---------------------------------------------------------------------------------------------
_EXPECT = (b"Expect: 100-continue", b"Content-Length: 5")


def test_a_body_is_asked_for_once_it_is_wanted(server: ServerProcess) -> None:
    """Then the client sends it."""
    target = relative(server.call("PUT", "CREATE", "/expected").headers["location"]).encode()
    with server.connect() as connection:
        connection.sendall(_request(target, *_EXPECT, method=b"PUT"))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"bytes")
        assert receive_reply(connection).status == 201
    assert server.download("/expected").body == b"bytes"


def test_a_body_that_nobody_wants_is_not_asked_for(server: ServerProcess) -> None:
    """The connection ends: what follows could be the body, or another request."""
    server.upload("/a-file", b"bytes")
    leg = relative(server.call("PUT", "CREATE", "/expected-not").headers["location"]).encode()
    impossible = leg.replace(b"/expected-not", quote("/a-file/below").encode())
    for target in (impossible, target_of("CREATE", "/expected-not").encode()):
        [reply] = _ask(server, _request(target, *_EXPECT, method=b"PUT"))
        assert reply.status in (403, 307)
        assert reply.headers["connection"] == "close"
