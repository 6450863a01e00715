"""The bytes of files: which of them a download sends, and how many uploads are received at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import socket
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from prometheus_client import REGISTRY

from holdfast.errors import CorruptDataError
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.operation import RequestAbandonedError
from holdfast.webhdfs import application
from holdfast.webhdfs.settings import Limits, ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from holdfast.webhdfs.transfers import FEW_BYTES, SENT_BYTES, UploadCutError, read_piece, receive_upload
from tests.namespace_world import World
from tests.patience import PATIENCE_S, wait_until
from tests.unit.webhdfs.carried import CarryingServer, take_event
from tests.unit.webhdfs.served import Served, serve_fresh
from tests.webhdfs_server import relative

_FRAME = 64 * 1024
_MIB = 1024 * 1024
_SIZE = 9 * _MIB + 5
_EOF = "java.io.EOFException"


class _File:
    """A file that notes what is read of it."""

    def __init__(self) -> None:
        self.reads: list[tuple[int, int]] = []

    def read(self, start: int, length: int) -> bytes:
        self.reads.append((start, length))
        return b"." * length


@pytest.mark.parametrize("start", [0, 1, _FRAME - 1, _FRAME, _FRAME + 1, _MIB - 1, _MIB, _SIZE - 1])
@pytest.mark.parametrize("length", [0, 1, _FRAME, _MIB - 1, _MIB, _MIB + 1, _SIZE])
@pytest.mark.parametrize("most", [SENT_BYTES, FEW_BYTES])
def test_a_download_is_read_once_in_pieces_that_end_where_frames_do(start: int, length: int, most: int) -> None:
    file, length, done = _File(), min(length, _SIZE - start), 0
    while done < length:
        done += len(read_piece(cast("FileReader", file), start + done, start + length, most))
    assert done == length
    stops = [first + size for first, size in file.reads]
    assert [first for first, _ in file.reads] == [start, *stops[:-1]][: len(stops)]
    assert all(stop % _FRAME == 0 for stop in stops[:-1])
    assert all(0 < size <= most for _, size in file.reads)
    assert (stops or [start])[-1] == start + length


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server that receives two files at the same time."""
    with serve_fresh(ServerSettings(url="", limits=Limits(uploads=2))) as found:
        found.namespace.write_file("/f", b"0123456789")
        found.namespace.write_file("/empty", b"")
        yield found


@pytest.mark.parametrize(
    ("query", "data"),
    [
        ("", b"0123456789"),
        ("&offset=0&length=10", b"0123456789"),
        ("&offset=3", b"3456789"),
        ("&offset=3&length=4", b"3456"),
        ("&offset=9&length=100", b"9"),
        ("&offset=10", b""),
        ("&offset=3&length=0", b""),
        ("&length=0", b""),
    ],
)
def test_a_range_of_a_file(served: Served, query: str, data: bytes) -> None:
    found = served.transfer("GET", "/f", f"op=OPEN&user.name=root{query}")
    assert (found.status, found.body, found.headers["content-length"]) == (200, data, str(len(data)))


def test_an_empty_file_is_read_from_its_start(served: Served) -> None:
    assert served.transfer("GET", "/empty", "op=OPEN&user.name=root").body == b""
    for path, offset in (("/empty", 1), ("/f", 11)):
        found = served.transfer("GET", path, f"op=OPEN&user.name=root&offset={offset}")
        assert (found.status, found.java_class) == (403, _EOF)


@pytest.mark.parametrize(
    ("query", "is_replaced"),
    [
        ("", False),
        ("&overwrite=false", False),
        ("&createflag=CREATE", False),
        ("&overwrite=true", True),
        ("&createflag=create,overwrite", True),
    ],
)
def test_a_file_is_replaced_only_if_that_is_asked_for(served: Served, query: str, is_replaced: bool) -> None:
    served.namespace.write_file("/there", b"old", overwrite=True)
    for leg in ("", "&leg=7"):  # also if the first request did not check it
        found = (served.ask if leg else served.transfer)(
            "PUT", "/there", f"op=CREATE&user.name=root{query}{leg}", b"new"
        )
        assert found.status == (201 if is_replaced else 403)
    assert served.namespace.open("/there").read() == (b"new" if is_replaced else b"old")


