"""Run real processes of the WebHDFS server, and talk to them: by HTTP, and by bytes that may be no HTTP at all.

`python -m tests.webhdfs_server` is the server with `Limits` that the command line does not offer.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.stores.registry import open_destination
from holdfast.transactions.registry import open_backend
from holdfast.webhdfs.settings import Limits
from tests.namespace_check import problems_of
from tests.patience import PATIENCE_S, wait_until

__all__ = ["Reply", "ServedNamespace", "ServerProcess", "read_replies", "reset"]

_ROOT = Path(__file__).parents[1]
_NAME = "served"
_ANSWER_S = 120.0
"""How long a client waits for bytes of an answer: a server that is silent for so long is stuck."""


# --- answers ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of a server.

    Attributes:
        status: of HTTP.
        headers: by name in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)

    @property
    def java_class(self) -> str:
        """The exception that the client raises; empty if the answer is none."""
        document = json.loads(self.body) if self.body[:1] == b"{" else {}
        return str(document.get("RemoteException", {}).get("javaClassName", ""))


def read_replies(received: bytes, methods: Sequence[str] = ()) -> list[Reply]:
    """Parse all answers that a connection has got, without interim ones (100); fail on what is no whole answer.

    Args:
        methods: of the requests: an answer to HEAD has no body.
    """
    replies: list[Reply] = []
    while received:
        head, blank, received = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9][0-9]) .*", lines[0])
        assert blank and found, f"no head of an answer: {head[:300]!r}"
        if found[1] == "100":
            continue
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        is_head = len(replies) < len(methods) and methods[len(replies)] == "HEAD"
        size = 0 if is_head else int(headers["content-length"])
        assert len(received) >= size, "the body of an answer is cut"
        replies.append(Reply(int(found[1]), headers, received[:size]))
        received = received[size:]
    return replies


def reset(connection: socket.socket) -> None:
    """End a connection by a reset, as the kernel of a client that dies does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


