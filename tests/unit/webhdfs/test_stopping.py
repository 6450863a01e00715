"""Servers that are told to stop, or killed: what was begun ends, and nothing half done stays."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from holdfast.namespace.keys import answers_key
from holdfast.namespace.maintenance import current_leader
from holdfast.namespace.receipts import AnswerBook
from holdfast.runtime import SystemClock
from holdfast.webhdfs import server as module
from holdfast.webhdfs.servers import list_servers
from holdfast.webhdfs.settings import Limits, ServerSettings
from tests.namespace_world import all_records
from tests.patience import PATIENCE_S, wait_until
from tests.unit.namespace.fresh import fresh_namespace
from tests.unit.webhdfs.served import serve_fresh
from tests.webhdfs_server import ServedNamespace, ServerProcess, receive_all, receive_reply, relative

_STATUS = b"GET /webhdfs/v1/?op=GETFILESTATUS&user.name=root HTTP/1.1\r\nHost: localhost\r\n\r\n"
_STANDBY = "org.apache.hadoop.ipc.StandbyException"


@pytest.fixture
def namespace(tmp_path: Path) -> ServedNamespace:
    """A namespace; each test checks it by itself."""
    return ServedNamespace(tmp_path / "stopping")


def _head(server: ServerProcess, path: str, operation: str = "CREATE") -> bytes:
    method = "POST" if operation == "APPEND" else "PUT"
    target = relative(server.call(method, operation, path).headers["location"])
    return f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def _refuses(server: ServerProcess) -> bool:
    try:
        with server.connect():
            return False
    except ConnectionRefusedError:
        return True


def test_a_server_that_stops_ends_what_it_has_begun(namespace: ServedNamespace) -> None:
    """An upload goes on to its end, a kept connection is sent to another server, and new ones are refused."""
    with namespace, namespace.serve() as server, server.connect() as upload, server.connect() as kept:
        kept.sendall(_STATUS)
        assert receive_reply(kept).status == 200
        upload.sendall(_head(server, "/upload") + b"5\r\nhello\r\n")
        wait_until(lambda: server.metric("holdfast_uploads") == 1, "the upload does not begin")
        server.terminate()
        wait_until(lambda: _refuses(server), "the server goes on to take connections")
        kept.sendall(_STATUS)
        reply = receive_reply(kept)
        assert (reply.status, reply.java_class, reply.headers["connection"]) == (403, _STANDBY, "close")
        assert receive_all(kept) == b""
        upload.sendall(b"0\r\n\r\n")
        assert receive_reply(upload).status == 201
        assert server.process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert namespace.files() == {"/upload": b"hello"}


def test_what_outlasts_the_grace_leaves_nothing(namespace: ServedNamespace) -> None:
    """Neither file nor lease, and no error in the log."""
    with namespace, namespace.serve(limits=Limits(grace_s=1)) as server:
        server.upload("/appended", b"before")
        with server.connect() as first, server.connect() as second:
            first.sendall(_head(server, "/upload") + b"5\r\nhello\r\n")
            second.sendall(_head(server, "/appended", "APPEND") + b"5\r\nhello\r\n")
            wait_until(lambda: server.metric("holdfast_uploads") == 2, "the uploads do not begin")
            server.terminate()
            assert receive_all(first) == receive_all(second) == b""
        server.process.wait(PATIENCE_S)
        assert namespace.files() == {"/appended": b"before"}
        assert namespace.leases() == 0


def test_a_killed_server_leaves_no_file(namespace: ServedNamespace) -> None:
    """Another one serves the namespace."""
    server = namespace.serve()
    with server.connect() as upload:
        upload.sendall(_head(server, "/upload") + b"5\r\nhello\r\n")
        wait_until(lambda: server.metric("holdfast_uploads") == 1, "the upload does not begin")
        server.kill()
        assert receive_all(upload) == b""
    with namespace.serve() as other:
        assert other.call("GET", "GETFILESTATUS", "/upload").status == 404
        assert other.upload("/upload", b"again").status == 201
    namespace.check(strays=True)


def _children(server: ServerProcess) -> set[int]:
    """Return the processes that serve: uvicorn's start with this argument."""
    path = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    pids = [int(one) for one in path.read_text().split()]
    return {one for one in pids if _does_serve(one)}