def test_an_answer_without_bytes_leaves_the_connection_usable(served: Served) -> None:
    request = b"GET /webhdfs/v1/empty?op=OPEN&user.name=root&leg=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    received = b""
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE_S) as connection:
        connection.sendall(2 * request)
        while received.count(b"\r\n\r\n") < 2:
            piece = connection.recv(1000)
            assert piece, "the connection has ended"
            received += piece
    assert received.count(b"HTTP/1.1 200") == 2


def test_a_damaged_body_after_the_begin_of_an_answer_cuts_it(served: Served) -> None:
    """A second answer would be taken for bytes of the file."""
    served.namespace.write_file("/large", b"." * 32 * _MIB)
    target = "/webhdfs/v1/large?op=OPEN&user.name=root&leg=1"
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(head.encode())
        received = connection.recv(1)
        connection.sendall(b"no size of a chunk\r\n")
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(_MIB):
                received += piece
    assert received.count(b"HTTP/1.1") == 1
    assert len(received) < 32 * _MIB


class _Writer:
    """A file that is written; it notes what happens to it."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def write(self, data: bytes) -> None:
        self.done.append(len(data))

    def finish(self, data: bytes) -> None:
        self.done.append(data)

    def discard(self) -> None:
        self.done.append("discard")


@pytest.mark.parametrize(
    ("bodies", "ends", "done"),
    [
        ([b"ab", b"c"], True, [b"abc"]),
        ([b""], True, [b""]),
        ([b"." * _MIB, b"ab", b"c"], True, [_MIB, b"abc"]),
        ([b"ab", b"." * _MIB, b""], True, [_MIB + 2, b""]),
        ([b"ab", b"c"], False, ["discard"]),
        ([b"." * _MIB, b"ab"], False, [_MIB, "discard"]),
    ],
)
def test_an_upload_is_finished_only_at_its_end(bodies: list[bytes], ends: bool, done: list[object]) -> None:
    events = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    if ends:
        events[-1]["more_body"] = False
    events.append({"type": "http.disconnect"})
    writer, rest = _Writer(), iter(events)

    async def receive() -> object:
        return next(rest)

    async def run(work: Callable[[], object]) -> object:
        return work()

    upload = receive_upload(cast("FileWriter", writer), receive, run, writer.finish)
    with contextlib.nullcontext() if ends else pytest.raises(UploadCutError):
        asyncio.run(upload)
    assert writer.done == done


def _metric(name: str) -> float:
    return REGISTRY.get_sample_value(f"holdfast_{name}") or 0.0


def test_no_more_uploads_are_received_than_the_limit_says(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        connections = []
        for number in range(5):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), PATIENCE_S))
            target = f"/webhdfs/v1/upload{number}?op=CREATE&user.name=root&leg={number}"
            head = f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head.encode() + b"5\r\nhello\r\n")
            connections.append(connection)
        wait_until(lambda: _metric("requests_in_flight") == 5, "the uploads do not begin")
        assert _metric("uploads") == 2
        for connection in connections:
            connection.sendall(b"0\r\n\r\n")
        assert {connection.recv(12) for connection in connections} == {b"HTTP/1.1 201"}


def test_a_download_that_fails_before_its_begin_is_an_error(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: the answer was 200, and then nothing."""

    def fail(*_: object) -> bytes:
        raise CorruptDataError("the bytes are damaged: see holdfast namespace fsck")

    monkeypatch.setattr(application, "read_piece", fail)
    found = served.transfer("GET", "/f", "op=OPEN&user.name=root")
    assert (found.status, found.java_class) == (403, "java.io.IOException")
    assert "fsck" in found.body.decode()


