"""Clients that send or read slowly, or not at all: each has a deadline, and costs bounded memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.webhdfs.settings import Limits
from tests.patience import wait_until
from tests.webhdfs_server import (
    Reply,
    ServedNamespace,
    ServerProcess,
    receive_all,
    receive_reply,
    relative,
    reset,
    target_of,
)

_STANDBY = "org.apache.hadoop.ipc.StandbyException"
_LARGE = os.urandom(1024 * 1024) * 48
_LIMITS = Limits(connections=40, waiting=6, uploads=2, head_s=0.5, body_s=1.0, answer_s=1.0)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNamespace]:
    """A namespace with a file that fits into no buffer of the kernel."""
    with ServedNamespace(tmp_path_factory.mktemp("slow")) as served:
        with served.open() as namespace:
            namespace.write_file("/large", _LARGE)
        yield served


@pytest.fixture(scope="module")
def running(namespace: ServedNamespace) -> Iterator[ServerProcess]:
    """A server with small limits; it must log no error for all the modules' clients."""
    with namespace.serve(limits=_LIMITS) as server:
        yield server


@pytest.fixture
def hurried(running: ServerProcess) -> Iterator[ServerProcess]:
    """That server, which is idle again after each test."""
    yield running
    running.check_log()
    wait_until(lambda: running.metric("holdfast_connections") <= 1, "connections stay open")
    running.wait_until_idle()


_STATUS = b"GET /webhdfs/v1/?op=GETFILESTATUS&user.name=root HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _upload_head(server: ServerProcess, path: str) -> bytes:
    target = relative(server.call("PUT", "CREATE", path, overwrite="true").headers["location"])
    return f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


# --- slow senders -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sent", [b"GET", _STATUS[:30], _STATUS[:-1], b"\r\n"])
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_a_head_that_does_not_end_ends_its_connection(hurried: ServerProcess, sent: bytes, is_first: bool) -> None:
    """Whether a request came before or not."""
    with hurried.connect() as connection:
        if not is_first:
            connection.sendall(_STATUS)
            assert receive_reply(connection).status == 200
        connection.sendall(sent)
        assert receive_all(connection) == b""


def test_each_byte_in_time_does_not_make_a_head_in_time(hurried: ServerProcess) -> None:
    """The deadline is of the whole head."""
    with hurried.connect() as connection:
        connection.settimeout(0.05)
        for _ in range(10_000):
            try:
                connection.sendall(b"\r\n")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                return
    raise AssertionError("the connection stays")


def test_an_upload_that_pauses_too_long_is_cut(hurried: ServerProcess, namespace: ServedNamespace) -> None:
    """It leaves nothing."""
    with hurried.connect() as connection:
        connection.sendall(_upload_head(hurried, "/paused") + b"5\r\nhello\r\n")
        assert receive_all(connection) == b""
    assert hurried.call("GET", "GETFILESTATUS", "/paused").status == 404
    assert namespace.leases() == 0