def _does_serve(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has just ended


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_that_is_killed_is_replaced(namespace: ServedNamespace) -> None:
    """The other one goes on; at the end, none is left."""
    with namespace, namespace.serve(workers=2) as server:
        wait_until(lambda: len(_children(server)) == 2 and server.is_alive(), "the processes do not start")
        before = _children(server)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(_children(server) - {victim}) == 2, "the process is not replaced")
        assert server.upload("/file", b"bytes").status == 201
        everyone = before | _children(server)
        server.end()
        assert [one for one in everyone if _is_running(one)] == []


@pytest.mark.slow
def test_a_process_that_waits_for_its_start_ends_with_the_server(namespace: ServedNamespace, tmp_path: Path) -> None:
    """Defect: uvicorn's handlers of signals told a loop that did not run yet, so the server never ended."""
    users = tmp_path / "users.ini"
    users.write_text("", encoding="utf-8")
    with namespace:
        server = namespace.serve("--users", str(users), workers=2)
        wait_until(lambda: len(_children(server)) == 2 and server.is_alive(), "the processes do not start")
        users.write_text("[groups\n", encoding="utf-8")
        os.kill(min(_children(server)), signal.SIGKILL)
        wait_until(lambda: "cannot start" in server.log.read_text(), "no process waits for its start")
        everyone = _children(server)
        server.end()
        assert [one for one in everyone if _is_running(one)] == []


def test_the_processes_end_with_the_first_one(namespace: ServedNamespace) -> None:
    """If it is killed, nothing keeps the port."""
    server = namespace.serve(workers=2)
    wait_until(lambda: len(_children(server)) == 2 and server.is_alive(), "the processes do not start")
    children = _children(server)
    server.kill()
    wait_until(lambda: not any(_is_running(one) for one in children), "processes stay")
    assert _refuses(server)
    namespace.check()


def test_a_server_that_stops_says_what_it_knows_and_lets_another_one_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DUTIES_S", 0.01)
    monkeypatch.setattr(module, "_PUBLISH_S", 2 * PATIENCE_S)  # only at the end
    with serve_fresh() as served:
        database = served.namespace.database
        wait_until(lambda: list_servers(database), "the server does not say that it lives")
        assert current_leader(database, SystemClock()) is not None
        assert served.ask("PUT", "/d", "op=MKDIRS&user.name=root").status == 200
        (server,) = list_servers(database)
        assert answers_key(server.token) not in all_records(database)
    assert current_leader(database, SystemClock()) is None
    assert list_servers(database) == []
    assert AnswerBook.decode(all_records(database)[answers_key(server.token)].value).through == 1


def test_a_server_that_stops_cleans_up_after_requests_before_it_closes_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were cancelled at the end of the grace, and discard their files now."""
    namespace, done = fresh_namespace(), list[str]()
    service = module.Service(ServerSettings(url=f"memory://{namespace.configuration.name}"))
    end = service._end
    monkeypatch.setattr(service, "_end", lambda: (done.append("the end"), end()))

    async def clean_up() -> None:
        await asyncio.sleep(0.1)
        done.append("cleaned up")
        service._application._in_flight = 0

    async def live() -> None:
        events = iter(("startup", "shutdown"))

        async def receive() -> dict[str, str]:
            return {"type": f"lifespan.{next(events)}"}

        async def send(event: object) -> None:
            pass

        service._application._in_flight = 1
        await asyncio.gather(service({"type": "lifespan"}, receive, send), clean_up())

    asyncio.run(live())
    assert done == ["cleaned up", "the end"]
    namespace.close()