def test_a_download_that_fails_in_the_middle_is_cut_and_logged(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one answer: an error would be taken for bytes of the file."""

    def fail(file: FileReader, start: int, end: int, most_bytes: int) -> bytes:
        if start:
            raise CorruptDataError("the bytes are damaged: see holdfast namespace fsck")
        return b"012"

    monkeypatch.setattr(application, "read_piece", fail)
    with caplog.at_level(logging.WARNING), pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        served.transfer("GET", "/f", "op=OPEN&user.name=root")
    assert [record.getMessage() for record in caplog.records] == [
        "a download ends early, path='/f': the bytes are damaged: see holdfast namespace fsck"
    ]


@pytest.mark.parametrize("name", ["unread", "read"])
def test_clients_that_do_not_read_get_little_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Defect: each cost four megabytes, without a limit."""
    served.namespace.write_file("/many", b"." * 2 * SENT_BYTES, overwrite=True)
    sizes, read = [], read_piece

    def note(file: FileReader, start: int, end: int, most_bytes: int) -> bytes:
        sizes.append(most_bytes)
        return read(file, start, end, most_bytes)

    monkeypatch.setattr(application, "read_piece", note)
    monkeypatch.setattr(application, "_MOST_UNSENT_BYTES", 0 if name == "unread" else SENT_BYTES)
    assert served.transfer("GET", "/many", "op=OPEN&user.name=root").body == b"." * 2 * SENT_BYTES
    assert sizes == [FEW_BYTES] * (2 * SENT_BYTES // FEW_BYTES) if name == "unread" else [SENT_BYTES] * 2


def test_who_proves_nothing_does_not_wait_for_a_turn() -> None:
    """Defect: such clients waited as long as others uploaded, and then the server took no requests."""
    with serve_fresh(ServerSettings(url="", believes_names=False, limits=Limits(uploads=1))) as served:
        tokens = TokenStore(served.namespace.database, served.namespace.environment)
        secret, _ = tokens.issue(served.namespace.configuration.superuser, 60)
        proof = f"Host: localhost\r\nAuthorization: Bearer {secret}\r\n"
        with socket.create_connection(("127.0.0.1", served.port), PATIENCE_S) as connection:
            head = f"PUT /webhdfs/v1/f?op=CREATE&leg=1 HTTP/1.1\r\n{proof}Transfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head.encode() + b"5\r\nhello\r\n")
            wait_until(lambda: _metric("uploads") == 1, "the upload does not begin")
            assert served.ask("PUT", "/g", "op=CREATE&leg=2", b"data").status == 401
            connection.sendall(b"0\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 201"


def test_a_checksum_takes_two_requests(served: Served) -> None:
    """As HDFS's: pyhdfs takes another first answer for an error, and Hadoop's client goes on at its address."""
    served.namespace.mkdirs("/sum")
    served.namespace.write_file("/sum/f", b"content")
    first = served.ask("GET", "/sum/f", "op=GETFILECHECKSUM&user.name=root")
    assert (first.status, first.body) == (307, b"")
    found = served.transfer("GET", "/sum/f", "op=GETFILECHECKSUM&user.name=root").document
    named = served.ask("GET", "/sum/f", "op=GETFILECHECKSUM&user.name=root&noredirect=true").document
    assert served.send("GET", relative(named["Location"]), None, {}).document == found
    assert found["FileChecksum"]["length"] == 28


# --- what counts ------------------------------------------------------------------------------------------------------
def test_a_download_that_was_cut_counts_no_more() -> None:
    """Else all others were sent in small pieces from some day on."""
    world = World()
    world.client().write_file("/f", b"." * 2 * SENT_BYTES)
    server = CarryingServer(world)
    request = server.receive("GET", "/f", "op=OPEN&leg=1")
    request.connection.is_lost = True

    async def download() -> None:
        request.send = take_event
        with server.application() as ours, pytest.raises(RequestAbandonedError):
            await ours._send_file(request)
        assert ours._unsent_bytes == 0

    asyncio.run(download())


def test_an_upload_that_went_while_it_waited_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else there was no limit of requests anymore."""
    monkeypatch.setattr(application, "_LOOK_S", 0.01)
    server = CarryingServer(World())
    request = server.receive("PUT", "/f", "op=CREATE&leg=1")
    request.connection.is_lost = True

    async def wait() -> None:
        with server.application(Limits(uploads=1)) as ours:
            await ours._uploads.acquire()
            with pytest.raises(UploadCutError):
                await ours._wait_for_turn(request)
        assert ours._waiting_uploads == 0

    asyncio.run(wait())


@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_what_has_no_checksum_is_told_at_once(served: Served, path: str) -> None:
    """As in HDFS: the first request is refused."""
    assert served.ask("GET", path, "op=GETFILECHECKSUM&user.name=root").status == 404
