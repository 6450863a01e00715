"""Requests made at random: each gets a valid answer or an exception of HDFS, and the server goes on."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.webhdfs.operations import OPERATIONS
from tests.webhdfs_server import Reply, ServedNamespace, ServerProcess, read_replies

_NAMES = [
    "op",
    "user.name",
    "delegation",
    "doas",
    "offset",
    "length",
    "newlength",
    "buffersize",
    "blocksize",
    "replication",
    "permission",
    "overwrite",
    "recursive",
    "noredirect",
    "createparent",
    "createflag",
    "renameoptions",
    "destination",
    "modificationtime",
    "accesstime",
    "owner",
    "group",
    "storagepolicy",
    "ecpolicy",
    "storagetype",
    "snapshotname",
    "oldsnapshotname",
    "startafter",
    "aclspec",
    "fsaction",
    "xattr.name",
    "xattr.value",
    "flag",
    "encoding",
    "namespacequota",
    "storagespacequota",
    "snapshotdiffindex",
    "renewer",
    "token",
    "kind",
    "service",
    "sources",
    "excludedatanodes",
    "leg",
]
_VALUES = st.one_of(
    st.sampled_from(
        [
            "0",
            "1",
            "-1",
            "007",
            "1777",
            "9999",
            "true",
            "FALSE",
            "null",
            "NULL",
            ",",
            ",,",
            "a,b",
            "/",
            "//",
            "/a",
            "/a/b",
            ".",
            "..",
            "/..",
            "user.a",
            "trusted.a",
            "raw.a",
            "rwx",
            "---",
            "0x00",
            "0x0",
            "0sAA==",
            '"a"',
            "HEX",
            "TEXT",
            "CREATE",
            "OVERWRITE",
            "REPLACE",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
        ]
    ),
    st.integers().map(str),
    st.text(max_size=30),
    st.just("9" * 5000),
    st.just("a" * 5000),
)
_PATHS = st.one_of(
    st.sampled_from(
        ["/", "/a", "/a/b", "//", "/a/", "/a//b", "/.", "/..", "/.reserved", "/.snapshot", "/-", "/lost+found"]
    ),
    st.lists(st.text(max_size=10), max_size=5).map(lambda parts: "/" + "/".join(parts)),
)
_REQUESTS = st.sampled_from([(method, name) for method, names in OPERATIONS.items() for name in names])
_THOROUGH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)


def _check(reply: Reply) -> None:
    """Fail unless an answer is one that Hadoop's client understands."""
    assert reply.status in (200, 201, 307, 400, 401, 403, 404), reply
    if reply.status >= 400 and reply.headers.get("content-type") != "text/plain":
        assert "content-type" not in reply.headers, reply
        assert set(reply.document) == {"RemoteException"}, reply
        assert set(reply.document["RemoteException"]) == {"exception", "javaClassName", "message"}, reply
    if reply.status in (200, 201) and not reply.body:
        assert reply.headers["content-type"] == "application/octet-stream"


@given(
    asked=_REQUESTS,
    path=_PATHS,
    parameters=st.lists(st.tuples(st.sampled_from(_NAMES), _VALUES), max_size=6),
    has_leg=st.booleans(),
)
@settings(_THOROUGH, max_examples=200)
def test_parameters_at_random(
    session_server: ServerProcess, asked: tuple[str, str], path: str, parameters: list[tuple[str, str]], has_leg: bool
) -> None:
    """Of all operations: names, values, and paths."""
    method, operation = asked
    pairs = [*parameters, ("op", operation), ("user.name", "root"), *([("leg", "x")] if has_leg else [])]
    query = "&".join(f"{name}={quote_plus(value.encode('utf-8', 'replace'))}" for name, value in pairs)
    target = f"/webhdfs/v1{quote(('/fuzzed' + path).encode('utf-8', 'replace'))}?{query}"
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    [reply] = read_replies(session_server.send(head.encode() + b"bytes", ends=False))
    _check(reply)
    session_server.check_log()


_PIECES = st.one_of(
    st.sampled_from(
        [
            b"GET",
            b"PUT",
            b" ",
            b"/webhdfs/v1/a",
            b"?op=CREATE&leg=1",
            b"&user.name=root",
            b" HTTP/1.1",
            b"\r\n",
            b"\n",
            b"\r",
            b"Host: localhost\r\n",
            b"Content-Length: ",
            b"5",
            b"Transfer-Encoding: chunked\r\n",
            b"\r\n\r\n",
            b"0\r\n\r\n",
            b"PUT /webhdfs/v1/fuzzed/raw?op=CREATE&leg=2&user.name=root HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET /webhdfs/v1/?op=LISTSTATUS&user.name=root HTTP/1.1\r\n\r\n",
            b"Expect: 100-continue\r\n",
            b"Upgrade: h2c\r\n",
            b"Connection: upgrade\r\n",
            b"5\r\nhello\r\n",
            b"\0",
            b":",
            b";",
        ]
    ),
    st.binary(max_size=20),
)


@given(pieces=st.lists(_PIECES, max_size=12))
@settings(_THOROUGH, max_examples=200)
def test_bytes_at_random(session_server: ServerProcess, pieces: list[bytes]) -> None:
    """What is no HTTP gets an exception, or an end."""
    for reply in read_replies(session_server.send(b"".join(pieces))):
        _check(reply)
    session_server.check_log()


def test_memory_stays_bounded(session_server: ServerProcess) -> None:
    """Refused heads and bodies leave nothing behind."""
    garbage = b"GET /" + b"a" * 200_000
    for _ in range(20):
        session_server.send(garbage)
    before = session_server.resident_bytes()
    for _ in range(200):
        session_server.send(garbage)
    assert session_server.resident_bytes() - before < 20 * 1024 * 1024
    assert session_server.is_alive()


def test_the_namespace_is_whole_after_all(session_server: ServerProcess, served: ServedNamespace) -> None:
    """No upload is open, and no lease is left."""
    session_server.wait_until_idle()
    assert served.leases() == 0
    served.check()