def test_uploads_beyond_the_limit_wait(hurried: ServerProcess) -> None:
    """They are served when others end."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(hurried.connect()) for _ in range(4)]
        for number, connection in enumerate(connections):
            connection.sendall(_upload_head(hurried, f"/waiting/{number}") + b"5\r\nhello\r\n0\r\n\r\n")
        assert [receive_reply(one).status for one in connections] == [201] * 4


# --- slow readers -----------------------------------------------------------------------------------------------------
def _open_large(server: ServerProcess) -> bytes:
    target = relative(server.call("GET", "OPEN", "/large").headers["location"])
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_clients_that_read_nothing_are_cut_and_cost_little(hurried: ServerProcess) -> None:
    """At most two pieces of the file are in memory for each."""
    before = hurried.resident_bytes()
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(5):
            connections.append(stack.enter_context(hurried.connect(receive_buffer=4096)))
            connections[-1].sendall(_open_large(hurried))
        wait_until(lambda: hurried.metric("holdfast_connections") <= 1, "clients that read nothing stay")
        assert hurried.resident_bytes() - before < 5 * 12 * 1024 * 1024
        for connection in connections:
            assert len(receive_all(connection)) < len(_LARGE)


def test_clients_that_go_in_the_middle_of_a_file_are_forgotten(hurried: ServerProcess) -> None:
    """The server reads no more of it, and logs no error."""
    for ending in (reset, lambda connection: connection.shutdown(1)):
        for _ in range(3):
            with hurried.connect(receive_buffer=4096) as connection:
                connection.sendall(_open_large(hurried))
                connection.recv(1)
                ending(connection)
        wait_until(lambda: hurried.metric("holdfast_requests_in_flight") <= 1, "the server goes on to read")


def test_pipelining_without_reading_is_cut(hurried: ServerProcess) -> None:
    """The server stops reading requests whose answers nobody takes, and does not wait for its client forever."""
    many = _STATUS * 200
    with hurried.connect(receive_buffer=4096) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(400):
                connection.sendall(many)
        wait_until(lambda: hurried.metric("holdfast_connections") <= 1, "the connection stays")


# --- too many ---------------------------------------------------------------------------------------------------------
def test_too_many_requests_are_sent_to_another_server(hurried: ServerProcess) -> None:
    """At once."""
    with contextlib.ExitStack() as stack:
        request = _open_large(hurried)
        for _ in range(_LIMITS.waiting + 1):
            stack.enter_context(hurried.connect(receive_buffer=4096)).sendall(request)
        replies: list[Reply] = []

        def is_refused() -> bool:
            replies.append(hurried.call("GET", "GETFILESTATUS", "/"))
            return replies[-1].status != 200

        wait_until(is_refused, "all requests are answered")
        assert (replies[-1].status, replies[-1].java_class) == (403, _STANDBY)
        assert "content-type" not in replies[-1].headers


def test_uploads_that_wait_for_their_turn_are_in_nobodys_way(hurried: ServerProcess) -> None:
    """Defect: the server took no other requests, and kept those whose clients had gone."""
    wait_until(lambda: hurried.call("GET", "GETFILESTATUS", "/").status == 200, "others are in the way")
    with contextlib.ExitStack() as stack:
        for number in range(2):
            running = stack.enter_context(hurried.connect())
            running.sendall(_upload_head(hurried, f"/full/{number}") + b"5\r\nhello\r\n")
        waiting = [stack.enter_context(hurried.connect()) for _ in range(_LIMITS.waiting + 1)]
        for number, connection in enumerate(waiting):
            connection.sendall(_upload_head(hurried, f"/waiting/{number}"))
        assert hurried.call("GET", "GETFILESTATUS", "/").status == 200
        for connection in waiting:
            reset(connection)
        wait_until(lambda: hurried.metric("holdfast_requests_in_flight") <= 3, "uploads without a client wait")


def test_too_many_connections_are_sent_to_another_server(hurried: ServerProcess) -> None:
    """Each gets an answer to its first request; those that have a place are served."""
    with contextlib.ExitStack() as stack:
        within = []
        for _ in range(_LIMITS.connections):
            within.append(stack.enter_context(hurried.connect()))
            within[-1].sendall(_STATUS)
            assert receive_reply(within[-1]).status == 200
        reply = hurried.request("GET", target_of("GETFILESTATUS", "/"))
        assert (reply.status, reply.java_class) == (503, _STANDBY)
        within[0].sendall(_STATUS)
        assert receive_reply(within[0]).status == 200


@pytest.mark.slow
def test_a_thousand_idle_connections_are_no_burden(tmp_path: Path) -> None:
    """Others are served meanwhile."""
    with ServedNamespace(tmp_path / "idle") as served, served.serve() as server, contextlib.ExitStack() as stack:
        connections = []
        for _ in range(1000):
            connections.append(stack.enter_context(server.connect()))
            connections[-1].sendall(_STATUS)
            assert receive_reply(connections[-1]).status == 200
        assert server.upload("/file", b"bytes").status == 201
        for connection in connections:
            connection.sendall(_STATUS)
        assert {receive_reply(one).status for one in connections} == {200}