# --- a server ---------------------------------------------------------------------------------------------------------
class ServerProcess:
    """A running server. Leaving its context ends it, and fails if it has logged an error.

    Attributes:
        address: such as ``http://127.0.0.1:1234``.
        host, port: where it listens.
        log: the file of its standard error.
        process: its first process.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=_ROOT,
                env={**os.environ, **(environment or {})},
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        try:
            self.address = self._read_address()
        except BaseException:
            self.kill()
            raise
        parts = urlsplit(self.address)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline() if readable else b""
        assert line, f"the server did not start:\n{self.log.read_text()}"
        return str(json.loads(line)["address"])

    # --- its end ------------------------------------------------------------------------------------------------------
    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
        else:
            self.kill()

    def terminate(self) -> None:
        """Ask the server to end; return at once."""
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """End the server, and fail if it does not end by itself, or has logged an error."""
        if self.process.poll() is None:
            self.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.kill()
        self.check_log()

    def kill(self) -> None:
        """Kill the server's first process, and reap it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def check_log(self) -> None:
        """Fail if the server has logged an error."""
        logged = self.log.read_text(errors="replace")
        assert "Traceback" not in logged, logged[-8000:]
        assert "Exception" not in logged, logged[-8000:]

    # --- clients ------------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def connect(self, *, receive_buffer: int = 0) -> Iterator[socket.socket]:
        """Return a connection, on which bytes can be sent; close it at the end.

        Args:
            receive_buffer: how many bytes the kernel takes before the client reads them; 0 for its default.
        """
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if receive_buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            connection.settimeout(_ANSWER_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect((self.host, self.port))
            yield connection
        finally:
            connection.close()

    def send(self, *pieces: bytes, ends: bool = True) -> bytes:
        """Send bytes on a new connection, and return all that comes back until its end.

        Args:
            pieces: sent one after the other, as segments of their own.
            ends: whether this side ends its half after the last piece.
        """
        with self.connect() as connection:
            with contextlib.suppress(OSError):  # the server may have ended the connection
                for piece in pieces:
                    connection.sendall(piece)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
            return receive_all(connection)

    def request(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request on a new connection."""
        client = http.client.HTTPConnection(self.host, self.port, timeout=_ANSWER_S)
        with contextlib.closing(client):
            client.request(method, target, body or None, dict(headers or {}))
            answer = client.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())

    def call(self, method: str, operation: str, path: str, *, user: str = "root", **parameters: object) -> Reply:
        """Send a request for an operation on a new connection."""
        return self.request(method, target_of(operation, path, user=user, **parameters))

    def upload(self, path: str, data: bytes, *, operation: str = "CREATE", **parameters: object) -> Reply:
        """Write a file in two requests, as clients do."""
        method = "POST" if operation == "APPEND" else "PUT"
        first = self.call(method, operation, path, **parameters)
        assert first.status == 307, first
        return self.request(method, relative(first.headers["location"]), data, {"Content-Length": str(len(data))})

    def download(self, path: str, **parameters: object) -> Reply:
        """Read a file in two requests."""
        first = self.call("GET", "OPEN", path, **parameters)
        return self.request("GET", relative(first.headers["location"])) if first.status == 307 else first

    def is_alive(self) -> bool:
        """Return whether the server answers a request."""
        return self.call("GET", "GETFILESTATUS", "/").status == 200

    def metric(self, name: str) -> float:
        """Return the sum of a metric."""
        lines = self.request("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}(\{{| )", line))

    def wait_until_idle(self) -> None:
        """Wait until no upload is open."""
        wait_until(lambda: self.metric("holdfast_uploads") == 0, "an upload stays open")

    def resident_bytes(self) -> int:
        """Return how much memory the server's first process has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def target_of(operation: str, path: str, *, user: str = "root", **parameters: object) -> str:
    """Return the target of a request for an operation."""
    names = {"op": operation, "user.name": user}
    names |= {name.replace("_", "."): str(value) for name, value in parameters.items()}
    return f"/webhdfs/v1{quote(path)}?{urlencode(names)}"


def relative(location: str) -> str:
    """Return the target of a request for an address."""
    parts = urlsplit(location)
    return f"{parts.path}?{parts.query}"


def receive_all(connection: socket.socket) -> bytes:
    """Return what comes until the connection ends, or breaks."""
    return receive_until(connection, lambda received: False)


def receive_until(connection: socket.socket, is_enough: Callable[[bytes], object]) -> bytes:
    """Return what comes until it is enough, or the connection ends or breaks."""
    received = b""
    while not is_enough(received):
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            break
        if not piece:
            break
        received += piece
    return received


def receive_reply(connection: socket.socket) -> Reply:
    """Return the next answer on a connection, and leave what follows it; interim ones (100) are left out."""
    head = b""
    while not head.endswith(b"\r\n\r\n") or head.startswith(b"HTTP/1.1 100"):
        head = b"" if head.endswith(b"\r\n\r\n") else head
        piece = connection.recv(1)
        assert piece, f"the connection has ended in the head of an answer: {head!r}"
        head += piece
    size = re.search(rb"\r\ncontent-length: ([0-9]+)", head.lower())
    assert size, f"the answer has no length: {head!r}"
    body = b""
    while len(body) < int(size[1]):
        piece = connection.recv(int(size[1]) - len(body))
        assert piece, "the body of an answer is cut"
        body += piece
    [reply] = read_replies(head + body)
    return reply


# --- a namespace with servers -----------------------------------------------------------------------------------------
@dataclass
class ServedNamespace:
    """A namespace in a folder, and the servers that a test starts on it. Leaving its context checks it.

    Args:
        database: its URL; empty for SQLite.
        permissions: whether permissions are checked.
        inline_bytes: files up to this size live in the database.
        superuser: its name.
    """

    directory: Path
    database: str = ""
    permissions: bool = False
    inline_bytes: int = 64 * 1024
    superuser: str = "root"
    _servers: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.database = self.database or f"sqlite:///{self.directory}/namespace.sqlite"
        self.data = str(self.directory / "blobs")
        configuration = Configuration(
            name=_NAME,
            data=self.data,
            superuser=self.superuser,
            permissions=self.permissions,
            inline_bytes=self.inline_bytes,
        )
        init_namespace(configuration, self.database, register=False)

    def __enter__(self) -> ServedNamespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.check()

    def serve(self, *options: str, workers: int = 1, limits: Limits | None = None) -> ServerProcess:
        """Start a server.

        Args:
            options: of ``holdfast namespace serve``.
            limits: instead of options: the server is run without its command line.
        """
        self._servers += 1
        log = self.directory / f"server-{self._servers}.log"
        if limits is None:
            ours = ("namespace", "serve", _NAME, "--port", "0", "--json", "--workers", str(workers))
            place = {f"HOLDFAST_NAMESPACE_{_NAME.upper()}": self.database}  # its URL may have a password
            return ServerProcess(["holdfast", *ours, *options], log, place)
        assert not options
        settings = {"database": self.database, "workers": workers, "access_log": "", "limits": asdict(limits)}
        return ServerProcess(["tests.webhdfs_server", json.dumps(settings)], log)

    def open(self, user: str = "root") -> Namespace:
        """Open the namespace in this process."""
        return open_namespace(f"holdfast://{_NAME}", database=self.database, user=user, groups=[])

    def leases(self) -> int:
        """Return how many files are being written."""
        with contextlib.closing(open_backend(self.database)) as database, database.snapshot() as snapshot:
            return len(snapshot.scan(b"l", b"m", 1000).records)

    def files(self) -> dict[str, bytes]:
        """Return all files with their bytes."""
        with self.open() as namespace:
            return {one.path: namespace.open(one.path).read() for one in namespace.walk("/") if not one.is_directory}

    def check(self, *, strays: bool = False) -> None:
        """Fail unless the namespace is whole: by its own check, and by a second opinion.

        Args:
            strays: whether blobs that nothing refers to are allowed: servers that were killed leave some.
        """
        with self.open() as namespace:
            report = namespace.check()
        assert report.is_healthy, report
        with contextlib.closing(open_backend(self.database)) as database:
            blobs = open_destination(self.data)
            problems = problems_of(database, blobs.store, blobs.key(""), strays=strays)
        assert problems == [], "\n".join(problems)


def main(given: str) -> None:
    """Run a server with settings in JSON."""
    from holdfast.webhdfs.server import serve
    from holdfast.webhdfs.settings import ServerSettings

    settings = json.loads(given)
    limits = Limits(**settings.pop("limits"))
    serve(
        ServerSettings(url=f"holdfast://{_NAME}", port=0, limits=limits, **settings),
        lambda address: print(json.dumps({"address": address}), flush=True),
    )


if __name__ == "__main__":
    main(sys.argv[1])
