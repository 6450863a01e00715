"""Kill and stop servers and their database while clients work that repeat what they have no answer to.

Every answer is what one execution of each request gives, and the tree in the end is exactly what was answered (N6).
"""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.cli import failures
from holdfast.errors import UnsupportedError
from holdfast.namespace.maintenance import current_leader
from holdfast.runtime import SystemClock
from holdfast.webhdfs.servers import list_servers
from tests.integration.test_webhdfs_failover import free_port
from tests.patience import PATIENCE_S, wait_until
from tests.servers.postgres_server import PostgresServer, find_postgres
from tests.webhdfs_server import ServedNamespace, ServerProcess, target_of

_CLIENTS = 6
_STANDBY = "StandbyException"


def _pause(seconds: float) -> None:
    """Let the others work for a while."""
    threading.Event().wait(seconds)


@dataclass
class Client:
    """A client of several servers, which repeats a request at the next one until it has an answer, as Hadoop's does.

    Attributes:
        has_failed: set if the test has failed: then nobody waits for servers.
        repeats: how many requests it has sent again.
    """

    user: str
    ports: Sequence[int]
    has_failed: threading.Event
    repeats: int = 0
    _at: int = 0
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def ask(self, method: str, operation: str, path: str, **parameters: object) -> tuple[int, object]:
        """Return the status and the document of the answer."""
        target = target_of(operation, path, user=self.user, **parameters)
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s and not self.has_failed.is_set():
            try:
                status, document = self._try(method, target)
            except (OSError, http.client.HTTPException):
                document = None
            if document is not None and _STANDBY not in str(document):
                return status, document
            self.close()
            self.repeats += 1
            self._at += 1
            _pause(0.1)
        raise AssertionError(f"no server answers: {target}")

    def _try(self, method: str, target: str) -> tuple[int, object]:
        if self._connection is None:
            port = self.ports[self._at % len(self.ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=70)
        self._connection.request(method, target)
        answer = self._connection.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if body else {}

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Servers:
    """Servers at fixed ports, which a test kills and starts again."""

    served: ServedNamespace
    ports: Sequence[int]
    running: dict[int, ServerProcess] = field(default_factory=dict)

    def start(self, port: int) -> ServerProcess:
        """Start the server at a port."""
        self.running[port] = self.served.serve("--port", str(port))
        return self.running[port]

    def kill(self, port: int) -> None:
        """SIGKILL the server at a port."""
        self.running.pop(port).kill()

    def restart_ended(self) -> None:
        """Start those again that have ended, as systemd does: their database was away when they started."""
        for port, server in list(self.running.items()):
            if server.process.poll() is not None:
                assert server.process.returncode == failures.STORE
                self.kill(port)
                self.start(port)

    def end(self) -> None:
        """End all servers."""
        for server in self.running.values():
            server.kill()


@contextmanager
def _servers(directory: Path, database: str) -> Iterator[Servers]:
    with ServedNamespace(directory, database) as served:
        servers = Servers(served, (free_port(), free_port()))
        try:
            for port in servers.ports:
                servers.start(port)
            yield servers
        finally:
            servers.end()


def _work(client: Client, is_over: threading.Event) -> set[str]:
    """Make, rename and delete directories; check each answer; return the paths that must exist in the end.

    Nothing is asked twice: the answer to that is only sure while servers live (decision 29).
    """
    home, exist = f"/{client.user}", set[str]()
    number = 0
    while not is_over.is_set():
        number += 1
        made, moved = f"{home}/made-{number}", f"{home}/moved-{number}"
        assert client.ask("PUT", "MKDIRS", made) == (200, {"boolean": True})
        assert client.ask("PUT", "RENAME", made, destination=moved) == (200, {"boolean": True})
        exist.add(moved)
        if number % 3 == 0:
            assert client.ask("DELETE", "DELETE", moved) == (200, {"boolean": True})
            exist.remove(moved)
        if number % 4 == 0:
            assert client.ask("PUT", "RENAME", made, destination=home) == (200, {"boolean": False})
    return exist


def _run_clients(servers: Servers, do_harm: Callable[[], None]) -> int:
    """Let clients work while harm is done; check the tree; return how often they had to repeat a request."""
    is_over, has_failed = threading.Event(), threading.Event()
    clients = [Client(f"user{number}", servers.ports, has_failed) for number in range(_CLIENTS)]
    with ThreadPoolExecutor(_CLIENTS) as pool, ExitStack() as stack:
        for client in clients:
            stack.callback(client.close)
        running = [pool.submit(_work, client, is_over) for client in clients]
        try:
            do_harm()
        except BaseException:
            has_failed.set()
            raise
        finally:
            is_over.set()
        while wait(running, 0.1).not_done:  # each gives up after a while
            servers.restart_ended()
        expected = {path for one in running for path in one.result()}
    with servers.served.open() as namespace:
        found = {one.path for one in namespace.walk("/") if one.path.count("/") == 2}
    assert found == expected
    return sum(client.repeats for client in clients)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    try:
        find_postgres()
    except UnsupportedError as error:
        pytest.skip(str(error))
    with PostgresServer() as server:
        yield server


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_done_twice(rounds: int, postgres: PostgresServer, tmp_path: Path) -> None:
    """Servers are killed and stopped, and the database is killed, each in the middle of the work."""
    chance = random.Random(rounds)
    with _servers(tmp_path / "served", postgres.create_database("ns")) as servers:

        def do_harm() -> None:
            for _ in range(rounds):
                first, second = chance.sample(list(servers.ports), 2)
                _pause(chance.uniform(0.5, 1.5))
                servers.kill(first)
                _pause(chance.uniform(0.2, 1.0))
                servers.start(first)
                postgres.kill()
                _pause(chance.uniform(0.0, 1.0))
                postgres.start()
                _pause(chance.uniform(0.2, 1.0))
                servers.restart_ended()
                servers.running[second].process.send_signal(signal.SIGSTOP)
                _pause(chance.uniform(0.5, 4.0))
                servers.running[second].process.send_signal(signal.SIGCONT)
            _pause(0.5)

        assert _run_clients(servers, do_harm) > 0, "no request had to be repeated: nothing was shown"


@pytest.mark.slow
def test_a_leader_that_is_stopped_and_comes_back_does_no_harm(tmp_path: Path) -> None:
    with _servers(tmp_path / "served", "") as servers, ExitStack() as stack:
        namespace = stack.enter_context(servers.served.open())

        def leader() -> str:
            term = current_leader(namespace.database, SystemClock())
            return "" if term is None else term.holder

        wait_until(leader, "no server leads")
        first = leader()
        (port,) = (one.port for one in list_servers(namespace.database) if one.token == first)
        stopped = servers.running[port].process
        for number in range(20):
            namespace.mkdirs(f"/tree/{number}/below")
        namespace.delete("/tree", recursive=True)
        stopped.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: leader() not in ("", first), "no other server leads")
            for number in range(20):
                namespace.mkdirs(f"/tree/{number}/again")
            namespace.delete("/tree/7", recursive=True)
            wait_until(lambda: not namespace.database.scan(b"r", b"s", 1).records, "the new leader does not collect")
        finally:
            stopped.send_signal(signal.SIGCONT)
        namespace.delete("/tree/8", recursive=True)
        wait_until(lambda: not namespace.database.scan(b"r", b"s", 1).records, "nobody collects")
        assert leader() != first
        assert len(list(namespace.list("/tree"))) == 18
