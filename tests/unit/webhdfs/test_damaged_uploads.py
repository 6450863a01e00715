"""Uploads that are cut, damaged or ambiguous: a file exists only if its body came to its end, with its bytes."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.patience import wait_until
from tests.webhdfs_server import (
    ServedNamespace,
    ServerProcess,
    read_replies,
    receive_all,
    receive_reply,
    relative,
    reset,
)

_CHUNKS = b"5\r\nhello\r\n" + b"96\r\n" + bytes(range(100, 250)) + b"\r\n" + b"1;name=value\r\n!\r\n" + b"0\r\n\r\n"
_CONTENT = b"hello" + bytes(range(100, 250)) + b"!"
_names = itertools.count()


def _new_path() -> str:
    return f"/damaged/{next(_names)}"


def _target(server: ServerProcess, path: str, operation: str = "CREATE") -> str:
    """Return the target of the second request of an upload."""
    method = "POST" if operation == "APPEND" else "PUT"
    first = server.call(method, operation, path)
    assert first.status == 307, first
    return relative(first.headers["location"])


def _head(target: str, *headers: bytes, method: str = "PUT", version: str = "1.1") -> bytes:
    line = f"{method} {target} HTTP/{version}\r\nHost: localhost\r\n".encode()
    return line + b"".join(one + b"\r\n" for one in headers) + b"\r\n"


_CHUNKED = b"Transfer-Encoding: chunked"


@contextmanager
def _nothing_stays(server: ServerProcess, served: ServedNamespace) -> Iterator[None]:
    """Check that uploads leave nothing: no file, no lease, no open upload."""
    before = served.files()
    yield
    server.wait_until_idle()
    assert served.files() == before
    assert served.leases() == 0


# --- cut --------------------------------------------------------------------------------------------------------------
def _cuts() -> list[int]:
    """Return where to cut a chunked body: everywhere, but for the middle of the long chunk."""
    return [position for position in range(len(_CHUNKS)) if not 20 < position < len(_CHUNKS) - 30]


@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
def test_a_cut_upload_leaves_nothing(server: ServerProcess, served: ServedNamespace, resets: bool) -> None:
    """At each position of head, size, extension, data, end of line and terminator."""
    path = _new_path()
    target = _target(server, path)
    with _nothing_stays(server, served):
        for position in _cuts():
            with server.connect() as connection:
                connection.sendall(_head(target, _CHUNKED) + _CHUNKS[:position])
                if resets:
                    reset(connection)
                else:
                    connection.shutdown(socket.SHUT_WR)
                    assert receive_all(connection) == b"", position
        for position in range(0, len(_head(target, _CHUNKED)), 7):
            with server.connect() as connection:
                connection.sendall(_head(target, _CHUNKED)[:position])
                if resets:
                    reset(connection)


@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
def test_a_body_shorter_than_its_length_leaves_nothing(
    server: ServerProcess, served: ServedNamespace, resets: bool
) -> None:
    """A length is a promise, too."""
    target = _target(server, _new_path())
    with _nothing_stays(server, served):
        for size in (0, 1, 99, 100, 155):
            with server.connect() as connection:
                connection.sendall(_head(target, b"Content-Length: 156") + _CONTENT[:size])
                if resets:
                    reset(connection)


@pytest.mark.parametrize("resets", [False, True], ids=["FIN", "RST"])
def test_a_cut_append_leaves_file_and_lease_as_they_were(
    server: ServerProcess, served: ServedNamespace, resets: bool
) -> None:
    """An append holds a lease while it goes on."""
    path = _new_path()
    server.upload(path, b"before")
    with _nothing_stays(server, served):
        for position in (0, 3, 7, 60, len(_CHUNKS) - 5, len(_CHUNKS) - 1):
            target = _target(server, path, "APPEND")
            with server.connect() as connection:
                connection.sendall(_head(target, _CHUNKED, method="POST") + _CHUNKS[:position])
                if resets:
                    reset(connection)
            server.wait_until_idle()
    assert server.upload(path, b"!", operation="APPEND").status == 200
    assert server.download(path).body == b"before!"


# --- damaged ----------------------------------------------------------------------------------------------------------
_DAMAGED = {
    "size is no number": b"xyz\r\nhello\r\n0\r\n\r\n",
    "size is empty": b"\r\nhello\r\n0\r\n\r\n",
    "size is negative": b"-5\r\nhello\r\n0\r\n\r\n",
    "size has a plus sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "size has 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size has a space before": b" 5\r\nhello\r\n0\r\n\r\n",
    "size has an underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "size of 17 digits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size of 2 ** 64 + 5": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size of many digits": b"f" * 1000 + b"\r\nhello\r\n0\r\n\r\n",
    "size too small": b"4\r\nhello\r\n0\r\n\r\n",
    "size too large": b"6\r\nhello\r\n0\r\n\r\n",
    "no line end after the data": b"5\r\nhello0\r\n\r\n",
    "other bytes after the data": b"5\r\nhelloXX0\r\n\r\n",
    "only CR after the data": b"5\r\nhello\r0\r\n\r\n",
    "only LF after the data": b"5\r\nhello\n0\r\n\r\n",
    "only LF after the size": b"5\nhello\r\n0\r\n\r\n",
    "only CR after the size": b"5\rhello\r\n0\r\n\r\n",
    "8-bit size": b"\xd9\xa5\r\nhello\r\n0\r\n\r\n",
    "NUL in the size": b"5\0\r\nhello\r\n0\r\n\r\n",
    "NUL in an extension": b"5;a=\0\r\nhello\r\n0\r\n\r\n",
    "LF in an extension": b"5;a=b\nhello\r\n0\r\n\r\n",
    "trailer is no header": b"5\r\nhello\r\n0\r\nno header\r\n\r\n",
    "trailer with a bad name": b"5\r\nhello\r\n0\r\na b: c\r\n\r\n",
    "trailers without end": b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 500,
    "trailer of 300 KB": b"5\r\nhello\r\n0\r\na: " + b"b" * 300_000 + b"\r\n\r\n",
    "extension of 1 MB": b"5;" + b"a" * 1_000_000 + b"\r\nhello\r\n0\r\n\r\n",
    "another request instead": b"5\r\nhello\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("operation", ["CREATE", "APPEND"])
def test_a_damaged_body_is_refused(server: ServerProcess, served: ServedNamespace, operation: str) -> None:
    """It is answered by an exception, once: not by an answer to what follows as if it were a request."""
    path = _new_path()
    server.upload(path, b"before")
    method = "PUT" if operation == "CREATE" else "POST"
    with _nothing_stays(server, served):
        for what, body in _DAMAGED.items():
            target = _target(server, path, operation) if operation == "APPEND" else _overwriting(server, path)
            received = server.send(_head(target, _CHUNKED, method=method) + body, ends=False)
            if received or len(body) < 100_000:  # a reset may overtake the answer to a long one
                assert [one.status for one in read_replies(received)] == [400], what
                assert read_replies(received)[0].java_class, what
            server.wait_until_idle()


def _overwriting(server: ServerProcess, path: str) -> str:
    first = server.call("PUT", "CREATE", path, overwrite="true")
    return relative(first.headers["location"])


# --- ambiguous --------------------------------------------------------------------------------------------------------
_AMBIGUOUS: dict[str, tuple[bytes, ...]] = {
    "length and chunked": (b"Content-Length: 5", _CHUNKED),
    "chunked and length": (_CHUNKED, b"Content-Length: 5"),
    "two lengths": (b"Content-Length: 5", b"Content-Length: 6"),
    "two equal lengths": (b"Content-Length: 5", b"Content-Length: 5"),
    "a list of lengths": (b"Content-Length: 5, 5",),
    "negative length": (b"Content-Length: -5",),
    "length with a plus sign": (b"Content-Length: +5",),
    "hexadecimal length": (b"Content-Length: 0x5",),
    "length with a space": (b"Content-Length: 5 5",),
    "empty length": (b"Content-Length:",),
    "huge length": (b"Content-Length: 99999999999999999999999",),
    "8-bit length": (b"Content-Length: \xb2",),
    "space before the colon": (b"Content-Length : 5",),
    "gzip": (b"Transfer-Encoding: gzip",),
    "gzip, chunked": (b"Transfer-Encoding: gzip, chunked",),
    "gzip and chunked": (b"Transfer-Encoding: gzip", _CHUNKED),
    "chunked, gzip": (b"Transfer-Encoding: chunked, gzip",),
    "chunked, identity": (b"Transfer-Encoding: chunked, identity",),
    "chunked twice": (b"Transfer-Encoding: chunked, chunked",),
    "two times chunked": (_CHUNKED, _CHUNKED),
    "identity": (b"Transfer-Encoding: identity",),
    "chunked with a tab": (b"Transfer-Encoding: \x0bchunked",),
    "xchunked": (b"Transfer-Encoding: xchunked",),
    "quoted": (b'Transfer-Encoding: "chunked"',),
    "folded": (b"Transfer-Encoding:\r\n chunked, gzip",),
    "two hosts": (b"Host: other", _CHUNKED),
}


@pytest.mark.parametrize("what", _AMBIGUOUS)
def test_a_body_that_could_end_at_two_places_is_refused(
    server: ServerProcess, served: ServedNamespace, what: str
) -> None:
    """A proxy before the server could see another end, and smuggle a request."""
    target = _target(server, _new_path())
    with _nothing_stays(server, served):
        received = server.send(_head(target, *_AMBIGUOUS[what]) + b"5\r\nhello\r\n0\r\n\r\n", ends=False)
        assert [one.status for one in read_replies(received)] == [400]


# --- whole ------------------------------------------------------------------------------------------------------------
_WHOLE = {
    "chunks": ((_CHUNKED,), _CHUNKS, _CONTENT),
    "name in capitals": ((b"TRANSFER-ENCODING: Chunked",), _CHUNKS, _CONTENT),
    "no chunk": ((_CHUNKED,), b"0\r\n\r\n", b""),
    "zeros": ((_CHUNKED,), b"0005\r\nhello\r\n000\r\n\r\n", b"hello"),
    "large hexadecimal digits": ((_CHUNKED,), b"0A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    "extensions": ((_CHUNKED,), b'5;a=b;c="d e"\r\nhello\r\n0;z\r\n\r\n', b"hello"),
    "trailers": ((_CHUNKED,), b"5\r\nhello\r\n0\r\nDigest: abc\r\nX: y\r\n\r\n", b"hello"),
    "a chunk each byte": ((_CHUNKED,), b"".join(b"1\r\n%c\r\n" % one for one in _CONTENT) + b"0\r\n\r\n", _CONTENT),
    "length": ((b"Content-Length: 156",), _CONTENT, _CONTENT),
    "length with zeros": ((b"Content-Length: 000156",), _CONTENT, _CONTENT),
    "length of nothing": ((b"Content-Length: 0",), b"", b""),
    "no length": ((), b"", b""),
    "encoded content": ((b"Content-Encoding: gzip", b"Content-Length: 156"), _CONTENT, _CONTENT),
    "offer of HTTP/2": (
        (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk", _CHUNKED),
        _CHUNKS,
        _CONTENT,
    ),
    "offer of HTTP/2 with a length": (
        (b"Connection: Upgrade", b"Upgrade: h2c", b"Content-Length: 5"),
        b"hello",
        b"hello",
    ),
}


@pytest.mark.parametrize("what", _WHOLE)
@pytest.mark.parametrize("is_slow", [False, True], ids=["at once", "by bytes"])
def test_a_whole_body_is_a_file_with_its_bytes(server: ServerProcess, what: str, is_slow: bool) -> None:
    """However it is framed, and however it comes."""
    headers, body, content = _WHOLE[what]
    path = _new_path()
    request = _head(_target(server, path), *headers) + body
    with server.connect() as connection:
        for piece in [request[i : i + 1] for i in range(len(request))] if is_slow else [request]:
            connection.sendall(piece)
        reply = receive_reply(connection)
    assert reply.status == 201
    assert reply.headers["content-type"] == "application/octet-stream"
    assert server.download(path).body == content


def test_bytes_after_the_length_are_no_part_of_the_file(server: ServerProcess) -> None:
    """They are the next request, which is none."""
    path = _new_path()
    received = server.send(_head(_target(server, path), b"Content-Length: 5") + b"hello, world\r\n\r\n", ends=False)
    assert [one.status for one in read_replies(received)] in ([201], [201, 400])
    assert server.download(path).body == b"hello"


# --- in between -------------------------------------------------------------------------------------------------------
def test_an_upload_is_no_file_before_its_end(server: ServerProcess) -> None:
    """Others see nothing of it, however long it pauses."""
    path = _new_path()
    with server.connect() as connection:
        connection.sendall(_head(_target(server, path), _CHUNKED) + _CHUNKS[:-5])
        wait_until(lambda: server.metric("holdfast_uploads") == 1, "the upload does not begin")
        assert server.call("GET", "GETFILESTATUS", path).status == 404
        connection.sendall(_CHUNKS[-5:])
        assert receive_reply(connection).status == 201
    assert server.download(path).body == _CONTENT


def test_of_two_uploads_to_a_path_one_is_the_file(server: ServerProcess) -> None:
    """The other one is told that the file exists; with overwrite, the last one wins."""
    for overwrite, expected in (("false", [201, 403]), ("true", [201, 201])):
        path = _new_path()
        targets = [
            relative(server.call("PUT", "CREATE", path, overwrite=overwrite).headers["location"]) for _ in range(2)
        ]
        with server.connect() as first, server.connect() as second:
            for connection, target, letter in ((first, targets[0], b"a"), (second, targets[1], b"b")):
                connection.sendall(_head(target, _CHUNKED) + b"5\r\n" + letter * 5 + b"\r\n")
            wait_until(lambda: server.metric("holdfast_uploads") == 2, "the uploads do not begin")
            first.sendall(b"0\r\n\r\n")
            replies = [receive_reply(first)]
            second.sendall(b"0\r\n\r\n")
            replies.append(receive_reply(second))
        assert [one.status for one in replies] == expected
        assert server.download(path).body == (b"bbbbb" if overwrite == "true" else b"aaaaa")


def test_an_early_refusal_leaves_the_connection_usable(server: ServerProcess) -> None:
    """The rest of the body is no request, whatever it contains."""
    path = _new_path()
    server.upload(path, b"before")
    target = re.sub(r"overwrite=true", "overwrite=false", _overwriting(server, path))
    with server.connect() as connection:
        connection.sendall(_head(target, b"Content-Length: 60") + b"x" * 5)
        assert receive_reply(connection).status == 403
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n".ljust(55) + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert receive_reply(connection).status == 200
